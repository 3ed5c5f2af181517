"""Locks of sessions: one process at a time may run a session, or its history splits in two.

Claude Code itself lets any number of processes write one transcript. The locks are kept by
`laneway.store.thread_locks`, which this package does not know.
"""

from __future__ import annotations

from typing import Protocol


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
