"""A process that serves the page for `bench.page`: `WORK prepare NUMBER`, or `WORK serve`.

The conversations are real ones, in SQLite; their lane is scripted. `serve` prints the page's address and
reads orders from its standard input, one a line; each is answered by one line of JSON.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.processes import pss_kb
from bench.rig import tell
from laneway.app.chat_store import open_conversations
from laneway.doors.chat.messages import Incoming, Place, Sender
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.outputs import Shown, TurnEnded
from laneway.doors.chat.platforms.web.chat_part import ChatPart
from laneway.doors.chat.service import ChatService
from laneway.doors.console.page_server import serve_page
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn

TURNS = 20
"""Of each conversation, before it is shown …"""
LONG_TURNS = 150
"""… and of the first one, which is long: the page shows the last 500 of its outputs."""
ANSWER = (
    "It waits **too long**: see `src/retry.py`.\n\n- one try\n- another\n\n```python\nwait_s = 1.0\n```\n"
)
BUSY_S = 0.05
"""Between two words of a conversation that is busy: as fast as a model writes."""
TOKEN = "bench-token-0123456789"
BENCH = Sender(platform="bench", user_id="bench", name="bench", is_owner=True)
HOLD = "hold"
"""A message whose turn goes on until the process ends."""


async def play(turn: ScriptedTurn) -> None:
    turn.accept()
    if turn.given.text == HOLD:
        return
    turn.command("make test", status="completed", output="ok\n" * 20, exit_code=0)
    turn.say(ANSWER)


class _EndView:
    """Waits for the end of a turn."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    def show(self, shown: Shown) -> None:
        if isinstance(shown.output, TurnEnded):
            self.ended.set()

    def on_moved(self, conversation_id: str) -> None:
        raise RuntimeError("nobody moves it")


@asynccontextmanager
async def _chatting(work: Path, lanes: ScriptedLanes) -> AsyncIterator[ChatService]:
    async with (
        open_conversations(0, path=work / "page" / "laneway.db") as opened,
        ChatService(lanes, opened.store, opened.locks, ChatOptions(cwd=work)) as chat,
    ):
        yield chat


async def prepare(work: Path, conversations: int) -> dict[str, Any]:
    """Make the conversations, and end."""
    async with _chatting(work, ScriptedLanes(play=play)) as chat:
        for number in range(conversations):
            place, view = Place("bench", str(number)), _EndView()
            await chat.join(place, view)
            for turn in range(LONG_TURNS if number == 0 else TURNS):
                view.ended.clear()
                text = f"conversation {number}, turn {turn}"
                await chat.take(Incoming(place=place, message_id=f"{number}-{turn}", sender=BENCH, text=text))
                await view.ended.wait()
        return {
            "conversations": [each.conversation_id for each in reversed(await chat.latest(conversations))]
        }


class Orders:
    """What the measurement lets happen in the conversations."""

    def __init__(self, chat: ChatService, lanes: ScriptedLanes) -> None:
        self._chat = chat
        self._lanes = lanes
        self._held: dict[str, ScriptedTurn] = {}
        self._words = 0
        self._busy: asyncio.Task[None] | None = None

    async def obey(self, order: str, conversation_ids: list[str]) -> dict[str, Any]:
        if order == "hold":
            for conversation_id in conversation_ids:
                self._held[conversation_id] = await self._hold(conversation_id)
        elif order == "word":
            return self._word(conversation_ids[0])
        elif order == "busy":
            self._busy = asyncio.create_task(self._write(conversation_ids))
        elif order == "memory":
            gc.collect()
            return {"kb": pss_kb(os.getpid())}
        return {}

    async def _hold(self, conversation_id: str) -> ScriptedTurn:
        place = Place("bench", f"hold {conversation_id}")
        await self._chat.join(place, _EndView(), conversation_id)
        before = len(self._turns())
        message_id = f"hold {conversation_id}"
        await self._chat.take(Incoming(place=place, message_id=message_id, sender=BENCH, text=HOLD))
        while len(self._turns()) == before:  # noqa: ASYNC110  it tells nobody
            await asyncio.sleep(0.01)
        return self._turns()[-1]

    def _turns(self) -> list[ScriptedTurn]:
        return [turn for lane in self._lanes.made for turn in lane.turns]

    def _word(self, conversation_id: str) -> dict[str, Any]:
        self._words += 1
        word = f"word{self._words:05}."
        at = time.time()
        self._held[conversation_id].text(f"{word} ")
        return {"word": word, "at": at}

    async def _write(self, conversation_ids: list[str]) -> None:
        while True:
            for conversation_id in conversation_ids:
                self._held[conversation_id].text("again ")
            await asyncio.sleep(BUSY_S)


async def serve(work: Path) -> None:
    lanes = ScriptedLanes(play=play)
    async with _chatting(work, lanes) as chat:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        part = ChatPart(chat, work / "uploads", cwd=work)
        serving = asyncio.create_task(serve_page([part], token=TOKEN, on_ready=ready.set_result))
        tell({"address": await ready})
        orders = Orders(chat, lanes)
        while line := await asyncio.to_thread(sys.stdin.readline):
            order, *conversation_ids = line.split()
            tell(await orders.obey(order, conversation_ids))
            sys.stdout.flush()
        serving.cancel()


def main() -> None:
    work, order = Path(sys.argv[1]), sys.argv[2]
    if order == "prepare":
        tell(asyncio.run(prepare(work, int(sys.argv[3]))))
    else:
        asyncio.run(serve(work))


if __name__ == "__main__":
    main()
