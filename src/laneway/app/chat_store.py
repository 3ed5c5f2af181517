"""Opens the store of conversations, and deletes once a day those that were unused for long.

The deleting has a thread and a connection of its own: nobody waits for it but the end of the process,
and that not for long.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from laneway.base.errors import StoreError
from laneway.core.conversations import ConversationLocks, ConversationStore
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database, database_path

DAY_S = 86_400.0
COLLECTED = "laneway.gc"
"""The cursor that says when old conversations were deleted last."""

_log = logging.getLogger(__name__)


class OpenConversations(msgspec.Struct, frozen=True):
    """What a `ChatService` is handed."""

    store: ConversationStore
    locks: ConversationLocks
    reports: Callable[[], Sequence[str]]
    """What was wrong with the file itself since it was opened, and done about it, for people to read."""


@asynccontextmanager
async def open_conversations(
    keep_days: int,
    *,
    path: Path | None = None,
    program: str = "laneway chat",
    wall: Callable[[], float] = time.time,
) -> AsyncIterator[OpenConversations]:
    """The store is opened by its first use. `keep_days` 0: nothing is ever deleted."""
    path = path or database_path()
    locks = ConversationLockFiles(path.parent / "conversations", program)
    with Database(path) as database, Database(path) as collector:
        collecting = asyncio.create_task(_collect(collector, locks, keep_days, wall()))
        try:
            yield OpenConversations(
                StoredConversations(database, locks),
                locks,
                lambda: (*database.reports, *collector.reports),  # whichever was the first to open it
            )
        finally:
            await collecting


async def _collect(database: Database, locks: ConversationLocks, keep_days: int, now: float) -> None:
    """Never raises: whatever hinders it now, it comes again."""
    if not keep_days:
        return
    try:
        deleted = await asyncio.to_thread(_delete_old, database, locks, now - keep_days * DAY_S, now)
    except StoreError as problem:
        _log.warning("old conversations could not be deleted: %s", problem)
    else:
        if deleted:
            _log.info("deleted %d conversations that were unused for %d days", deleted, keep_days)


def _delete_old(database: Database, locks: ConversationLocks, before: float, now: float) -> int:
    with database:
        store = StoredConversations(database, locks)
        last = _seconds(store.cursor(COLLECTED))
        if last <= now < last + DAY_S:
            return 0
        store.set_cursor(COLLECTED, str(now))
        return store.gc(before)


def _seconds(cursor: str | None) -> float:
    try:
        return float(cursor or 0)
    except ValueError:
        return 0.0
