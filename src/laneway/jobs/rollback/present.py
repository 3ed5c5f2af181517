"""What lies at a path of the work tree right now, in the terms of a snapshot."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from laneway.base.foreign_files import NotRegular, TooLarge
from laneway.jobs.rollback.names import Place
from laneway.jobs.snapshots.beneath import NO_WAY, look_of, open_file, opened, read_all
from laneway.jobs.snapshots.model import ABSENT, PathState
from laneway.jobs.snapshots.objects import object_id
from laneway.jobs.snapshots.paths import parts_of
from laneway.jobs.snapshots.reading import ATTEMPTS, MAX_KEPT_BYTES, UNREADABLE, fingerprint, special


@contextmanager
def place_of(root: int, path: str) -> Iterator[Place]:
    """The folder of a path, open, and the name in it. `OSError` if the way there is not of folders."""
    parts = parts_of(path)
    with opened(root, parts[:-1]) as folder:
        yield folder, parts[-1]


def at_path(root: int, path: str, algorithm: str) -> PathState:
    """What lies at a path. Where a folder on the way is missing, or is none, nothing does."""
    try:
        with place_of(root, path) as place:
            return at_place(place, algorithm)
    except OSError as problem:
        if problem.errno in NO_WAY:
            return ABSENT
        raise


def at_place(place: Place, algorithm: str) -> PathState:
    """The same for a name in an open folder."""
    for _ in range(ATTEMPTS):
        try:
            return _look(place, algorithm)
        except (FileNotFoundError, NotRegular):
            continue  # it was replaced or removed between two looks
    return PathState("other", fingerprint="restless")


def _look(place: Place, algorithm: str) -> PathState:
    folder, name = place
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return ABSENT
    if stat.S_ISDIR(status.st_mode):
        return ABSENT
    if stat.S_ISLNK(status.st_mode):
        return PathState("link", blob=object_id("blob", os.readlink(name, dir_fd=folder), algorithm))
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        return PathState("other", mode, fingerprint=special(status.st_mode))
    try:
        return _file(place, algorithm)
    except PermissionError:
        return PathState("other", mode, fingerprint=UNREADABLE)


def _file(place: Place, algorithm: str) -> PathState:
    fd = open_file(*place)
    try:
        look = look_of(os.fstat(fd))
        mode = stat.S_IMODE(look[0])
        if look[1] <= MAX_KEPT_BYTES:
            try:
                return PathState(
                    "file", mode, blob=object_id("blob", read_all(fd, MAX_KEPT_BYTES), algorithm)
                )
            except TooLarge:
                os.lseek(fd, 0, os.SEEK_SET)
        return PathState("file", mode, fingerprint=fingerprint(fd, look), size=look[1])
    finally:
        os.close(fd)
