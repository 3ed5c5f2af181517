"""A conversation on the real Claude Code and the real Codex, with scripted models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.lanes.contract import Lane
from tests.doors.chat.chats import Talk, chatting
from tests.doors.chat.engine_lanes import EngineStage, on_claude, on_codex

DEADLINE_S = 90


class RealLanes:
    """The `LaneFactory` of both engines. An engine is started by its first turn."""

    problems: tuple[str, ...] = ()

    def __init__(self, claude: EngineStage, codex: EngineStage, changes: dict[str, Any]) -> None:
        self.stages = {"claude": claude, "codex": codex}
        self._changes = changes

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.stages)

    def make(self, name: str, cwd: Path) -> Lane:
        return self.stages[name].lane(**(self._changes if name == "codex" else {}))


class RealTalk(msgspec.Struct, frozen=True):
    talk: Talk
    lanes: RealLanes
    folder: Path

    @property
    def claude(self) -> EngineStage:
        return self.lanes.stages["claude"]

    @property
    def codex(self) -> EngineStage:
        return self.lanes.stages["codex"]

    @asynccontextmanager
    async def restarted(self, **options: Any) -> AsyncIterator[RealTalk]:
        """The same store under a service of its own; end the first one before."""
        async with chatting(self.folder, self.lanes, cwd=self.codex.work, **options) as chat:
            talk = Talk(chat)
            await talk.join()
            yield RealTalk(talk, self.lanes, self.folder)


@asynccontextmanager
async def real_lanes(**codex: Any) -> AsyncIterator[RealLanes]:
    """`codex` changes the kind of the Codex lane."""
    async with asyncio.timeout(DEADLINE_S), on_claude() as claude, on_codex() as stage:
        yield RealLanes(claude, stage, codex)


@asynccontextmanager
async def real_talk(
    folder: Path, *, codex: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[RealTalk]:
    async with (
        real_lanes(**(codex or {})) as lanes,
        chatting(folder, lanes, cwd=lanes.stages["codex"].work, **options) as chat,
    ):
        talk = Talk(chat)
        await talk.join()
        yield RealTalk(talk, lanes, folder)
