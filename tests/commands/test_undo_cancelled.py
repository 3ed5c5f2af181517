"""A cancel that meets `/undo`: it stops it, unless Codex has been asked already: then it waits."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from laneway.commands import slash as commands
from laneway.commands import undo_command
from laneway.commands.slash import Invocation
from laneway.commands.undo import LastTurn
from tests.commands.hand_session import HandSession
from tests.doors.acp.repos import Repo, files
from tests.doors.acp.support import DEADLINE_S, stage

EDIT = "diff --git a/a b/a\nindex 1..2\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n"
DONE = (
    "The last turn is taken back: Codex no longer knows of it. Its edits are out of the files again: `a`. "
    "What shell commands changed is not undone; see what is there with /diff."
)


class SlowSession(HandSession):
    """Its Codex answers when the test says so."""

    def __init__(self, cwd: Path) -> None:
        super().__init__(cwd)
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def codex(self, method: str, params: dict[str, Any]) -> Any:
        self.is_asked.set()
        await self.may_answer.wait()
        return await super().codex(method, params)


@pytest.fixture
async def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlowSession:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "a").write_text("new\n")
    made = SlowSession(tmp_path)
    made.turns = [LastTurn("u1", diff=EDIT)]
    made.answers["thread/revert"] = {}
    return made


async def asked(session: SlowSession) -> asyncio.Task[str | None]:
    """An `/undo` that waits for Codex."""
    task = asyncio.get_running_loop().create_task(commands.run(session, Invocation("undo")))
    async with asyncio.timeout(DEADLINE_S):
        await session.is_asked.wait()
    return task


async def test_what_codex_was_asked_to_take_back_leaves_the_files_too(session: SlowSession) -> None:
    """However often it is cancelled: conversation and files go together, the person is told, then it ends."""
    task = await asked(session)
    for _ in range(2):
        task.cancel()
        await asyncio.wait((task,), timeout=0)
    session.may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (session.cwd / "a").read_text() == "old\n"
    assert session.last_turn is None
    assert session.said == [DONE]


async def test_a_cancel_before_the_conversation_changes_leaves_all_as_it_is(session: SlowSession) -> None:
    """Here while it still asks which turn was the last."""
    session.turns = []
    task = await asked(session)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert session.done == []
    assert session.said == []


async def test_a_codex_that_never_answers_holds_nobody(session: SlowSession) -> None:
    """What it did is not known, and that is said; the files stay."""
    await undo_command.undo(session, timeout_s=0)
    assert session.said == [
        "Codex did not say within 0 seconds whether the last turn is taken back. "
        "The files were left as they are."
    ]
    assert (session.cwd / "a").read_text() == "new\n"
    assert session.last_turn is not None


GIT = """\
#!/bin/sh
case "$*" in *"--whitespace=nowarn -") echo > {reached}; read _ < {gate};; esac
exec {git} "$@"
"""
"""The user's git, which waits before it changes a file."""


async def test_a_client_that_cancels_is_told_what_was_done_before_its_prompt_ends(tmp_path: Path) -> None:
    """With the real Codex, while the files are put back."""
    reached, gate = tmp_path / "reached", tmp_path / "gate"
    os.mkfifo(reached)
    os.mkfifo(gate)
    script = tmp_path / "bin" / "git"
    script.parent.mkdir()
    script.write_text(GIT.format(reached=reached, gate=gate, git=shutil.which("git")))
    script.chmod(0o755)
    path = {"PATH": f"{script.parent}:{os.environ['PATH']}"}
    async with stage(tmp_path) as here, here.agent(env=path) as client:
        Repo(here.work)
        session = await client.new()
        await client.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
        await client.prompt(session, "%patch a.txt one")
        await client.prompt(session, "%patch b.txt two")
        prompt = client.start_prompt(session, "/undo")
        await asyncio.to_thread(reached.read_text)
        client.cancel(session)
        await client.ask("session/list", {})  # answered: the cancel has arrived
        await asyncio.to_thread(gate.write_text, "\n")
        assert await prompt == {"stopReason": "cancelled"}
        assert "out of the files again: `b.txt`" in client.messages(session)[-1]
        assert files(here.work) == {"a.txt": b"one\n"}
        await client.prompt(session, "And now?")
        assert "b.txt" not in str(here.requests[-1]["input"])
