"""What tests of jobs share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.trees import Tree


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Git knows neither this machine's settings nor a repository around the tests."""
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A repository with one commit of two files."""
    made = Tree(tmp_path)
    made.write("a.txt", "one\n")
    made.write("src/b.txt", "two\n")
    made.commit("the first")
    return made
