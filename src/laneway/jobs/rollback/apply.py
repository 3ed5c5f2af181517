"""Does what a journal says, so that it can be cut off anywhere: each step finds out whether it was taken.

First every new file is written to a place aside, where it takes space but changes nothing. Then names are
exchanged, one after the other; what was displaced is compared with what was expected, and put back if
it is something else. Only when all is in place are the old files removed. If one path cannot be done,
all others are put back, which needs no space. Folders are open while something is done in them, and no
link is followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from laneway.base.errors import ContentGone
from laneway.jobs.rollback.journal import Kept
from laneway.jobs.rollback.model import Operation, Refusal, RollbackJournal, Why
from laneway.jobs.rollback.names import Place, exchange, exists, move, replace
from laneway.jobs.rollback.present import at_place, place_of
from laneway.jobs.snapshots.beneath import FOLDER, NO_WAY, opened
from laneway.jobs.snapshots.model import ABSENT, PathState
from laneway.jobs.snapshots.paths import parts_of
from laneway.store.files import write_all

Watch = Callable[[str], None]
"""Told of every step before it is taken."""
BEGUN = b".part"
"""Ends the name of a file that is not whole yet."""
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class RollbackStopped(Exception):
    """One path cannot be done; the others are put back."""

    def __init__(self, path: str, why: Why, detail: str = "") -> None:
        super().__init__(path)
        self.refusal = Refusal(path, why, detail)


class Application:
    """One journal, and the open work tree that it is applied to."""

    def __init__(self, root: int, journal: RollbackJournal, kept: Kept, watch: Watch) -> None:
        self._root = root
        self._operations = journal.operations
        self._algorithm = journal.algorithm
        self._kept = kept
        self._watch = watch

    def forward(self) -> Refusal | None:
        """Bring all in place; otherwise the path that stands in the way. Then call `back`."""
        current = ""
        try:
            for operation in self._operations:
                current = operation.path
                if operation.kind == "put":
                    self._prepare(operation)
            for operation in self._operations:
                current = operation.path
                self._watch(f"{operation.kind} {current}")
                self._take(operation)
        except RollbackStopped as stopped:
            return stopped.refusal
        except (OSError, ContentGone) as problem:
            return _failed(current, problem)
        return None

    def tidy(self) -> tuple[Refusal, ...]:
        """Remove what lies aside, and flush the folders. What is not ours there is named, and stays."""
        found: list[Refusal] = []
        for operation in self._operations:
            if operation.aside:
                self._watch(f"tidy {operation.path}")
                found += self._clear(operation)
        self._sync()
        return tuple(found)

    def back(self) -> tuple[Refusal, ...]:
        """Put everything back as it was; the paths where that is not possible any more."""
        found: list[Refusal] = []
        for operation in reversed(self._operations):
            self._watch(f"back {operation.path}")
            try:
                self._take_back(operation)
            except RollbackStopped as stopped:
                found.append(stopped.refusal)
            except (OSError, ContentGone) as problem:
                found.append(_failed(operation.path, problem))
        for operation in self._operations:
            if operation.aside:
                found += self._clear(operation)
        self._sync()
        return tuple(found)

    # ── forward ────────────────────────────────────────────────────────────

    def _prepare(self, operation: Operation) -> None:
        """Write the new file aside, unless it is in place already."""
        with self._places(operation) as (place, aside):
            if place is not None and self._at(place) == operation.new:
                return
            if self._at(aside) == operation.old != ABSENT:
                return  # it was exchanged, and edited since
            self._watch(f"prepare {operation.path}")
            self._write(aside, operation.new, place)

    def _take(self, operation: Operation) -> None:
        match operation.kind:
            case "mkdir":
                self._make_folder(operation)
            case "rmdir":
                self._remove_folder(operation)
            case "remove":
                self._remove(operation)
            case _:
                self._put(operation)

    def _put(self, operation: Operation) -> None:
        with self._places(operation) as (place, aside):
            if place is None:
                raise RollbackStopped(operation.path, "edited")
            there = self._at(place)
            if there == operation.new:
                self._check_displaced(operation, place, aside)
                return
            if there != operation.old:
                if operation.old != ABSENT and self._at(aside) == operation.old:
                    return  # it was exchanged, and edited since
                raise RollbackStopped(operation.path, "edited")
            if operation.old == ABSENT:
                self._move_in(operation, place, aside)
            elif exchange(aside, place):
                self._watch(f"exchanged {operation.path}")
                self._check_displaced(operation, place, aside)
            else:
                replace(aside, place)

    def _move_in(self, operation: Operation, place: Place, aside: Place) -> None:
        try:
            move(aside, place)
        except FileExistsError:
            raise RollbackStopped(operation.path, "edited") from None

    def _check_displaced(self, operation: Operation, place: Place, aside: Place) -> None:
        """What was displaced must be what was expected: somebody may have written in that moment."""
        if self._at(aside) in (operation.old, operation.new, ABSENT):
            return
        exchange(aside, place)
        raise RollbackStopped(operation.path, "edited")

    def _remove(self, operation: Operation) -> None:
        with self._places(operation) as (place, aside):
            there = self._at(place) if place is not None else ABSENT
            displaced = self._at(aside)
            if displaced == ABSENT:
                if there == ABSENT and (place is None or not exists(place)):
                    return
                if there != operation.old or place is None:
                    raise RollbackStopped(operation.path, "edited")
                move(place, aside)
                self._watch(f"moved {operation.path}")
                displaced = self._at(aside)
            if displaced != operation.old:
                if place is not None and not exists(place):
                    move(aside, place)
                raise RollbackStopped(operation.path, "edited")

    def _make_folder(self, operation: Operation) -> None:
        with place_of(self._root, operation.path) as (folder, name):
            try:
                os.mkdir(name, 0o700, dir_fd=folder)
            except FileExistsError:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISDIR(status.st_mode):
                    raise RollbackStopped(operation.path, "folder") from None
                return
            fd = os.open(name, FOLDER, dir_fd=folder)
            try:
                os.fchmod(fd, operation.mode)
            finally:
                os.close(fd)

    def _remove_folder(self, operation: Operation) -> None:
        """A folder that is not empty any more stays, unless a file must take its place."""
        try:
            with place_of(self._root, operation.path) as (folder, name):
                os.rmdir(name, dir_fd=folder)
        except OSError as problem:
            if problem.errno in NO_WAY:
                return
            if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            if any(other.kind == "put" and other.path == operation.path for other in self._operations):
                raise RollbackStopped(operation.path, "folder") from None

    # ── back ───────────────────────────────────────────────────────────────

    def _take_back(self, operation: Operation) -> None:
        match operation.kind:
            case "mkdir":
                self._remove_folder(operation)
            case "rmdir":
                self._make_folder(operation)
            case _:
                with self._places(operation) as (place, aside):
                    if place is None:
                        if operation.old != ABSENT:
                            raise RollbackStopped(operation.path, "edited")
                    elif operation.old == ABSENT:
                        self._take_out(operation, place, aside)
                    else:
                        self._put_back(operation, place, aside)

    def _take_out(self, operation: Operation, place: Place, aside: Place) -> None:
        """A file that was not there before."""
        if self._at(place) != operation.new or self._at(aside) == operation.new:
            return  # it never came there: it is somebody else's, or there is none
        move(place, aside)

    def _put_back(self, operation: Operation, place: Place, aside: Place) -> None:
        there, displaced = self._at(place), self._at(aside)
        if there == operation.old:
            return
        if there != operation.new:
            if displaced == operation.old:
                raise RollbackStopped(operation.path, "edited")
            return  # it was edited before it was displaced
        if displaced != operation.old:  # the system cannot exchange names
            self._write(aside, operation.old, place)
        if there == ABSENT:
            self._move_in(operation, place, aside)
        elif not exchange(aside, place):
            replace(aside, place)

    # ── files ──────────────────────────────────────────────────────────────

    def _at(self, place: Place) -> PathState:
        return at_place(place, self._algorithm)

    @contextmanager
    def _places(self, operation: Operation) -> Iterator[tuple[Place | None, Place]]:
        """The path, if the folders on the way are there, and its place aside."""
        with place_of(self._root, operation.aside) as aside:
            try:
                context = place_of(self._root, operation.path)
                place = context.__enter__()
            except OSError as problem:
                if problem.errno not in NO_WAY:
                    raise
                yield None, aside
                return
            try:
                yield place, aside
            finally:
                context.__exit__(None, None, None)

    def _write(self, aside: Place, state: PathState, like: Place | None) -> None:
        """Make a file or link that is whole and on disk. What lies aside by its own name is always whole."""
        folder, name = aside
        begun = name + BEGUN
        for leftover in (begun, name):
            if exists((folder, leftover)):
                os.unlink(leftover, dir_fd=folder)
        if state.kind == "link":
            os.symlink(self._kept.read(state), name, dir_fd=folder)
            return
        fd = os.open(begun, _NEW_FILE, 0o600, dir_fd=folder)
        try:
            for piece in self._kept.pieces(state):
                write_all(fd, piece)
            if like is not None:
                _give_owner(fd, like)
            os.fchmod(fd, state.mode)
            os.fsync(fd)
        finally:
            os.close(fd)
        replace((folder, begun), aside)

    def _clear(self, operation: Operation) -> list[Refusal]:
        """Remove what lies aside. If it is neither the old nor the new, somebody was still writing it."""
        try:
            with place_of(self._root, operation.aside) as (folder, name):
                if exists((folder, name + BEGUN)):
                    os.unlink(name + BEGUN, dir_fd=folder)
                there = self._at((folder, name))
                if there in (operation.old, operation.new) and there != ABSENT:
                    os.unlink(name, dir_fd=folder)
                elif there != ABSENT:
                    return [Refusal(operation.path, "edited", f"kept as {operation.aside}")]
        except OSError as problem:
            if problem.errno not in NO_WAY:
                return [_failed(operation.path, problem)]
        return []

    def _sync(self) -> None:
        folders = {
            parts_of(path)[:-1]
            for operation in self._operations
            for path in (operation.path, operation.aside)
            if path
        }
        for folder in folders:
            try:
                with opened(self._root, folder) as fd:
                    os.fsync(fd)
            except OSError:
                pass  # it was removed


def _failed(path: str, problem: OSError | ContentGone) -> Refusal:
    if isinstance(problem, ContentGone):
        return Refusal(path, "not kept")
    return Refusal(path, "failed", problem.strerror or type(problem).__name__)


def _give_owner(fd: int, like: Place) -> None:
    """A file that replaces another belongs to the same user, as far as we may."""
    try:
        theirs = os.stat(like[1], dir_fd=like[0], follow_symlinks=False)
        mine = os.fstat(fd)
        if (theirs.st_uid, theirs.st_gid) != (mine.st_uid, mine.st_gid):
            os.fchown(fd, theirs.st_uid, theirs.st_gid)
    except OSError:
        pass  # nothing is there, or only root may
