"""Copies of files from before a change: private, in our own folder, and not for ever."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from laneway.cli.clients import backups, files


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_copies_never_replace_each_other(tmp_path: Path) -> None:
    """Within one instant too; for the user alone, whatever the file was."""
    file = tmp_path / "x.json"
    file.write_text("{}")
    file.chmod(0o644)
    where = tmp_path / "state" / "backups"
    kept = [backups.back_up(files.read(file), where) for _ in range(3)]
    assert len(set(kept)) == 3
    assert all(path is not None and (path.read_text(), mode(path)) == ("{}", 0o600) for path in kept)
    assert (mode(where), mode(where.parent)) == (0o700, 0o700)
    assert backups.back_up(files.read(tmp_path / "none"), where) is None


def test_any_name_becomes_the_name_of_a_copy(tmp_path: Path) -> None:
    """Long, or in letters that a disk may not take."""
    for name in ("x" * 250, "é\nñ.json", "日本.json"):
        file = tmp_path / name
        file.write_text(name)
        kept = backups.back_up(files.read(file), tmp_path / "backups")
        assert kept is not None
        assert kept.read_text() == name
        assert "/" not in kept.name
        assert "\n" not in kept.name


def test_old_copies_go_by_number_and_by_age(tmp_path: Path) -> None:
    """The newest stay."""
    for number in range(backups.MAX_KEPT + 5):
        (tmp_path / f"{number:04}").write_text("")
    backups.tidy(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [f"{number:04}" for number in range(5, backups.MAX_KEPT + 5)]
    old = time.time() - backups.MAX_AGE_S - 1
    os.utime(tmp_path / "0007", (old, old))
    backups.tidy(tmp_path)
    assert "0007" not in os.listdir(tmp_path)
    assert len(os.listdir(tmp_path)) == backups.MAX_KEPT - 1
    backups.tidy(tmp_path / "none")


def test_copies_that_earlier_versions_left_are_found(tmp_path: Path) -> None:
    """Beside the file, and beside what its link leads to; nothing else is taken for one."""
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "claude.json"
    real.write_text("{}")
    file = tmp_path / ".claude.json"
    file.symlink_to(real)
    marks = [
        tmp_path / ".claude.json.laneway-backup-20260101T000000Z",
        tmp_path / "dotfiles" / "claude.json.laneway-backup-20260101T000000Z-2",
    ]
    for path in (*marks, tmp_path / ".claude.json.bak", tmp_path / "other.json.laneway-backup-1"):
        path.write_text("")
    (tmp_path / ".claude.json.laneway-backup-link").symlink_to(real)
    assert backups.beside([file, tmp_path / "none" / "x.json"]) == sorted(marks)
