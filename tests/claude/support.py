"""The real Claude Code behind a hub, on a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from laneway.base.clock import LoopClock
from laneway.claude.awake import AwakeThreads
from laneway.core.hub import Hub
from laneway.core.ports import ThreadSpec
from laneway.core.session import Session, Timing
from laneway.core.tools import ToolBox
from laneway.rehearsal.messages import ClaudeModel
from laneway.testing.rehearse_claude import ClaudeRehearsal, claude_rehearsal
from tests.codex.support import ME

__all__ = ["ME", "ClaudeStage", "real", "tool"]


class ClaudeStage:
    """A rehearsal, a hub on it, and all requests to the model."""

    def __init__(self, rehearsal: ClaudeRehearsal, hub: Hub) -> None:
        self.rehearsal = rehearsal
        self.hub = hub
        self.model = rehearsal.model
        self.work = rehearsal.work

    def spec(self, **fields: Any) -> ThreadSpec:
        return msgspec.structs.replace(ThreadSpec(cwd=self.work), **fields)

    async def session(self, **fields: Any) -> Session:
        return await self.hub.start(ME, self.spec(**fields))

    def model_input(self) -> str:
        """The conversation in the newest request to the model, as one text."""
        return json.dumps(self.model.requests[-1]["messages"])


@asynccontextmanager
async def real(
    *,
    tools: ToolBox | None = None,
    compose: Callable[[Session], str] = lambda session: "",
    timing: Timing = Timing(question_s=60),  # noqa: B008  frozen
    variables: Mapping[str, str] | None = None,
    model: ClaudeModel | None = None,
    awake: AwakeThreads | None = None,
    deadline_s: float = 90,
) -> AsyncIterator[ClaudeStage]:
    async with claude_rehearsal(variables, model, awake) as rehearsal:
        hub = Hub(rehearsal.engine, LoopClock(), timing=timing, tools=tools, compose=compose)
        async with asyncio.timeout(deadline_s), hub:
            yield ClaudeStage(rehearsal, hub)


def tool(name: str, **arguments: Any) -> str:
    """A line of a script that calls a tool."""
    return f"%tool {name} {json.dumps(arguments)}"
