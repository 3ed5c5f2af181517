"""Releases Codex threads for other processes, so that none stays archived if a process is killed meanwhile.

Codex releases a thread only when it is archived; it is unarchived at once. A release is recorded before it
begins, through a port, and finished by the next Laneway: this one, if only Codex died, or another. Only
threads that a record names are ever unarchived: what the user archived stays archived.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from laneway.base.errors import EngineError, EngineLost, EngineRefused, StoreError, ThreadUnknown
from laneway.codex.link import Link
from laneway.codex.thread_files import ThreadFile, find

log = logging.getLogger(__name__)
T = TypeVar("T")

ARCHIVE_S = 60.0
"""Between the record of a release and Codex's archiving: what is archived later was archived by the user."""
SETTLE_S = 3.0
"""For a Codex whose Laneway was killed to exit: its guardian takes less than one. Until then it may still
process the requests that it has."""
SURELY_SETTLED_S = 60.0
"""Since the release began: for an older record there is nothing to wait for."""
FINISH_S = 10.0
"""For finishing all releases that were left. After that the thread that is wanted is opened all the same."""
UNDER_WAY_S = 3.0
"""For another process to finish the release of a thread that is wanted here; one takes 0.2 s."""
POLL_S = 0.05
"""Between two checks of that."""
MAX_AGE_S = 30 * 24 * 3600.0
"""Of a record whose thread Codex refuses to unarchive; then it is removed."""


class PendingRelease(Protocol):
    """The record of a release that has begun, locked by this process."""

    @property
    def thread_id(self) -> str: ...

    @property
    def began_at(self) -> float:
        """Seconds since 1970."""
        ...

    def remove(self) -> None:
        """The release is complete."""
        ...

    def leave(self) -> None:
        """Unlock the record: another process finishes the release, or we do later."""
        ...


class PendingReleases(Protocol):
    """Records of releases, shared by processes through the disk. All calls block."""

    def begin(self, thread_id: str) -> PendingRelease: ...

    def leftovers(self) -> Sequence[PendingRelease]:
        """The records of no living process; they are locked for the caller."""
        ...

    def is_under_way(self, thread_id: str) -> bool:
        """Whether a living process works on the release of this thread."""
        ...


