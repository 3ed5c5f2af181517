"""Notices that an inbox was written: by inotify on Linux, by polling the folder elsewhere.

Only for speed: the postman also polls every few seconds, and loses nothing if this notices nothing.
`aim` blocks for microseconds and belongs in a thread; everything else runs on the loop. A folder that
is removed and created again is found again.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from laneway.core.background import TaskSet
from laneway.core.ports import Clock

log = logging.getLogger(__name__)

LOOK_S = 0.25
"""Between two checks of a folder without inotify: one `stat` each, and well under a second."""
READ_BYTES = 64 * 1024
"""Some hundred events at once. The kernel keeps the rest, or reports an overflow."""
ANCESTORS = 2
"""How many levels up we wait for a folder to appear: the team's, and the one of all teams."""
AIMS = ANCESTORS + 2
"""Attempts: each level may appear during one of them."""
SUFFIX = ".json"

CLOSE_WRITE, MOVED_TO, CREATE = 0x8, 0x80, 0x100
DELETE_SELF, MOVE_SELF = 0x400, 0x800
UNMOUNTED, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
ONLY_DIRECTORIES = 0x01000000
INBOXES = CLOSE_WRITE | MOVED_TO | DELETE_SELF | MOVE_SELF | ONLY_DIRECTORIES
ABOVE = CREATE | MOVED_TO | DELETE_SELF | MOVE_SELF | ONLY_DIRECTORIES
LOST = DELETE_SELF | MOVE_SELF | UNMOUNTED | IGNORED
HEAD = struct.Struct("iIII")

OnMail = Callable[[str | None], None]
"""Called with the name of an inbox file that was written; `None` means perhaps any."""
OnMoved = Callable[[], None]
"""Called when the folder has appeared or gone: aim again."""


class InboxWatch(Protocol):
    """A watch on one folder of inboxes."""

    def aim(self, folder: Path) -> None:
        """Watch this folder from now on, or wait for it. Cheap to call again; finds a re-created folder."""
        ...

    def close(self) -> None: ...


def watch(on_mail: OnMail, on_moved: OnMoved, clock: Clock, tasks: TaskSet) -> InboxWatch:
    """The best watch that this system has. Called on the loop."""
    if sys.platform == "linux":
        try:
            return Inotify(on_mail, on_moved)
        except OSError as problem:  # the number per user is limited
            log.info("There is no inotify for us (%s): folders are looked at instead", problem.strerror)
    return Looking(on_mail, clock, tasks)


class Inotify:
    """A watch by Linux's inotify."""

    def __init__(self, on_mail: OnMail, on_moved: OnMoved) -> None:
        self._on_mail = on_mail
        self._on_moved = on_moved
        self._libc = _libc()
        self._fd = self._check(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._wd = -1
        self._awaited: bytes | None = None
        """While the folder does not exist: the part of its path that we wait for."""
        self._has_warned = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._fd = -1

    def aim(self, folder: Path) -> None:
        for _ in range(AIMS):
            wd, awaited = self._climb(folder)
            before, self._wd, self._awaited = self._wd, wd, os.fsencode(awaited.name) if awaited else None
            if before not in (-1, wd):
                self._libc.inotify_rm_watch(self._fd, before)
            if awaited is None or not awaited.is_dir():
                return
            # It appeared while we walked up: try again. If it cannot be watched, polling must do.

    def _climb(self, folder: Path) -> tuple[int, Path | None]:
        """The watch on the folder, or on its nearest existing parent and what is awaited there."""
        path, awaited, wd = folder, None, -1
        for _ in range(ANCESTORS + 1):
            wd = self._add(path, INBOXES if awaited is None else ABOVE)
            if wd >= 0:
                break
            path, awaited = path.parent, path
        return wd, awaited

    def _add(self, path: Path, mask: int) -> int:
        """Add a watch; -1 if there is no such folder, or there are too many watches: then polling must do."""
        import ctypes

        wd: int = self._libc.inotify_add_watch(self._fd, os.fsencode(path), mask)
        problem = ctypes.get_errno() if wd < 0 else 0
        if problem not in (0, errno.ENOENT, errno.ENOTDIR) and not self._has_warned:
            self._has_warned = True
            log.info("%s cannot be watched (%s): mail is found by the poll", path, os.strerror(problem))
        return wd

    def _read(self) -> None:
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        at = 0
        while at < len(data):
            wd, mask, _, length = HEAD.unpack_from(data, at)
            at += HEAD.size + length
            self._on_event(wd, mask, data[at - length : at].rstrip(b"\0"))

    def _on_event(self, wd: int, mask: int, name: bytes) -> None:
        if mask & OVERFLOW:
            self._on_mail(None)
        elif wd != self._wd:
            return  # of a folder that we no longer watch, or not yet: after `aim` inboxes are read anyway
        elif mask & LOST:
            self._wd = -1
            self._on_moved()
        elif self._awaited is None:
            if name.endswith(SUFFIX.encode()):
                self._on_mail(os.fsdecode(name))
        elif name == self._awaited:
            self._on_moved()

    @staticmethod
    def _check(result: int) -> int:
        import ctypes

        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result


def _libc() -> Any:
    import ctypes  # costs some milliseconds of start-up, and only a server needs it

    return ctypes.CDLL(None, use_errno=True)


class Looking:
    """A watch by polling: every program writes an inbox by renaming, and that changes its folder's time."""

    def __init__(self, on_mail: OnMail, clock: Clock, tasks: TaskSet, every_s: float = LOOK_S) -> None:
        self._on_mail = on_mail
        self._clock = clock
        self._tasks = tasks
        self._every_s = every_s
        self._folder: Path | None = None
        self._seen: tuple[int, int] | None = None
        self._is_over = False
        self._stop = clock.after(every_s, self._tick)

    def aim(self, folder: Path) -> None:
        if folder != self._folder:
            self._folder = folder
            self._seen = _state(folder)

    def close(self) -> None:
        self._is_over = True
        self._stop()

    def _tick(self) -> None:
        self._tasks.spawn(self._look(), "look at inboxes")

    async def _look(self) -> None:
        folder = self._folder
        if folder is not None:
            state = await asyncio.to_thread(_state, folder)
            if folder == self._folder and state != self._seen:
                self._seen = state
                self._on_mail(None)
        if not self._is_over:
            self._stop = self._clock.after(self._every_s, self._tick)


def _state(folder: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
