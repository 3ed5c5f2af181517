"""Which folder another machine is to work in."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.base.errors import UsageError
from laneway.jobs.nodes.placing import moved_scope, placed, placed_for


def test_a_folder_is_in_the_innermost_repository_around_it(tmp_path: Path) -> None:
    """By its real path; a name that only begins alike is another folder."""
    (tmp_path / "site" / "docs").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "site")
    known = {"site": tmp_path / "site", "docs": tmp_path / "site" / "docs"}

    def place(named: str | None, cwd: Path = tmp_path) -> tuple[str, str] | None:
        found = placed(cwd, named, known)
        return (found.repository, found.path) if found else None

    assert place("site") == ("site", "")
    assert place(None, tmp_path / "site") == ("site", "")
    assert place("site/src/../lib/x") == ("site", "lib/x")
    assert place("site/docs/a") == ("docs", "a")
    assert place("link/src") == ("site", "src")
    assert place("site/../site-2") is None
    assert place("/") is None
    assert placed(tmp_path, "any/where", {"all": Path("/")}) is not None


def test_a_home_is_written_with_a_tilde(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    found = placed(Path("/"), "~/site/src", {"site": Path("~/site")})
    assert found is not None
    assert (found.repository, found.path, found.top) == ("site", "src", str(tmp_path / "site"))


@pytest.mark.covers("J-nodes.2")
def test_a_folder_without_a_name_is_one_sentence_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as problem:
        placed_for("gpu1", tmp_path, "src", {})
    assert str(problem.value) == (
        f"{tmp_path}/src is in no repository of jobs.repositories, so gpu1 cannot know which folder is meant:"
        " `laneway config set jobs.repositories.NAME PATH`, here and on gpu1."
    )


def test_a_scope_moves_along_with_its_repository() -> None:
    """What is relative, or elsewhere, stays as it is: the other side judges it."""
    assert moved_scope(("/a/site/src/**", "lib/*.py", "/b/c"), "/a/site") == ("src/**", "lib/*.py", "/b/c")
