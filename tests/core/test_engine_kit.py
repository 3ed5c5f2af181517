"""The kit for engines, passed by the hand-driven one: with one process for all threads, and one for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from laneway.base.clock import LoopClock
from laneway.core.hub import Hub
from laneway.core.model import Other
from laneway.core.offers import Offers
from laneway.core.session import Session
from laneway.testing.engine import ALL_OFFERS
from laneway.testing.engine_kit import EngineKit, KitStage
from laneway.testing.hand_player import PlayedEngine, PlayedStore


class HandKit(EngineKit):
    """How a hand-driven engine is set up."""

    shares_process: ClassVar[bool]
    backend: ClassVar[str]
    offers: ClassVar[Offers] = ALL_OFFERS
    work: Path

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.work = tmp_path

    @asynccontextmanager
    async def stage(self) -> AsyncIterator[KitStage]:
        store = PlayedStore()

        def engine() -> PlayedEngine:
            made = PlayedEngine(store, backend=self.backend, shares_process=self.shares_process)
            made.offers = self.offers
            return made

        first = engine()

        async def kill(session: Session) -> None:
            if self.shares_process:
                first.die()
            else:
                first.threads[session.thread_id].die()

        def unknown(session: Session) -> None:
            first.threads[session.thread_id].emit(Other(method="kit/unheardOf"))

        async with Hub(first, LoopClock()) as hub:
            yield KitStage(
                hub=hub,
                work=self.work,
                heard=lambda: store.heard,
                kill=kill,
                unknown=unknown,
                another=lambda: Hub(engine(), LoopClock()),
                has=frozenset({"reads", "words", "session_grants", "history_pages"}),
            )


class TestFewAbilities(HandKit):
    """One that has nothing beyond plain turns."""

    shares_process = False
    backend = "claude"
    offers = Offers()


class TestSharedProcess(HandKit):
    """As Codex: one process runs all threads."""

    shares_process = True
    backend = "codex"


class TestProcessPerThread(HandKit):
    """As Claude: each thread has its own."""

    shares_process = False
    backend = "claude"
