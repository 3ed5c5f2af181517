"""Giving Codex threads up, so that none stays archived whatever is killed meanwhile.

Codex lets go of a thread only when it is archived; it is unarchived at once. What has begun is recorded
before, through a port, and finished by whichever Laneway comes next: this one, if only Codex died, or
another. Only what a record names is ever unarchived: what the user archived stays.
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
"""From the record of a release to Codex's archive, at the latest: what was archived later is the user's."""
SETTLE_S = 3.0
"""For a Codex whose Laneway was killed to end: its guardian takes less than one. Until then it may still do
what it was asked for."""
SURELY_SETTLED_S = 60.0
"""Since the release began: a record that old needs no such time."""
FINISH_S = 10.0
"""For what was left to be finished. A thread that is wanted meanwhile is asked for all the same."""
UNDER_WAY_S = 3.0
"""For another process to end the release of a thread that is wanted here; they take 0.2 s."""
LOOK_S = 0.05
"""Between two looks at that."""
MAX_AGE_S = 30 * 24 * 3600.0
"""Of a leftover that Codex refuses to unarchive; then it is given up."""


class PendingRelease(Protocol):
    """A release that is recorded as begun, and ours to end."""

    @property
    def thread_id(self) -> str: ...

    @property
    def began_at(self) -> float:
        """Seconds since 1970."""
        ...

    def remove(self) -> None:
        """It is confirmed."""
        ...

    def leave(self) -> None:
        """Somebody else finishes it, or we do later."""
        ...


class PendingReleases(Protocol):
    """Records of releases, on a disk that processes share. All calls block."""

    def begin(self, thread_id: str) -> PendingRelease: ...

    def leftovers(self) -> Sequence[PendingRelease]:
        """Those that no living process works on; whoever asks does from now on."""
        ...

    def is_under_way(self, thread_id: str) -> bool:
        """Whether a living process works on the release of this thread."""
        ...


class Releases:
    """`records` are those of one Codex home; without any, a kill in between leaves a thread archived."""

    def __init__(self, records: PendingReleases | None = None) -> None:
        self._records = records
        self._finishing = asyncio.Lock()
        self._settled_at: dict[tuple[str, float], float] = {}
        """By record, when nobody can work on its release any more, by the clock of the loop."""

    async def release(self, link: Link, thread_id: str) -> None:
        """Have Codex let go of a thread, so that another process can have it."""
        record = await self._begin(thread_id)
        is_settled = False
        try:
            is_settled = await _archive_and_back(link, thread_id)
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
            # A full disk is no reason to keep everybody else out of the thread.
            log.warning("the release of thread %s is not recorded: %s", thread_id, problem)
            return None

    # ── what others left ───────────────────────────────────────────────────

    async def finish_all(self, link: Link) -> None:
        """Unarchive what a Laneway or a Codex that was killed left archived, and see that it stays so."""
        if await self.finish(link):
            await asyncio.sleep(SETTLE_S)
            await self.finish(link)

    async def finish_for(self, link: Link, thread_id: str) -> None:
        """For somebody who wants this thread: a release that is under way elsewhere is waited for."""
        await self.finish(link)
        if self._records is None:
            return
        try:
            async with asyncio.timeout(UNDER_WAY_S):
                while await asyncio.to_thread(self._records.is_under_way, thread_id):
                    await asyncio.sleep(LOOK_S)
                    await self.finish(link)  # its process may have ended without it
        except (StoreError, TimeoutError) as problem:
            log.info("whether thread %s is just being released is not known: %r", thread_id, problem)

    async def finish(self, link: Link) -> bool:
        """Unarchive what is archived now; whether something is left that its own Codex may still change."""
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
        """Whether it has to be looked at again. Removes the record if not."""
        is_open = False
        try:
            is_open = await self._look(link, record)
        except ThreadUnknown:
            log.debug("thread %s, whose release was left, is not there any more", record.thread_id)
        except EngineLost:
            raise
        except (EngineError, OSError) as problem:
            log.warning("thread %s may be left archived: %s", record.thread_id, problem)
            if time.time() - record.began_at < MAX_AGE_S:
                return False
        if not is_open:
            record.remove()
            self._settled_at.pop(_key(record), None)
        return is_open

    async def _look(self, link: Link, record: PendingRelease) -> bool:
        params = {"threadId": record.thread_id}
        file = await _file_of(link, params)
        if file is not None and file.is_misplaced:
            # Codex was killed as it moved it; or it still lives, and is about to write that down.
            await asyncio.sleep(self._unsettled_s(record))
            file = await _file_of(link, params)
        if file is not None:
            if (file.archived_at or 0.0) > record.began_at + ARCHIVE_S:
                return False  # by somebody else, on purpose
            if file.is_misplaced:
                log.info("the file of thread %s is moved to where Codex looks for it", record.thread_id)
                await asyncio.to_thread(file.put_right)
            if not file.is_archived:
                return self._unsettled_s(record) > 0.0
        await link.call("thread/unarchive", params)
        log.info("thread %s was left archived by a process that was killed: it is back", record.thread_id)
        return False

    def _unsettled_s(self, record: PendingRelease) -> float:
        """How long its own Codex may still be alive, and do what it was asked for."""
        if time.time() - record.began_at > SURELY_SETTLED_S:
            return 0.0
        now = asyncio.get_running_loop().time()
        return max(0.0, self._settled_at.setdefault(_key(record), now + SETTLE_S) - now)


async def _archive_and_back(link: Link, thread_id: str) -> bool:
    """Whether it is certain that the thread is not left archived. Raises what Codex said, if it is not."""
    params = {"threadId": thread_id}
    # Both are on their way before either is answered: whatever becomes of us, Codex has heard both.
    asked = asyncio.gather(
        link.call("thread/archive", params), link.call("thread/unarchive", params), return_exceptions=True
    )
    away, back = await asked
    if isinstance(away, EngineRefused):
        # Ephemeral threads have no file to archive, and nobody else can want them.
        log.debug("thread %s could not be archived: %s", thread_id, away)
        await link.call("thread/unsubscribe", params)
    elif isinstance(away, BaseException):
        raise away
    elif isinstance(back, BaseException):
        await _unarchive(link, params)
    return True


async def _unarchive(link: Link, params: dict[str, Any]) -> None:
    try:
        await link.call("thread/unarchive", params)
    except EngineError as problem:
        thread_id = params["threadId"]
        log.warning("thread %s stays archived (`codex unarchive` helps): %s", thread_id, problem)
        raise


async def _file_of(link: Link, params: dict[str, Any]) -> ThreadFile | None:
    """Where the thread's file is; none if Codex does not tell."""
    path = (await link.call("thread/read", params))["thread"].get("path")
    return await asyncio.to_thread(find, Path(path)) if isinstance(path, str) else None


def _key(record: PendingRelease) -> tuple[str, float]:
    return record.thread_id, record.began_at


async def _in_thread(work: Callable[[], T], undo: Callable[[T], None]) -> T:
    """Run it beside the loop. If nobody waits for it any more, what it comes to is undone."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        working.add_done_callback(lambda done: _undone(done, undo))
        raise


def _undone(done: asyncio.Future[T], undo: Callable[[T], None]) -> None:
    if not done.cancelled() and done.exception() is None:
        undo(done.result())


def _remove(record: PendingRelease) -> None:
    """Nothing has been asked of Codex yet."""
    record.remove()


def _leave_all(records: Sequence[PendingRelease]) -> None:
    for record in records:
        record.leave()
