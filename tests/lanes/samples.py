"""Lane plugins for tests: the sample of the document, word for word, and some that behave and misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laneway.core.model import Event, TurnDone
from laneway.lanes import LaneInput, LanePlugin, register_lane
from laneway.lanes.adapter import PluginLane
from laneway.lanes.protocol import MessageFormatter, PlatformClient
from laneway.lanes.registry import RegisteredLanes
from laneway.testing.clock import HandClock
from laneway.testing.lane_host import HeardLane

IMPORT_LINE = "from laneway.lanes import register_lane\n"
AIDER = """\
@register_lane
class AiderLane:
    command = "aider"
    usage = "Usage: /aider <task>"
    description = "Run a task with Aider"

    async def start(self, cwd, platform, formatter): ...
    async def run_turn(self, prompt): ...
    async def stop(self): ...
    @property
    def is_busy(self): ...
"""


class Painter:
    """A lane written to the whole document: it shows, asks, runs on, fails. See `registered`."""

    command = "paint"
    usage = "Usage: /paint <task>"
    description = "Paint something"
    made: list[Painter]

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.inputs: list[LaneInput] = []
        self.answer: asyncio.Future[str] | None = None
        self.hears = True
        self.stopped = asyncio.Event()
        self.is_busy = False
        type(self).made.append(self)

    async def start(self, cwd: str, platform: PlatformClient, formatter: MessageFormatter) -> None:
        self.calls.append("start")
        self.cwd, self.platform, self.formatter = cwd, platform, formatter

    async def run_turn(self, input: LaneInput) -> str | None:  # noqa: A002
        self.inputs.append(input)
        self.is_busy = True
        try:
            return await self._paint(input.text.rpartition("\n")[2])
        finally:
            self.is_busy = False

    async def _paint(self, word: str) -> str | None:
        match word:
            case "on":
                await self.platform.send_message("painting")
                await self.stopped.wait()
                self.stopped.clear()
                return None
            case "ask":
                await self.platform.send_message("Which colour?")
                self.answer = asyncio.get_running_loop().create_future()
                try:
                    colour = await self.answer
                finally:
                    self.answer = None
                await self.platform.send_message(f"It is {colour or 'grey'} now.")
                return f"painted it {colour}"
            case "fail":
                raise RuntimeError("out of paint, token=sk-abcdefghijklmnop1234")
            case "exit":
                raise SystemExit(3)
        await self.platform.send_thinking("hm")
        await self.platform.send_message("done")
        return "painted the shed"

    async def interrupt(self) -> None:
        self.calls.append("interrupt")
        if self.hears:
            self.stopped.set()
            if self.answer is not None and not self.answer.done():
                self.answer.set_result("")

    async def stop(self) -> None:
        self.calls.append("stop")

    @property
    def wants_user_input(self) -> bool:
        return self.answer is not None and not self.answer.done()

    async def handle_user_input(self, text: str) -> None:
        assert self.answer is not None
        self.answer.set_result(text)


def registered(cls: type, **members: Any) -> type[LanePlugin]:
    """The class, derived with these members, as a registered plugin of this test."""
    derived = type(cls.__name__, (cls,), {"made": [], **members})
    return register_lane(derived)


@pytest.fixture
def fresh_registry() -> Any:
    """What a test registers is forgotten after it."""
    before = RegisteredLanes()
    yield
    before.restore()


class PluginStage:
    """One plugin lane under a clock that the test moves."""

    def __init__(self, cls: type[LanePlugin], cwd: Path) -> None:
        self.cls: Any = cls
        self.cwd = cwd
        self.clock = HandClock()
        self.lane = PluginLane(cls, self.clock)
        self.heard = HeardLane(self.lane)

    async def __aenter__(self) -> PluginStage:
        await self.lane.open(self.cwd, self.heard)
        return self

    async def __aexit__(self, *_: object) -> None:
        closing = asyncio.ensure_future(self.lane.close())
        while not closing.done():
            self.clock.advance(1)
            await asyncio.sleep(0)
        await closing

    def is_done(self) -> bool:
        """Whether the latest turn is over."""
        return bool(self.heard.only(TurnDone))

    @property
    def plugin(self) -> Any:
        """The latest that was made."""
        return self.cls.made[-1]

    async def look(self, holds: Callable[[], object] = lambda: False, turns: int = 50) -> None:
        """Let the lane look at its plugin until this holds."""
        for _ in range(turns):
            if holds():
                return
            self.clock.advance(0.1)
            await settle()

    async def end(self, ticket: str) -> TurnDone:
        async with asyncio.timeout(20):
            return await self.heard.ended(ticket)


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]
