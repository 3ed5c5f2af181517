"""Locks of sessions: one process at a time may run a session, or its history splits in two.

Claude Code itself lets any number of processes write one transcript. The locks are kept by
`laneway.store.thread_locks`, which this package does not know.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from laneway.base.errors import LanewayError

log = logging.getLogger(__name__)


class HeldLock(Protocol):
    @property
    def fd(self) -> int:
        """For the guardian of the process, which keeps the lock until that is gone."""
        ...

    def release(self) -> None: ...


class SessionLocks(Protocol):
    def take(self, thread_id: str, /) -> HeldLock:
        """Raises `ActiveWriter` if another process runs the session. Blocks."""
        ...


class OwnLock:
    """The lock of the session that a thread runs, which may become another session."""

    def __init__(self, locks: SessionLocks | None) -> None:
        """Without `locks` nothing is locked."""
        self._locks = locks
        self._held: HeldLock | None = None

    @property
    def fds(self) -> tuple[int, ...]:
        return () if self._held is None else (self._held.fd,)

    async def take(self, session_id: str) -> None:
        """Lock this session instead of the one before. Raises `ActiveWriter`."""
        if self._locks is None:
            return
        taking = asyncio.ensure_future(asyncio.to_thread(self._locks.take, session_id))
        try:
            self._replace(await asyncio.shield(taking))
        except asyncio.CancelledError:
            taking.add_done_callback(_release_taken)  # else this process would hold it for ever
            raise

    def follow(self, session_id: str) -> None:
        """Lock the session that the process has begun by itself, whose id nobody else knows yet."""
        try:
            self._replace(None if self._locks is None else self._locks.take(session_id))
        except LanewayError as problem:
            log.warning("session %s goes on without a lock: %s", session_id, problem)
            self.release()

    def release(self) -> None:
        """Safe to call twice."""
        self._replace(None)

    def _replace(self, lock: HeldLock | None) -> None:
        before, self._held = self._held, lock
        if before is not None:
            before.release()


def _release_taken(taking: asyncio.Future[HeldLock]) -> None:
    if not taking.cancelled() and taking.exception() is None:
        taking.result().release()
