"""The panel of health: runs the checks of `laneway doctor` when somebody asks, and shows their results."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from laneway.base.errors import LanewayError
from laneway.base.plain import plain
from laneway.core.background import TaskSet
from laneway.doors.console.panels.news import CHANGED
from laneway.doors.console.panels.plain_json import shown
from laneway.doors.console.panels.ports import CheckRow, HealthChecks
from laneway.doors.page_parts import PageFeed, PageReply, PageRequest, json_reply, unknown


class HealthState(msgspec.Struct):
    """The last run of the checks, or the one that goes on."""

    is_running: bool = False
    doing: str = ""
    """What is being checked."""
    ended_at: float = 0.0
    """Seconds since 1970; 0 before the first run has ended."""
    problem: str = ""
    """Why the run could not go on."""
    checks: list[CheckRow] = []


class Empty(msgspec.Struct, forbid_unknown_fields=True):
    pass


class HealthPart:
    """A `PagePart`."""

    name = "health"
    title = "Health"
    static = Path(__file__).with_name("static") / "health"

    def __init__(self, checks: HealthChecks, now: Callable[[], float] = time.time) -> None:
        self._checks = checks
        self._now = now
        self._state = HealthState()
        self._tasks = TaskSet()
        self._feed: PageFeed

    @asynccontextmanager
    async def running(self, feed: PageFeed) -> AsyncIterator[None]:
        self._feed = feed
        try:
            yield
        finally:
            await self._tasks.cancel()

    async def get(self, request: PageRequest) -> PageReply:
        if request.path != ():
            raise unknown()
        return json_reply(shown(self._state))

    async def post(self, request: PageRequest) -> PageReply:
        """Run the checks, unless they run already."""
        if request.path != ("run",):
            raise unknown()
        await request.value(Empty)
        if not self._state.is_running:
            self._state = HealthState(is_running=True)
            self._tasks.spawn(self._run(self._state), "checks of this machine")
            self._tell()
        return json_reply(shown(self._state))

    async def _run(self, state: HealthState) -> None:
        def doing(what: str) -> None:
            state.doing = what
            self._tell()

        def done(checks: Sequence[CheckRow]) -> None:
            state.checks = [*state.checks, *checks]
            self._tell()

        try:
            await self._checks.run(doing, done)
        except LanewayError as problem:
            state.problem = plain(str(problem))
        finally:
            state.is_running, state.doing, state.ended_at = False, "", self._now()
            self._tell()

    def _tell(self) -> None:
        self._feed.publish(CHANGED, {})