class Releases:
    """Releases of one Codex home. Without `records`, a kill in between leaves a thread archived."""

    def __init__(self, records: PendingReleases | None = None) -> None:
        self._records = records
        self._finishing = asyncio.Lock()
        self._settled_at: dict[tuple[str, float], float] = {}
        """By record, the loop time after which the Codex that began the release has surely ended."""

    async def release(self, link: Link, thread_id: str) -> None:
        """Make Codex release a thread, so that another process can resume it."""
        record = await self._begin(thread_id)
        is_settled = False
        try:
            await _archive_and_back(link, thread_id)
            is_settled = True
        except EngineLost:
            if record is not None:
                self._settled_at[_key(record)] = 0.0  # this Codex is gone, we saw it
            raise
        finally:
            if record is not None:
                (record.remove if is_settled else record.leave)()

    async def _begin(self, thread_id: str) -> PendingRelease | None:
        if self._records is None:
            return None
        try:
            return await _in_thread(partial(self._records.begin, thread_id), _remove)
        except StoreError as problem:
            # A full disk is no reason to lock everybody else out of the thread.
            log.warning("the release of thread %s is not recorded: %s", thread_id, problem)
            return None

    # ── releases of killed processes ───────────────────────────────────────

    async def finish_all(self, link: Link) -> None:
        """Unarchive what a killed Laneway or Codex left archived, and check once more that it stays so."""
        if await self.finish(link):
            await asyncio.sleep(SETTLE_S)
            await self.finish(link)

    async def finish_for(self, link: Link, thread_id: str) -> None:
        """Before this thread is opened: wait for its release by another process."""
        await self.finish(link)
        if self._records is None:
            return
        try:
            async with asyncio.timeout(UNDER_WAY_S):
                while await asyncio.to_thread(self._records.is_under_way, thread_id):
                    await asyncio.sleep(POLL_S)
                    await self.finish(link)  # its process may have ended without finishing it
        except (StoreError, TimeoutError) as problem:
            log.info("whether thread %s is just being released is not known: %r", thread_id, problem)

    async def finish(self, link: Link) -> bool:
        """Unarchive what is archived now; return whether a Codex that still runs may archive more."""
        if self._records is None:
            return False
        async with self._finishing:
            try:
                left = await _in_thread(self._records.leftovers, _leave_all)
            except StoreError as problem:
                log.warning("releases that were left cannot be looked for: %s", problem)
                return False
            try:
                async with asyncio.timeout(FINISH_S):
                    # One after the other: there is hardly ever more than one.
                    return any([await self._finish_one(link, record) for record in left])
            except (EngineLost, TimeoutError) as problem:
                log.info("not every release that was left could be finished: %r", problem)
                return False
            finally:
                _leave_all(left)

    async def _finish_one(self, link: Link, record: PendingRelease) -> bool:
        """Return whether it has to be checked again; otherwise remove the record."""
        is_unsettled = False
        try:
            is_unsettled = await self._unarchive_left(link, record)
        except ThreadUnknown:
            log.debug("thread %s, whose release was left, is not there any more", record.thread_id)
        except EngineLost:
            raise
        except (EngineError, OSError) as problem:
            log.warning("thread %s may be left archived: %s", record.thread_id, problem)
            if time.time() - record.began_at < MAX_AGE_S:
                return False
        if not is_unsettled:
            record.remove()
            self._settled_at.pop(_key(record), None)
        return is_unsettled

    async def _unarchive_left(self, link: Link, record: PendingRelease) -> bool:
        params = {"threadId": record.thread_id}
        file = await _file_of(link, params)
        if file is not None and file.is_misplaced:
            # Codex was killed while moving the file; or it still runs, and is about to record the move.
            await asyncio.sleep(self._unsettled_s(record))
            file = await _file_of(link, params)
        if file is not None:
            if (file.archived_at or 0.0) > record.began_at + ARCHIVE_S:
                return False  # by the user, on purpose
            if file.is_misplaced:
                log.info("the file of thread %s is moved to where Codex looks for it", record.thread_id)
                await asyncio.to_thread(file.repair)
            if not file.is_archived:
                return self._unsettled_s(record) > 0.0
        await link.call("thread/unarchive", params)
        log.info("thread %s was left archived by a process that was killed: it is back", record.thread_id)
        return False

    def _unsettled_s(self, record: PendingRelease) -> float:
        """How long the Codex that began the release may still run and process its requests."""
        if time.time() - record.began_at > SURELY_SETTLED_S:
            return 0.0
        now = asyncio.get_running_loop().time()
        return max(0.0, self._settled_at.setdefault(_key(record), now + SETTLE_S) - now)


async def _archive_and_back(link: Link, thread_id: str) -> None:
    """Archive a thread and unarchive it. Raises Codex's error if it may be left archived."""
    params = {"threadId": thread_id}
    # Both are sent before either is answered: even if we are killed, Codex has both.
    requests = asyncio.gather(
        link.call("thread/archive", params), link.call("thread/unarchive", params), return_exceptions=True
    )
    archived, unarchived = await requests
    if isinstance(archived, EngineRefused):
        # Ephemeral threads have no file to archive, and nobody else can want them.
        log.debug("thread %s could not be archived: %s", thread_id, archived)
        await link.call("thread/unsubscribe", params)
    elif isinstance(archived, BaseException):
        raise archived
    elif isinstance(unarchived, BaseException):
        await _unarchive(link, params)


async def _unarchive(link: Link, params: dict[str, Any]) -> None:
    try:
        await link.call("thread/unarchive", params)
    except EngineError as problem:
        thread_id = params["threadId"]
        log.warning("thread %s stays archived (`codex unarchive` helps): %s", thread_id, problem)
        raise


async def _file_of(link: Link, params: dict[str, Any]) -> ThreadFile | None:
    """The thread's file; none if Codex does not name it."""
    path = (await link.call("thread/read", params))["thread"].get("path")
    return await asyncio.to_thread(find, Path(path)) if isinstance(path, str) else None


def _key(record: PendingRelease) -> tuple[str, float]:
    return record.thread_id, record.began_at


async def _in_thread(work: Callable[[], T], undo: Callable[[T], None]) -> T:
    """Run `work` in a thread. If the caller is cancelled, its result is undone."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        working.add_done_callback(lambda done: _undo_result(done, undo))
        raise


def _undo_result(done: asyncio.Future[T], undo: Callable[[T], None]) -> None:
    if not done.cancelled() and done.exception() is None:
        undo(done.result())


def _remove(record: PendingRelease) -> None:
    """Undo a record: nothing was sent to Codex yet."""
    record.remove()


def _leave_all(records: Sequence[PendingRelease]) -> None:
    for record in records:
        record.leave()
