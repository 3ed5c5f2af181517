"""Claude gives work to Codex by its tool: the real Claude Code, our tool, the real Codex, scripted models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from laneway.core.model import Activity, Text, TurnDone
from laneway.core.tools import Caller
from laneway.doors.chat.delegation import delegation_tools
from laneway.doors.chat.ports import DelegatingHost
from laneway.lanes.contract import Lane
from laneway.testing.lane_host import HeardLane
from tests.doors.chat.engine_lanes import LONG, EngineStage, on_claude, on_codex

DEADLINE_S = 90


class Delegator(HeardLane):
    """The host of a lane that may give work to another one."""

    def __init__(self, lane: Lane, worker: HeardLane) -> None:
        super().__init__(lane)
        self.worker = worker
        self.tasks: list[str] = []

    @property
    def delegates(self) -> Mapping[str, str]:
        return {self.worker.lane.name: self.worker.lane.description}

    async def delegate(self, lane: str, task: str) -> str:
        self.tasks.append(task)
        ticket = self.worker.begin(task)
        try:
            done = await self.worker.ended(ticket)
        except asyncio.CancelledError:
            await self.worker.lane.interrupt()
            raise
        return f"codex {done.status}: {done.text}"


@asynccontextmanager
async def delegating() -> AsyncIterator[tuple[EngineStage, Delegator]]:
    async with asyncio.timeout(DEADLINE_S), on_claude() as claude, on_codex() as codex:
        worker = HeardLane(codex.lane())
        await worker.lane.open(codex.work, worker)
        host = Delegator(claude.lane(), worker)
        await host.lane.open(claude.work, host)
        try:
            yield claude, host
        finally:
            await host.lane.close()
            await worker.lane.close()


def script(task: str) -> str:
    return f"%tool mcp__laneway__codex {json.dumps({'task': task})}\n%say passed on"


async def test_claude_has_codex_do_a_task_and_gets_what_it_did() -> None:
    """The result of its tool is the text that the conversation gives back."""
    async with delegating() as (claude, host):
        done = await host.play(script("%run echo painted\n%say the shed is red"))
        assert done.status == "completed"
        assert host.words.endswith("passed on")
        assert host.tasks == ["%run echo painted\n%say the shed is red"]
        assert "codex completed: the shed is red" in claude.heard()
        assert [event.status for event in host.worker.only(Activity)][-1] == "completed"


async def test_a_stop_of_claude_stops_the_delegated_turn() -> None:
    """The call is cancelled, and Codex with it."""
    async with delegating() as (_, host):
        ticket = host.begin(script(LONG))
        await host.worker.wait(Text)
        await host.lane.interrupt()
        assert (await host.ended(ticket)).status == "interrupted"
        assert (await host.worker.wait(TurnDone)).status == "interrupted"
        assert (await host.play("%say on")).status == "completed"


async def test_only_a_host_with_other_lanes_offers_them() -> None:
    """A lane by itself has nobody to give work to."""
    async with delegating() as (_, host):
        assert isinstance(host, DelegatingHost)
        (tool,) = delegation_tools(host)
        assert tool.name == "codex"
        refused = await tool.handler(Caller(agent_id="a"), {"task": "  "})
        assert refused.is_error
        assert delegation_tools(host.worker) == ()
