"""Lanes on the real Codex and the real Claude Code, with scripted models, for tests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.app.shared_engine import SharedEngine
from laneway.base.clock import LoopClock
from laneway.core.hub import Hub
from laneway.core.ports import Engine
from laneway.doors.chat.engine_lane import EngineLane
from laneway.doors.chat.lane_engines import LaneKind
from laneway.rehearsal.answer import Piece, answer
from laneway.testing.rehearse import rehearsal
from laneway.testing.rehearse_claude import claude_rehearsal

LONG = "%stream 1000 words over 100 seconds"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cf"
    "c0000003010100c9fe92ef0000000049454e44ae426082"
)
"""One red dot. An image that cannot be read does not reach a model."""
ASKS = "%ask Which colour? blue | red\n%say blue"


class EngineStage(msgspec.Struct, frozen=True):
    """An engine for lanes, and what its model was asked."""

    shared: SharedEngine
    kind: LaneKind
    work: Path
    requests: list[dict[str, Any]]
    key: str
    """Of the conversation, in a request."""

    def lane(self, **changes: Any) -> EngineLane:
        return EngineLane(msgspec.structs.replace(self.kind, **changes), self.shared)

    def heard(self) -> str:
        """The conversation of the latest request, as one text."""
        return json.dumps(self.requests[-1][self.key], ensure_ascii=False)


def shared_engine(make: Any, of: Engine) -> SharedEngine:
    """The engines that `make` gives, one after the other; `of` is never started."""

    @asynccontextmanager
    async def open_hub() -> AsyncIterator[Hub]:
        async with Hub(make(), LoopClock()) as hub:
            yield hub

    async def check(shared: SharedEngine) -> str | None:
        return None

    return SharedEngine(open_hub, lambda: of.offers, check)


@asynccontextmanager
async def on_codex() -> AsyncIterator[EngineStage]:
    requests: list[dict[str, Any]] = []

    def spy(request: dict[str, Any]) -> Iterator[Piece]:
        requests.append(request)
        return answer(request)

    async with rehearsal(spy) as here:
        shared = shared_engine(here.another_engine, here.engine)
        kind = LaneKind(
            name="codex",
            description="OpenAI Codex",
            login="Codex not authenticated. Run 'codex' in terminal to log in.",
            sandbox="danger-full-access",
            approval_policy="never",
        )
        yield EngineStage(shared, kind, here.work, requests, "input")
        await shared.aclose()


@asynccontextmanager
async def on_claude() -> AsyncIterator[EngineStage]:
    async with claude_rehearsal() as here:
        settings = {"permissions": {"allow": ["Bash"]}}
        (here.folder.config / "settings.json").write_text(json.dumps(settings))
        shared = shared_engine(here.another_engine, here.engine)
        kind = LaneKind(
            name="claude",
            description="Claude Code",
            login="Claude not authenticated. Run 'laneway login --engine claude' in terminal to log in.",
            delegates=True,
        )
        yield EngineStage(shared, kind, here.work, here.model.requests, "messages")
        await shared.aclose()
