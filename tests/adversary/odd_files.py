"""Things that are not the file that one expects: each maker puts one at a path where nothing is yet."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SPARSE_BYTES = 10 * 1024**3
"""Takes no space on the disk, and more memory than there is if somebody reads it whole."""

Maker = Callable[[Path], None]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def bound_socket(path: Path) -> None:
    """Stays in the folder when nobody listens any more. Its name may be too long to be bound directly."""
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(path.parent, os.O_RDONLY)
        before = os.open(".", os.O_RDONLY)
        try:
            os.fchdir(here)
            made.bind(path.name)
        finally:
            os.fchdir(before)
            os.close(before)
            os.close(here)


def endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def link_to_a_pipe(path: Path) -> None:
    target = path.with_name(f"{path.name}.target")
    os.mkfifo(target)
    path.symlink_to(target.name)


def sparse_file(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(SPARSE_BYTES)


NOT_REGULAR: tuple[Maker, ...] = (
    pipe,
    folder,
    bound_socket,
    endless_device,
    link_to_itself,
    link_to_a_pipe,
)
"""What no reader and no writer may wait for, or take for a file."""
UNREADABLE: tuple[Maker, ...] = (*NOT_REGULAR, sparse_file)

not_regular = pytest.mark.parametrize("make", NOT_REGULAR, ids=lambda make: make.__name__)
unreadable = pytest.mark.parametrize("make", UNREADABLE, ids=lambda make: make.__name__)


@contextmanager
def leased(path: Path) -> Iterator[None]:
    """A file whose holder is asked first, and has 45 seconds to answer, before anybody else may open it."""
    import fcntl
    import signal

    fd = os.open(path, os.O_RDWR)
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)  # how its holder is asked
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        signal.signal(signal.SIGIO, before)
        os.close(fd)
