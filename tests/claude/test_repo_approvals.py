"""Where others can write to a conversation, a repository cannot have Claude ask less than its user wants."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from laneway.claude.access import access_of
from laneway.claude.repo_approvals import policy_against
from laneway.core.model import Answer, Question
from tests.claude.support import real, tool
from tests.codex.support import play


def settings(mode: str | None) -> str:
    return json.dumps({} if mode is None else {"permissions": {"defaultMode": mode}})


@pytest.mark.parametrize(
    ("own", "repository", "expected"),
    [
        (None, None, "on-request"),
        (None, "bypassPermissions", "on-request"),
        ("default", "acceptEdits", "on-request"),
        ("bypassPermissions", "bypassPermissions", None),
        ("plan", None, None),
        ("plan", "bypassPermissions", "on-request"),
        ("acceptEdits", None, None),
    ],
)
@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_only_the_users_own_word_keeps_claude_from_asking(
    tmp_path: Path, own: str | None, repository: str | None, expected: str | None, name: str
) -> None:
    home, folder = tmp_path / "home", tmp_path / "repo" / ".claude"
    home.mkdir()
    folder.mkdir(parents=True)
    (home / "settings.json").write_text(settings(own))
    (folder / name).write_text(settings(repository))
    assert policy_against(str(folder.parent), str(home)) == expected


def test_a_file_that_cannot_be_read_may_say_anything(tmp_path: Path) -> None:
    (tmp_path / "repo" / ".claude").mkdir(parents=True)
    (tmp_path / "repo" / ".claude" / "settings.json").write_text("{")
    (tmp_path / "settings.json").write_text(settings("plan"))
    assert policy_against(str(tmp_path / "repo"), str(tmp_path)) == "on-request"


def test_on_request_is_the_mode_in_which_claude_asks() -> None:
    assert access_of(None, "on-request").mode == "default"


async def test_the_real_claude_asks_on_request_whatever_mode_its_settings_have() -> None:
    """What we ask for goes before every file."""
    async with real() as here:
        (here.rehearsal.folder.config / "settings.json").write_text(settings("acceptEdits"))
        write = tool("Write", file_path=str(here.work / "a.txt"), content="a")
        asked: list[Question] = []

        def decide(question: Question) -> Answer:
            asked.append(question)
            return Answer(choice_id="decline")

        free = await here.session()
        await play(free, write, "%say done", decide=decide)
        assert asked == []
        told_to_ask = await here.session(approval_policy="on-request")
        await play(told_to_ask, write.replace("a.txt", "b.txt"), "%say done", decide=decide)
        assert len(asked) == 1
        assert sorted(path.name for path in here.work.glob("*.txt")) == ["a.txt"]
