"""The Claude engine keeps what every engine promises, on the real Claude Code."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from laneway.base.clock import LoopClock
from laneway.claude.thread import ClaudeThread
from laneway.core.hub import Hub
from laneway.core.session import Session, Timing
from laneway.testing.engine_kit import EngineKit, KitScript, KitStage
from laneway.testing.rehearse_claude import claude_rehearsal
from tests.claude.support import tool


class ClaudeScript(KitScript):
    def run(self, command: str) -> str:
        """Claude Code refuses commands that only wait, if it sees them."""
        return f"%run {command.replace('sleep ', '$(echo sleep) ')}"

    def twice(self, work: Path) -> tuple[str, str]:
        line = self.run("python3 -c pass")
        return line, line

    def read(self, path: str) -> str:
        return tool("Read", file_path=path)


@asynccontextmanager
async def on_claude() -> AsyncIterator[KitStage]:
    async with claude_rehearsal() as here:
        hub = Hub(here.engine, LoopClock(), timing=Timing(question_s=60))

        async def kill(session: Session) -> None:
            os.kill(thread_of(session).pid or 0, signal.SIGKILL)

        def unknown(session: Session) -> None:
            message = {"type": "kit", "subtype": "unheardOf"}
            thread_of(session)._reader.on_message(message, json.dumps(message).encode())

        async with hub:
            yield KitStage(
                hub=hub,
                work=here.work,
                heard=lambda: json.dumps(here.model.requests[-1]["messages"], ensure_ascii=False),
                kill=kill,
                unknown=unknown,
                another=lambda: Hub(here.another_engine(), LoopClock(), timing=Timing(question_s=60)),
                script=ClaudeScript(),
                has=frozenset({"reads", "words", "session_grants", "history_pages"}),
            )


def thread_of(session: Session) -> ClaudeThread:
    thread = session._handle.thread
    assert isinstance(thread, ClaudeThread)
    return thread


class TestClaude(EngineKit):
    def stage(self) -> AbstractAsyncContextManager[KitStage]:
        return on_claude()
