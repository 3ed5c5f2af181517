"""Copies of other programs' files from before we changed them: in our state folder, for the user alone.

Never beside the file: there a repository could take a copy in, and a file with a token would
have a second one that nobody looks after. Old copies go, by number and by age.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from laneway.base.paths import state_home
from laneway.cli.clients.files import Snapshot
from laneway.store.files import make_folder, write_whole

MAX_KEPT = 100
"""Copies of all files together: years of changes by hand, and some megabytes at most for most people."""
MAX_AGE_S = 180 * 24 * 60 * 60
"""Half a year: whoever has not missed the old file by then does not."""
MAX_NAME_CHARS = 100
"""Of the file's own name within the copy's, which has 255 bytes for everything."""
OLD_MARK = ".laneway-backup-"
"""In the names of copies that earlier versions left beside a file."""


def folder(environment: Mapping[str, str] | None = None, home: Path | None = None) -> Path:
    return state_home(environment, home) / "backups"


def back_up(before: Snapshot, where: Path | None = None) -> Path | None:
    """A copy of what was read; none if there is nothing to copy. Raises `StoreError`."""
    if before.data is None:
        return None
    where = where or folder()
    make_folder(where)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    copy = where / f"{stamp}-{os.urandom(4).hex()}-{_short_name(before.real)}"
    write_whole(copy, before.data)
    tidy(where)
    return copy


def _short_name(file: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", file.name)[-MAX_NAME_CHARS:]


def tidy(where: Path, now_s: float | None = None) -> None:
    """Remove the copies beyond the bounds, the oldest first."""
    now_s = time.time() if now_s is None else now_s
    copies = sorted(path for path in where.glob("*") if not path.is_dir())
    for place, copy in enumerate(reversed(copies)):
        try:
            if place >= MAX_KEPT or now_s - copy.lstat().st_mtime > MAX_AGE_S:
                copy.unlink()
        except OSError:
            continue  # another process removed it, or the next one will


def beside(files: Iterable[Path]) -> list[Path]:
    """Copies that earlier versions left beside these files, and beside what their links lead to."""
    found: set[Path] = set()
    for file in files:
        for each in (file, Path(os.path.realpath(file))):
            try:
                with os.scandir(each.parent) as names:
                    found |= {
                        each.parent / entry.name
                        for entry in names
                        if entry.name.startswith(f"{each.name}{OLD_MARK}")
                        and entry.is_file(follow_symlinks=False)
                    }
            except OSError:
                continue  # no such folder, or none that we may look into
    return sorted(found)
