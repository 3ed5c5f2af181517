"""What a model is told about its session: true, short, and not to be forged by a folder's name (FR-2)."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.context import MAX_CHARS
from laneway.core.named.briefing import (
    HEAD,
    MAX_VALUE_CHARS,
    WorkFolder,
    briefing,
    work_folder_of,
    working_folder,
)


def read(text: str) -> dict[str, str | None]:
    """The facts, as a careful reader gets them back."""
    head, *lines = text.split("\n")
    assert head == HEAD
    pairs = (line.partition(": ") for line in lines)
    return {name: json.loads(value) for name, _, value in pairs}


def repository(root: Path, head: str) -> Path:
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text(head)
    (root / "deep" / "down").mkdir(parents=True)
    return root


def test_fr_2_1_all_facts_are_told(tmp_path: Path) -> None:
    """Identity, team, root, name, branch, folder."""
    root = repository(tmp_path / "project", "ref: refs/heads/feature/lane\n")
    cwd = root / "deep" / "down"
    assert briefing("codex", "crew", work_folder_of(cwd)) == "\n".join(
        [
            HEAD,
            'identity: "codex"',
            'team: "crew"',
            f'repo_root: "{root}"',
            'repo_name: "project"',
            'branch: "feature/lane"',
            f'cwd: "{cwd}"',
        ]
    )


def test_fr_2_4_outside_of_git_there_is_null_and_nothing_made_up(tmp_path: Path) -> None:
    """Neither root nor name comes from the folder."""
    told = read(briefing(None, "crew", work_folder_of(tmp_path)))
    assert told == {
        "identity": None,
        "team": "crew",
        "repo_root": None,
        "repo_name": None,
        "branch": None,
        "cwd": str(tmp_path),
    }


def test_a_detached_head_is_told_by_its_commit(tmp_path: Path) -> None:
    """It has no branch."""
    root = repository(tmp_path / "project", "0123456789abcdef0123456789abcdef01234567\n")
    told = read(briefing("codex", "crew", work_folder_of(root)))
    assert (told["branch"], told["commit"]) == (None, "0123456789ab")


def test_a_head_that_says_nothing_gives_neither_branch_nor_commit(tmp_path: Path) -> None:
    """Half-written or foreign."""
    root = repository(tmp_path / "project", "whatever\n")
    told = read(briefing("codex", "crew", work_folder_of(root)))
    assert told["branch"] is None
    assert "commit" not in told


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_no_name_can_break_out_of_its_line(identity: str, branch: str, folder: str) -> None:
    """Whatever is in it, it is read back as it was, and nothing else is added."""
    place = WorkFolder(cwd=folder, repo_root=folder, repo_name=folder, branch=branch)
    text = briefing(identity, "crew", place)
    assert text.replace("\n", "").isprintable()
    assert not set(text) & set("<>")
    assert len(text.splitlines()) == 7
    told = read(text)
    assert (told["identity"], told["branch"], told["cwd"]) == (identity, branch, folder)


@given(st.text(min_size=1, max_size=3), st.integers(300, 2000))
def test_values_of_any_length_leave_room_for_the_others(piece: str, times: int) -> None:
    """Codex cuts at a bound; we stay below it, with every line whole."""
    long = piece * times
    text = briefing(long, "crew", WorkFolder(cwd=long, repo_root=long, repo_name=long[:255], branch=long))
    assert max(map(len, text.split("\n"))) <= MAX_VALUE_CHARS + 20
    assert len(text) < MAX_CHARS
    assert set(read(text)) == {"identity", "team", "repo_root", "repo_name", "branch", "cwd"}


def test_bytes_that_are_no_text_are_told_as_such() -> None:
    """A folder's name may be anything but NUL and a slash."""
    told = briefing("codex", "crew", WorkFolder(cwd="/x\udcff"))
    assert told.endswith('cwd: "/x\\udcff"')


def test_fr_2_4_a_session_works_where_it_was_asked_to_else_in_the_root(tmp_path: Path) -> None:
    """Outside of git it works where we are; a relative folder is one of ours."""
    root = repository(tmp_path / "project", "ref: refs/heads/main\n")
    assert working_folder(None, root / "deep" / "down") == root
    assert working_folder(None, tmp_path) == tmp_path
    assert working_folder(Path("deep"), root) == root / "deep"
    assert working_folder(tmp_path, root) == tmp_path
