"""A full disk, a read-only one, a write that is cut short: the mail that was there stays whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.store.test_disk import ALONE, can_mount  # noqa: F401  the conditions below call it

ROOT = Path(__file__).resolve().parent.parent.parent


def outcomes(mode: str, root: Path) -> list[Any]:
    before = () if mode == "limited" else ALONE
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [*before, sys.executable, "-m", "tests.mail.worker", mode, str(root)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=env, timeout=60, cwd=ROOT)
    return [json.loads(line) for line in told.stdout.splitlines()]


def check(mode: str, word: str, root: Path) -> None:
    hindered, relieved = outcomes(mode, root)
    for name, text in hindered["attempts"].items():
        assert word in text, (name, text)
        assert text.endswith("."), (name, text)
    nothing = {"problems": 0, "leftovers": []}
    assert hindered["disk"] == {
        **nothing, "texts": ["zero"], "read": [False], "members": ["team-lead", "codex"],
    }  # fmt: skip
    assert set(relieved["attempts"].values()) == {"ok"}
    assert relieved["disk"] == {
        **nothing, "texts": ["zero", "2"], "read": [True, False], "members": ["team-lead", "codex", "n2"],
    }  # fmt: skip


@pytest.mark.skipif("not can_mount()", reason="a small disk of our own needs user namespaces (Linux)")
def test_a_full_disk_costs_no_mail(tmp_path: Path) -> None:
    """Sending, marking, joining and spooling each say so in a sentence, and leave nothing half-written."""
    check("full", "space", tmp_path)


@pytest.mark.skipif("not can_mount()", reason="a disk that turns read-only needs user namespaces (Linux)")
def test_a_read_only_disk_costs_no_mail(tmp_path: Path) -> None:
    """Reading goes on."""
    check("read_only", "permissions", tmp_path)


def test_a_write_that_is_cut_short_costs_no_mail(tmp_path: Path) -> None:
    """The old file is whole, the new one is not there."""
    check("limited", "", tmp_path)
