"""Backups of clients' configs from before we changed them: in our state folder, readable by the user alone.

Never beside the file: there a copy could be committed to a repository, and a file with a token
would have a forgotten twin. Old copies are removed, by number and by age.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from laneway.base.paths import state_home
from laneway.cli.clients.files import FileSnapshot
from laneway.store.files import make_folder, write_whole

MAX_KEPT = 100
"""Copies of all files together: years of changes by hand, and some megabytes at most for most people."""
MAX_AGE_S = 180 * 24 * 60 * 60
"""Half a year: nobody misses the old file after that."""
MAX_NAME_CHARS = 100
"""Of the original name within the copy's name, which may have 255 bytes in all."""
OLD_MARK = ".laneway-backup-"
"""In the names of copies that earlier versions left beside a file."""


def folder(environment: Mapping[str, str] | None = None, home: Path | None = None) -> Path:
    return state_home(environment, home) / "backups"


def back_up(before: FileSnapshot, target: Path | None = None) -> Path | None:
    """Copy what was read; None if the file did not exist. Raises `StoreError`."""
    if before.data is None:
        return None
    target = target or folder()
    make_folder(target)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    copy = target / f"{stamp}-{os.urandom(4).hex()}-{_short_name(before.real)}"
    write_whole(copy, before.data)
    tidy(target)
    return copy


def _short_name(file: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", file.name)[-MAX_NAME_CHARS:]


def tidy(backups: Path, now_s: float | None = None) -> None:
    """Remove copies beyond the limits, the oldest first."""
    now_s = time.time() if now_s is None else now_s
    copies = sorted(path for path in backups.glob("*") if not path.is_dir())
    for index, copy in enumerate(reversed(copies)):
        try:
            if index >= MAX_KEPT or now_s - copy.lstat().st_mtime > MAX_AGE_S:
                copy.unlink()
        except OSError:
            continue  # another process removed it, or the next one will


def beside(files: Iterable[Path]) -> list[Path]:
    """Copies that earlier versions left beside these files, and beside the targets of their links."""
    copies: set[Path] = set()
    for file in files:
        for path in (file, Path(os.path.realpath(file))):
            try:
                with os.scandir(path.parent) as names:
                    copies |= {
                        path.parent / entry.name
                        for entry in names
                        if entry.name.startswith(f"{path.name}{OLD_MARK}")
                        and entry.is_file(follow_symlinks=False)
                    }
            except OSError:
                continue  # no such folder, or none that we may look into
    return sorted(copies)
