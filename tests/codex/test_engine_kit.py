"""The kit for engines, passed by the real Codex."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.base.clock import LoopClock
from laneway.codex.thread import CodexThread
from laneway.core.hub import Hub
from laneway.core.session import Session, Timing
from laneway.rehearsal.answer import Piece, answer
from laneway.testing.engine_kit import EngineKit, KitScript, KitStage
from laneway.testing.rehearse import rehearsal
from tests.codex.support import Stage
from tests.codex.test_real_death import kill_codex


class CodexScript(KitScript):
    """Codex offers a yes for the session where it asks about edits."""

    def twice(self, work: Path) -> tuple[str, str]:
        path = work.parent / "again.txt"
        return f"%patch {path} one", f"%edit {path} one => two"


@pytest.mark.needs("history_pages")
@pytest.mark.needs("item_before_question")
@pytest.mark.needs("user_questions")
class TestCodex(EngineKit):
    """On a scripted model."""

    @asynccontextmanager
    async def stage(self) -> AsyncIterator[KitStage]:
        requests: list[dict[str, Any]] = []

        def spy(request: dict[str, Any]) -> Iterator[Piece]:
            requests.append(request)
            return answer(request)

        async with rehearsal(spy) as set_up:
            hub = Hub(set_up.engine, LoopClock(), timing=Timing(question_s=60))

            async def kill(session: Session) -> None:
                await kill_codex(Stage(set_up, hub, requests))

            def unknown(session: Session) -> None:
                thread = session._handle.thread
                assert isinstance(thread, CodexThread)
                thread.on_notification("kit/unheardOf", {"threadId": session.thread_id}, b"{}")

            async with hub:
                yield KitStage(
                    hub=hub,
                    work=set_up.work,
                    heard=lambda: msgspec.json.encode(requests[-1]["input"]).decode(),
                    kill=kill,
                    unknown=unknown,
                    another=lambda: Hub(set_up.another_engine(), LoopClock()),
                    script=CodexScript(),
                    has=frozenset({"history_pages", "session_grants"}),
                    spec={"sandbox": "workspace-write", "approval_policy": "on-request"},
                    free={"sandbox": "danger-full-access", "approval_policy": "never"},
                )
