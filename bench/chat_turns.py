"""Benchmark of a conversation: what Laneway adds between the Enter key and the first word on the screen.

Everything of `laneway chat` but the terminal itself: keys, routing, the store, the real Codex, the screen.
The engine alone is the same turn, from the lane's `begin` to its first text.
"""

from __future__ import annotations

import asyncio
import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input

from bench.rig import Rig, tell
from bench.table import Goal, Row, Section, middle, spread_of
from laneway.app.chat_lanes import ChatLanes, ChosenEngines
from laneway.app.chat_store import open_conversations
from laneway.app.options import ClaudeChoice, CodexChoice
from laneway.base.settings import load
from laneway.core.model import Event, Text
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.platforms.terminal.completing import ChatCompleter
from laneway.doors.chat.platforms.terminal.interactive import InteractiveScreen
from laneway.doors.chat.platforms.terminal.shown_conversation import ShownConversation
from laneway.doors.chat.service import ChatService
from laneway.lanes.contract import Lane, LaneHost, LaneTurn

ANSWER = "I heard"
"""How the scripted model begins."""
ADDED_MS = Goal(100.0, of="ours")
"""What is shown within this time counts as shown at once."""
DEADLINE_S = 30.0


def run(rig: Rig, *, quick: bool = False) -> Section:
    turns = 3 if quick else 25
    here = msgspec.structs.replace(
        rig, environment={**rig.environment, "XDG_STATE_HOME": str(rig.work / "state")}
    )
    result = here.measure("bench.chat_turns", turns, rig.work)
    rounds: list[dict[str, float]] = result["turns"]

    def ms(name: str) -> float:
        return middle(rounds, lambda each: each[name]) * 1e3

    ratios = [each["whole"] / each["engine"] for each in rounds]
    rows = [
        Row(
            what="Enter → first word on the screen",
            unit="ms",
            base=ms("engine"),
            base_is="the engine alone",
            ours=ms("whole"),
            digits=1,
            spread=spread_of(ratios),
        ),
        Row(
            what="of it Laneway's own, before the engine",
            unit="ms",
            base=None,
            base_is="",
            ours=ms("before"),
            digits=1,
        ),
        Row(
            what="of it Laneway's own, after the engine",
            unit="ms",
            base=None,
            base_is="",
            ours=ms("after"),
            digits=1,
        ),
        Row(
            what="added in all",
            unit="ms",
            base=None,
            base_is="",
            ours=middle(rounds, lambda each: each["whole"] - each["engine"]) * 1e3,
            goal=ADDED_MS,
            digits=1,
        ),
    ]
    note = (
        f"A conversation at a terminal: medians of {turns} turns of one, with the real Codex and a"
        " scripted model that answers at once. Before the engine: the message is stored, routed, and shown."
        " After it: the text is shown; the screen is redrawn at most twenty times a second."
    )
    return Section("From the key to the first word", rows, [note], {"turns": rounds})


# ── in a process of its own ────────────────────────────────────────────────


class TimedLanes:
    """The lanes of `laneway chat`, whose `begin` and first text are noted."""

    def __init__(self, lanes: ChatLanes) -> None:
        self._lanes = lanes
        self.begun_at = self.text_at = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        return self._lanes.names

    @property
    def problems(self) -> tuple[str, ...]:
        return self._lanes.problems

    def make(self, name: str, cwd: Path) -> Lane:
        lane: Any = self._lanes.make(name, cwd)
        begin, open_lane = lane.begin, lane.open

        def begin_noted(turn: LaneTurn) -> None:
            self.begun_at, self.text_at = time.perf_counter(), 0.0
            begin(turn)

        async def open_noted(cwd: Path, host: LaneHost, *, resume: str | None = None) -> None:
            await open_lane(cwd, _NotedHost(host, self), resume=resume)

        lane.begin, lane.open = begin_noted, open_noted
        return lane  # type: ignore[no-any-return]


class _NotedHost:
    def __init__(self, host: LaneHost, noted: TimedLanes) -> None:
        self._host = host
        self._noted = noted

    def on_event(self, event: Event) -> None:
        if isinstance(event, Text) and not self._noted.text_at:
            self._noted.text_at = time.perf_counter()
        self._host.on_event(event)


class _Glass(io.StringIO):
    """A terminal that notes when it is told the answer's first word."""

    def __init__(self) -> None:
        super().__init__()
        self.seen_at = 0.0
        self.seen = asyncio.Event()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if ANSWER in text and not self.seen.is_set():
            self.seen_at = time.perf_counter()
            self.seen.set()
        return len(text)


@contextmanager
def _screen(glass: _Glass) -> Iterator[tuple[InteractiveScreen, Callable[[str], None]]]:
    with create_pipe_input() as keys:
        screen = InteractiveScreen(
            history=InMemoryHistory(), stdout=glass, keys=keys, columns_rows=lambda: (100, 30)
        )
        yield screen, keys.send_text


async def measure(turns: int, work: Path) -> dict[str, Any]:
    settings = load({}, {}, work, work)
    chosen = ChosenEngines(codex=CodexChoice(), claude=ClaudeChoice())
    glass = _Glass()
    rounds: list[dict[str, float]] = []
    async with (
        open_conversations(0, path=work / "chat" / "laneway.db") as opened,
        ChatLanes(chosen, settings) as engines,
    ):
        lanes = TimedLanes(engines)
        options = ChatOptions(cwd=work, default_lane="codex")
        async with ChatService(lanes, opened.store, opened.locks, options) as chat:
            with _screen(glass) as (screen, send):
                shown = ShownConversation(chat, screen, work, is_live=True)
                await shown.open(None)
                running = asyncio.create_task(screen.run(shown, ChatCompleter(list)))
                for number in range(turns + 2):
                    taken = await _turn(screen, send, glass, lanes)
                    if number > 1:  # the first two start and warm what they need
                        rounds.append(taken)
                    while shown.status.active_lane is not None:  # noqa: ASYNC110  it tells nobody
                        await asyncio.sleep(0.01)
                screen.leave(0)
                await running
                await shown.close()
    return {"turns": rounds}


async def _turn(
    screen: InteractiveScreen, send: Callable[[str], None], glass: _Glass, lanes: TimedLanes
) -> dict[str, float]:
    send("hello")
    while screen.typed_text != "hello":  # noqa: ASYNC110  it tells nobody
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.2)  # a person's pause: what was typed is on the screen
    glass.seen.clear()
    pressed = time.perf_counter()
    send("\r")
    await asyncio.wait_for(glass.seen.wait(), DEADLINE_S)
    return {
        "whole": glass.seen_at - pressed,
        "engine": lanes.text_at - lanes.begun_at,
        "before": lanes.begun_at - pressed,
        "after": glass.seen_at - lanes.text_at,
    }


if __name__ == "__main__":
    tell(asyncio.run(measure(int(sys.argv[1]), Path(sys.argv[2]))))
