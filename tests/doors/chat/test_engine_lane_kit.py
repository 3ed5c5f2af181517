"""The kit for lanes, passed by the lanes of the real Codex and of the real Claude Code."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from laneway.testing.lane_kit import LaneKit, LaneStage
from tests.doors.chat.engine_lanes import ASKS, LONG, EngineStage, on_claude, on_codex


def lane_stage(here: EngineStage) -> LaneStage:
    return LaneStage(
        make=here.lane,
        cwd=here.work,
        long=LONG,
        asks=ASKS,
        fails="%fail 500 the model is away",
        dies="%run kill -9 $PPID",
        heard=here.heard,
    )


class TestCodexLane(LaneKit):
    @asynccontextmanager
    async def stage(self) -> AsyncIterator[LaneStage]:
        async with on_codex() as here:
            yield lane_stage(here)


class TestClaudeLane(LaneKit):
    @asynccontextmanager
    async def stage(self) -> AsyncIterator[LaneStage]:
        async with on_claude() as here:
            yield lane_stage(here)
