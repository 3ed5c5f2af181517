"""Benchmark of the memory of conversations: many of them led by Claude, of which a few are awake. Linux only.

What a process has alone and its share of the rest (PSS), summed over the processes of all conversations.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import time
from pathlib import Path

import msgspec

from bench.claude_rig import claude_rig
from bench.processes import GONE, pss_kb, tree
from bench.rig import Rig, tell
from bench.table import Goal, Row, Section
from laneway.app.chat_lanes import ChatLanes, ChosenEngines
from laneway.app.chat_store import open_conversations
from laneway.app.options import ClaudeChoice, CodexChoice
from laneway.base.settings import load
from laneway.claude import locate
from laneway.doors.chat.messages import Incoming, Place, Sender
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.outputs import Shown, TurnEnded
from laneway.doors.chat.service import ChatService

AWAKE = 8
"""Sessions of Claude with a process at one time, as by default (`claude_awake`)."""
OWN_MB = Goal(0.5, of="ours")
"""Of our process, for each conversation: hundreds of them are then not worth a thought."""
DEADLINE_S = 60.0
BENCH = Sender(platform="bench", user_id="bench", name="bench", is_owner=True)


def run(rig: Rig, *, quick: bool = False) -> Section:
    conversations, awake = (4, 2) if quick else (50, AWAKE)
    with claude_rig(rig) as here:
        apart = {**here.environment, "XDG_STATE_HOME": str(here.work / "state")}
        result = msgspec.structs.replace(here, environment=apart).measure(
            "bench.chat_memory", conversations, awake, here.work
        )
    mb = {name: result[name] / 1e3 for name in ("bare", "claude", "all")}
    rows = [
        Row(
            what=f"{conversations} conversations, {awake} awake: all processes",
            unit="MB",
            base=mb["claude"] / result["awake"] * conversations,
            base_is=f"{conversations} Claude Codes",
            ours=mb["all"],
            digits=0,
        ),
        Row(
            what=f"{conversations} conversations: our process, each",
            unit="MB",
            base=None,
            base_is="",
            ours=result["own"] / 1e3 / conversations,
            goal=OWN_MB,
            digits=2,
        ),
    ]
    note = (
        f"Conversations: each has had one turn of Claude; {result['awake']:.0f} have a process then, the"
        f" others sleep. Our process before the first one: {mb['bare']:.0f} MB. Together they took"
        f" {result['seconds']:.0f} s, one after the other. PSS."
    )
    return Section("Memory of conversations", rows, [note], {"result": result})


class _EndView:
    """Waits for the end of a turn."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[TurnEnded] = asyncio.get_running_loop().create_future()

    def show(self, shown: Shown) -> None:
        if isinstance(shown.output, TurnEnded) and not self.ended.done():
            self.ended.set_result(shown.output)

    def on_moved(self, conversation_id: str) -> None:
        raise RuntimeError("nobody moves it")


async def measure(conversations: int, awake: int, work: Path) -> dict[str, float]:
    settings = load({}, {}, work, work)
    chosen = ChosenEngines(codex=CodexChoice(), claude=ClaudeChoice(max_awake=awake))
    async with (
        open_conversations(0, path=work / "chat" / "laneway.db") as opened,
        ChatLanes(chosen, settings) as lanes,
        ChatService(lanes, opened.store, opened.locks, ChatOptions(cwd=work)) as chat,
    ):
        began = time.monotonic()
        await _converse(chat, 0)  # loads all that the others use, too
        gc.collect()
        bare = pss_kb(os.getpid())
        for number in range(1, conversations + 1):
            await _converse(chat, number)
        gc.collect()
        seconds = time.monotonic() - began
        own = pss_kb(os.getpid())
        return {"bare": bare, "own": own - bare, "seconds": seconds, **_processes(locate.find().path)}


def _processes(binary: str) -> dict[str, float]:
    """Of our whole tree: the memory of Claude Code, that of all processes, and how many Claude Codes run."""
    claude = total = 0.0
    count = 0
    for pid, is_claude in tree(os.getpid(), binary).items():
        try:
            kb = pss_kb(pid)
            count += os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(binary)
        except GONE:
            continue
        total += kb
        claude += kb if is_claude else 0.0
    return {"claude": claude, "all": total, "awake": count}


async def _converse(chat: ChatService, number: int) -> None:
    """One conversation, one turn; the place stays open."""
    place, view = Place("bench", str(number)), _EndView()
    await chat.join(place, view)
    message = Incoming(place=place, message_id=str(number), sender=BENCH, text="%say hello")
    await chat.take(message)
    async with asyncio.timeout(DEADLINE_S):
        ended = await view.ended
    if (ended.lane, ended.status) != ("claude", "completed"):
        raise RuntimeError(
            f"conversation {number}: a turn of {ended.lane} is {ended.status}: {ended.failure}"
        )


if __name__ == "__main__":
    tell(asyncio.run(measure(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))))
