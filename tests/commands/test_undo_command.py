"""`/undo` at a session that is worked by hand, on real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import EngineRefused
from laneway.commands import slash as commands
from laneway.commands.slash import Invocation
from laneway.commands.undo import LastTurn
from laneway.core.model import FileChange
from tests.commands.hand_session import HandSession

EDIT = "diff --git a/a b/a\nindex 1..2\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HandSession:
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    return HandSession(tmp_path)


async def undo(session: HandSession) -> str:
    """Returns what was said."""
    assert await commands.run(session, Invocation("undo")) is None
    return session.said[-1]


async def test_undo_takes_back_the_turn_and_its_edits(session: HandSession) -> None:
    """The conversation first, then the files; the turn before is the last one then."""
    (session.cwd / "a").write_text("new\n")
    session.turns = [LastTurn("u1"), LastTurn("u2", diff=EDIT)]
    session.answers["thread/revert"] = {}
    assert await undo(session) == (
        "The last turn is taken back: Codex no longer knows of it. "
        "Its edits are out of the files again: `a`. "
        "What shell commands changed is not undone; see what is there with /diff."
    )
    assert (session.cwd / "a").read_text() == "old\n"
    assert session.done == [("thread/revert", {"threadId": "t1", "beforeTurnId": "u2"})]
    assert session.last_turn == LastTurn("u1")


async def test_undo_leaves_files_that_changed_since(session: HandSession) -> None:
    """The turn is taken back all the same, and the file is named."""
    (session.cwd / "a").write_text("mine\n")
    session.turns = [LastTurn("u1", diff=EDIT)]
    session.answers["thread/revert"] = {}
    assert "Its edits were left in the files, because a changed after the turn." in await undo(session)
    assert (session.cwd / "a").read_text() == "mine\n"


async def test_a_refused_undo_changes_nothing(session: HandSession) -> None:
    """Neither a file nor what is remembered; the reason is Codex's."""
    (session.cwd / "a").write_text("new\n")
    session.turns = [LastTurn("u1", diff=EDIT)]
    reason = "thread/revert only supports paginated threads"
    session.answers["thread/revert"] = EngineRefused("thread/revert", -32600, reason)
    assert await undo(session) == f"/undo failed, because Codex refused it: {reason}"
    assert (session.cwd / "a").read_text() == "new\n"
    assert session.last_turn is not None
    assert len(session.done) == 1


async def test_an_older_codex_is_asked_in_its_own_words(session: HandSession) -> None:
    """Before 0.163 it was called a rollback."""
    session.turns = [LastTurn("u1")]
    session.answers["thread/rollback"] = {}
    assert "It had edited no files." in await undo(session)
    assert session.done[1:] == [("thread/rollback", {"threadId": "t1", "numTurns": 1})]


async def test_a_session_taken_up_again_undoes_its_newest_turn_without_its_edits(
    session: HandSession,
) -> None:
    """Nobody kept what it edited, and that is said."""
    session.answers |= {"thread/turns/list": {"data": [{"id": "u9"}]}, "thread/revert": {}}
    assert "it is not known what it edited" in await undo(session)
    assert session.done[-1] == ("thread/revert", {"threadId": "t1", "beforeTurnId": "u9"})


async def test_edits_that_came_to_nothing_are_no_edits(session: HandSession) -> None:
    """Made and unmade in one turn; and edits without a diff are not guessed at."""
    change = FileChange(path="/w/a", kind="update", diff="@@")
    session.turns = [LastTurn("u1", (change,), None), LastTurn("u2", (change,), "")]
    session.answers["thread/revert"] = {}
    assert "It had edited no files." in await undo(session)
    assert "it is not known what it edited" in await undo(session)


@pytest.mark.parametrize("answer", [{"data": []}, EngineRefused("thread/turns/list", -32600, "not yet")])
async def test_there_is_nothing_to_undo_in_a_new_session(session: HandSession, answer: Any) -> None:
    """Codex says it one way or the other."""
    session.answers["thread/turns/list"] = answer
    assert await undo(session) == "There is no turn to undo yet."
