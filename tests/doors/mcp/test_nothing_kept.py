"""What is left of a turn when it is over: nothing. Counted by objects, over hundreds of turns."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.base.clock import LoopClock
from laneway.codex.legacy import LegacyEvents
from laneway.core.hub import Hub
from laneway.core.model import Activity, Plan, PlanStep
from laneway.core.named.sessions import NamedSessions
from laneway.core.ports import TurnSpec
from laneway.doors.mcp.eras import McpClient
from laneway.doors.mcp.names import AGENTS
from laneway.doors.mcp.presets import SessionDefaults
from laneway.doors.mcp.server import Call
from laneway.doors.mcp.session_tools import SessionTools
from laneway.store.records import StoreRecords
from laneway.store.store import Store
from laneway.testing.engine import HandEngine, HandThread

WARM_TURNS = 150
"""Until what is bounded has reached its bound: asyncio lets a hundred cancelled timers lie."""
TURNS = 300


class Busy(HandThread):
    """Every turn says, does and plans something, and is done."""

    async def start_turn(self, ticket: str, spec: TurnSpec) -> str:
        turn_id = await super().start_turn(ticket, spec)
        self.started.clear()
        item = f"item-{turn_id}"
        begun = Activity(turn_id=turn_id, item_id=item, kind="command", title="ls", status="running")
        self.emit(begun)
        self.emit(
            Activity(
                turn_id=turn_id, item_id=item, kind="command", title="ls", status="completed", output="x"
            )
        )
        self.emit(Plan(turn_id=turn_id, steps=(PlanStep(text="one", status="completed"),)))
        self.say("hello", f"text-{turn_id}")
        self.end(text="hello")
        return turn_id


class Line:
    """A client that takes everything and says nothing."""

    def notify(self, method: str, params: Any) -> bool:
        return True

    async def call(self, method: str, params: Any) -> Any:
        raise AssertionError("nobody is asked")


@asynccontextmanager
async def desk(root: Path) -> AsyncIterator[tuple[SessionTools, NamedSessions]]:
    engine, clock = HandEngine(), LoopClock()
    engine.kind = Busy
    async with NamedSessions(
        Hub(engine, clock), StoreRecords(Store(root, "crew")), clock, summaries=False
    ) as all_:
        yield (
            SessionTools(
                all_, clock, SessionDefaults(cwd=root, base_dir=root), AGENTS, lambda: LegacyEvents("compact")
            ),
            all_,
        )


def call(number: int) -> Call:
    return Call(
        principal="me",
        client=McpClient(version="2025-06-18"),
        channel=Line(),
        interests=None,  # type: ignore[arg-type]
        request_id=str(number).encode(),
        params={},
        meta={"progressToken": number},
    )


def alive() -> Counter[str]:
    """Objects of ours, and what a turn is made of elsewhere, by type."""
    gc.collect()
    kinds = (type(each) for each in gc.get_objects())
    return Counter(
        f"{kind.__module__}.{kind.__name__}"
        for kind in kinds
        if str(kind.__module__).startswith("laneway") or kind in (asyncio.Task, asyncio.Future)
    )


async def left_of(
    turn: Callable[[int], Awaitable[object]], settle: Callable[[], Awaitable[None]]
) -> dict[str, int]:
    """Which objects are more after many turns than after some."""
    for number in range(WARM_TURNS):
        await turn(number)
    await settle()
    before = alive()
    for number in range(TURNS):
        await turn(number)
    await settle()
    after = alive()
    return {kind: count - before[kind] for kind, count in after.items() if count - before[kind] > TURNS // 20}


async def test_turns_of_one_session_leave_nothing_behind(tmp_path: Path) -> None:
    async with desk(tmp_path) as (served, everybody):
        first = await served.codex(call(0), {"prompt": "hi"})
        agent_id = first["structuredContent"]["agent_id"]
        (named,) = everybody.live()

        async def settle() -> None:
            await everybody._audit.flush()
            await named.writer.flush()

        left = await left_of(
            lambda number: served.reply(call(number), {"prompt": "x", "agent_id": agent_id}), settle
        )
    assert left == {}


async def test_sessions_that_come_and_go_leave_nothing_behind(tmp_path: Path) -> None:
    """But their rows in a file, which has a bound of its own."""
    async with desk(tmp_path) as (served, everybody):
        engine = everybody.hub.engine
        assert isinstance(engine, HandEngine)

        async def session(number: int) -> None:
            opened = await served.codex(call(number), {"prompt": "hi", "identity": "dev"})
            await everybody.close("me", agent_id=opened["structuredContent"]["agent_id"])
            # The engine of the test keeps what was asked of it; a real one gives threads back.
            engine.threads.clear()
            engine.specs.clear()

        async def settle() -> None:
            await everybody._audit.flush()

        left = await left_of(session, settle)
    assert {kind: count for kind, count in left.items() if not kind.startswith("laneway.store")} == {}
