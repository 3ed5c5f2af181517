"""What lies at a path of the work tree right now, in the terms of a snapshot."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from laneway.base.foreign_files import NotRegular, TooLarge
from laneway.jobs.rollback.names import Place
from laneway.jobs.snapshots.beneath import look_of, open_file, opened, read_all
from laneway.jobs.snapshots.model import ABSENT, PathState
from laneway.jobs.snapshots.objects import object_id
from laneway.jobs.snapshots.reading import MAX_KEPT_BYTES, UNREADABLE, fingerprint, special
from laneway.jobs.snapshots.paths import parts_of


@contextmanager
def place_of(root: int, path: str) -> Iterator[Place]:
    """The folder of a path, open, and the name in it. `OSError` if the way there is not of folders."""
    parts = parts_of(path)
    with opened(root, parts[:-1]) as folder:
        yield folder, parts[-1]


def at_path(root: int, path: str, algorithm: str) -> PathState:
    """What lies at a path. Where a folder is missing, or something else is in its place, nothing does."""
    try:
        with place_of(root, path) as place:
            return at_place(place, algorithm)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as problem:
        if stat.S_ISLNK(0) or problem.errno is None:
            raise
        return ABSENT


def at_place(place: Place, algorithm: str) -> PathState:
    """The same for a name in an open folder."""
    folder, name = place
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return ABSENT
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISDIR(status.st_mode):
        return ABSENT
    try:
        if stat.S_ISLNK(status.st_mode):
            return PathState("link", blob=object_id("blob", os.readlink(name, dir_fd=folder), algorithm))
        if stat.S_ISREG(status.st_mode):
            return _file(place, algorithm)
    except (FileNotFoundError, NotRegular):
        return at_place(place, algorithm)  # it was replaced just now
    except PermissionError:
        return PathState("other", mode, fingerprint=UNREADABLE)
    return PathState("other", mode, fingerprint=special(status.st_mode))
