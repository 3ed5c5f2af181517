"""A hub on a hand-driven engine, for the tests of the core."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.core.hub import Hub, Limits
from laneway.core.ports import TextPart, ThreadSpec, TurnSpec
from laneway.core.session import Session, Timing
from laneway.testing.clock import HandClock
from laneway.testing.engine import HandEngine, HandThread

SPEC = ThreadSpec(cwd=Path("/"))
TIMING = Timing(turn_s=60, question_s=300, stop_s=10)
ME = "me"


def words(text: str) -> TurnSpec:
    return TurnSpec(parts=(TextPart(text),))


class Stage:
    """Everything a test of a session holds in its hands."""

    def __init__(self, hub: Hub, engine: HandEngine, clock: HandClock) -> None:
        self.hub = hub
        self.engine = engine
        self.clock = clock

    async def session(self, identity: str | None = None) -> tuple[Session, HandThread]:
        session = await self.hub.start(ME, SPEC, identity=identity)
        return session, self.engine.threads[session.thread_id]


@asynccontextmanager
async def stage(
    *,
    is_obedient: bool = True,
    revive: bool = True,
    limits: Limits = Limits(),  # noqa: B008  frozen
    timing: Timing = TIMING,
    shutdown_s: float = 10.0,
) -> AsyncIterator[Stage]:
    engine, clock = HandEngine(is_obedient=is_obedient), HandClock()
    hub = Hub(engine, clock, limits=limits, timing=timing, revive=revive, shutdown_s=shutdown_s)
    async with hub:
        yield Stage(hub, engine, clock)
        clock.advance(1000)


LOOP_TURNS = 200
"""More than anything takes that only our own tasks do."""
LOOK_S = 0.005
"""Between two looks at what another process or thread does: the processor is theirs meanwhile."""


async def until(condition: Callable[[], object], deadline_s: float = 60.0) -> None:
    """Let the loop run until something holds; fails by deadline, not by guess."""
    turns = 0
    async with asyncio.timeout(deadline_s):
        while not condition():
            await asyncio.sleep(0 if turns < LOOP_TURNS else LOOK_S)
            turns += 1
