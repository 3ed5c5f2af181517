"""The real Codex behind a hub, on a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from laneway.base.clock import LoopClock
from laneway.core.hub import Hub
from laneway.core.model import Answer, Asked, Event, Question
from laneway.core.ports import ThreadSpec
from laneway.core.session import Session, Timing
from laneway.core.tools import ToolBox
from laneway.core.turn import TurnResult
from laneway.rehearsal.answer import Piece, answer
from laneway.testing.rehearse import Rehearsal, rehearsal
from laneway.testing.turns import first as first  # also for tests that import them from here
from laneway.testing.turns import only as only
from laneway.testing.turns import say as say

ME = "me"


class Stage:
    """A rehearsal, a hub on it, and all requests to the model."""

    def __init__(self, set_up: Rehearsal, hub: Hub, requests: list[dict[str, Any]]) -> None:
        self.rehearsal = set_up
        self.hub = hub
        self.requests = requests

    def spec(self, **fields: Any) -> ThreadSpec:
        base = ThreadSpec(cwd=self.rehearsal.work, sandbox="workspace-write", approval_policy="on-request")
        return msgspec.structs.replace(base, **fields)

    async def session(self, **fields: Any) -> Session:
        return await self.hub.start(ME, self.spec(**fields))

    def model_input(self) -> str:
        """The input of the newest request to the model, as one text."""
        return msgspec.json.encode(self.requests[-1]["input"]).decode()


@asynccontextmanager
async def real(
    *,
    model: str = "gpt-5.5",
    tools: ToolBox | None = None,
    compose: Callable[[Session], str] = lambda session: "",
    timing: Timing = Timing(question_s=60),  # noqa: B008  frozen
    deadline_s: float = 90,
) -> AsyncIterator[Stage]:
    requests: list[dict[str, Any]] = []

    def spy(request: dict[str, Any]) -> Iterator[Piece]:
        requests.append(request)
        return answer(request)

    async with rehearsal(spy, model) as set_up:
        hub = Hub(set_up.engine, LoopClock(), timing=timing, tools=tools, compose=compose)
        async with asyncio.timeout(deadline_s), hub:
            yield Stage(set_up, hub, requests)


async def play(
    session: Session, *lines: str, decide: Callable[[Question], Answer] | None = None
) -> tuple[list[Event], TurnResult]:
    """Run one turn to its end; questions are answered by `decide`."""
    turn = say(session, *lines)
    events: list[Event] = []
    async for event in turn.events:
        events.append(event)
        if isinstance(event, Asked) and decide is not None:
            await session.answer(event.question.question_id, decide(event.question))
    return events, await turn.result()
