"""A full disk, a read-only folder, a write that the system cuts short: the old files stay whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import StoreError
from tests.store.support import Worker, entry, store_at

ALONE = ("unshare", "--map-root-user", "--mount")
"""A namespace of our own, where even an ordinary user may mount; it goes with its process."""


@cache
def can_mount() -> bool:
    if sys.platform != "linux" or not shutil.which("unshare"):
        return False
    probe = [*ALONE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


def outcomes(mode: str, root: Path) -> list[Any]:
    before = () if mode == "limited" else ALONE
    with Worker(mode, root, before=before) as worker:
        told = [worker.hear() for _ in range(3)]
        assert worker.process.wait() == 0
    return told


def check(told: list[Any], word: str, *, in_place: str) -> None:
    """Written, hindered without loss, written again."""
    ok = dict.fromkeys(("registry", "audit", "summary", "database", "input"), "ok")
    whole = {"problems": [], "damaged": 0, "leftovers": []}
    first = {**whole, "tags": ["1"], "audit": True, "summary": "1", "database": "1", "inputs": ["1"]}
    last = {**whole, "tags": ["3"], "audit": True, "summary": "3", "database": "3", "inputs": ["1", "3"]}
    assert told[0] == {"attempts": ok, "found": first}
    for name, text in told[1]["attempts"].items():
        assert word in text, (name, text)
        assert in_place in text, (name, text)
        assert text.endswith("."), (name, text)
    assert told[1]["found"] == first
    assert told[2] == {"attempts": ok, "found": last}


@pytest.mark.skipif("not can_mount()", reason="a small disk of our own needs user namespaces (Linux)")
def test_a_full_disk_costs_nothing_that_was_saved(tmp_path: Path) -> None:
    """Every writer says so in a sentence, and works again as soon as there is space."""
    check(outcomes("full", tmp_path), "space", in_place=str(tmp_path))


@pytest.mark.skipif("not can_mount()", reason="a disk that turns read-only needs user namespaces (Linux)")
def test_a_disk_that_turns_read_only_costs_nothing_that_was_saved(tmp_path: Path) -> None:
    """Looking goes on; writing says what to check."""
    check(outcomes("read_only", tmp_path), "permissions", in_place=str(tmp_path))


def test_a_write_that_is_cut_short_costs_nothing_that_was_saved(tmp_path: Path) -> None:
    """The system stops each write at its tenth byte."""
    check(outcomes("limited", tmp_path), "", in_place=str(tmp_path))


def test_a_read_only_folder_is_told_in_a_sentence(tmp_path: Path) -> None:
    """Before anything was written, too."""
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):
        pytest.skip("root may write everywhere; the test of the read-only disk shows the same")
    store = store_at(tmp_path)
    assert store.view().entries == ()
    with pytest.raises(StoreError, match=r"may not write .*permissions"):
        store.claim("codex")


def test_a_folder_that_is_a_file_is_told_in_a_sentence(tmp_path: Path) -> None:
    """And left as it is."""
    (tmp_path / "crew").write_text("mine")
    with pytest.raises(StoreError, match="another kind"):
        store_at(tmp_path).claim("codex")
    assert (tmp_path / "crew").read_text() == "mine"


def test_a_change_that_could_not_be_written_is_not_remembered_either(tmp_path: Path) -> None:
    """Memory never knows more than the disk."""
    store = store_at(tmp_path)
    with store.claim("codex") as claim:
        claim.registry.update(entry("a"))
        home = store.layout.home("codex")
        home.rename(tmp_path / "away")
        home.write_text("in the way")
        with pytest.raises(StoreError):
            claim.registry.update(entry("b"))
        assert [e.agent_id for e in claim.registry.entries()] == ["a"]
        home.unlink()
        claim.registry.update(entry("c"))
        assert [e.agent_id for e in store.view().entries] == ["a", "c"]
