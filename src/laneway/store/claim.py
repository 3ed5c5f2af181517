"""A claimed identity: the only writer of its session registry and its summaries.

`Store.claim` makes one. Everything blocks for the time of a disk write: from asyncio call it through
`asyncio.to_thread`. Threads may share a claim.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

import msgspec

from laneway.base.errors import BadName, ClaimLost, StoreError
from laneway.store.audit import AuditLog
from laneway.store.files import make_folder, write_whole
from laneway.store.locks import Holder, Lock
from laneway.store.registry import ENDED, MAX_REGISTRY_BYTES, Entry, RegistryContent, fitted, is_older
from laneway.store.stamps import Now
from laneway.store.summaries import Summaries

log = logging.getLogger(__name__)

FileMark: TypeAlias = tuple[int, int, int, int]
"""Device, inode, modification time and size: shows whether a file is still the same."""


class Registry:
    """The sessions of a claimed identity. A change is on disk when the call returns, or has not happened."""

    def __init__(
        self,
        path: Path,
        content: RegistryContent,
        owner: tuple[str, str],
        *,
        max_sessions: int,
        check: Callable[[], int],
        summaries: Summaries,
        mark: FileMark | None = None,
    ) -> None:
        self._path = path
        self._content = content
        self._owner = owner
        self._max_sessions = max_sessions
        self._check = check
        self._summaries = summaries
        self._mutex = threading.Lock()
        self._mark = mark
        """Of the file as we last read or wrote it."""
        self._times_retaken = 0

    def entries(self) -> tuple[Entry, ...]:
        return self._content.entries

    def get(self, agent_id: str) -> Entry | None:
        return self._content.get(agent_id)

    def update(self, entry: Entry) -> None:
        """Add the session, or replace the one with its `agent_id`; unknown fields stay."""
        if (entry.team, entry.identity) != self._owner:
            team, identity = self._owner
            raise StoreError(
                f"A session of {entry.identity} in {entry.team} does not belong to {identity} in {team}."
            )
        self.change(lambda content: fitted(content.put(entry), self._max_sessions, keep=entry.agent_id))

    def change(self, step: Callable[[RegistryContent], RegistryContent]) -> tuple[Entry, ...]:
        """Apply a pure change and write it. Returns the removed entries; their summaries are deleted."""
        with self._mutex:
            old, new = self._content, step(self._content)
            if new is not old and new != old:
                self._write(new)
            remaining_ids = {entry.agent_id for entry in new.entries}
            removed = tuple(entry for entry in old.entries if entry.agent_id not in remaining_ids)
            self._forget(
                {entry.backend_id for entry in removed} - {entry.backend_id for entry in new.entries}
            )
            return removed

    def _forget(self, backend_ids: set[str | None]) -> None:
        for backend_id in backend_ids - {None}:
            try:
                self._summaries.remove(backend_id or "")
            except BadName:
                pass  # another program's thread id: there is no file of ours by that name
            except StoreError as problem:
                log.warning("A summary stayed behind: %s", problem)

    def _write(self, content: RegistryContent) -> None:
        data = content.render()
        if len(data) > MAX_REGISTRY_BYTES:
            raise StoreError(
                f"{self._path} would grow past {MAX_REGISTRY_BYTES} bytes. Close and prune some sessions.",
                str(self._path),
            )
        self._check_ours()
        make_folder(self._path.parent)
        write_whole(self._path, data)
        self._mark = mark_of(self._path)
        self._content = content  # only now: memory is never ahead of the disk

    def _check_ours(self) -> None:
        """Raise `ClaimLost` if the claim is gone, or was gone while another process wrote the registry."""
        times_retaken = self._check()
        if times_retaken != self._times_retaken and mark_of(self._path) not in (None, self._mark):
            raise ClaimLost(
                f"{self._path} was written by another process after its lock file was removed. "
                "Claim the identity again.",
                str(self._path),
            )
        self._times_retaken = times_retaken


def mark_of(path: Path) -> FileMark | None:
    """None if there is no file."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


class HeldIdentity:
    """A claim on an identity. `with store.claim("codex") as claim:` frees it at the end."""

    def __init__(
        self,
        lock: Lock,
        holder: Holder,
        registry: Registry,
        summaries: Summaries,
        audit: AuditLog,
        *,
        identity: str,
        now: Now,
        reports: tuple[str, ...] = (),
    ) -> None:
        self._lock = lock
        self._holder = holder
        self._now = now
        self.identity = identity
        self.registry = registry
        self.summaries = summaries
        self.audit = audit
        self.reports = reports
        """Problems with the identity's files, as sentences for the owner."""

    def tell(self, agent_id: str) -> None:
        """Write into the lock file which session uses this identity now, as information for people."""
        self._holder = msgspec.structs.replace(self._holder, agent_id=agent_id)
        self._lock.note(self._holder)

    def prune(
        self, min_age: timedelta = timedelta(0), is_selected: Callable[[Entry], bool] = lambda entry: True
    ) -> tuple[Entry, ...]:
        """Remove closed and stale sessions of at least this age with their summaries. Returns them."""
        now = self._now()
        return self.registry.change(
            lambda content: content.without(
                lambda e: e.status in ENDED and is_older(e, min_age, now) and is_selected(e)
            )
        )

    def release(self) -> None:
        """Free the identity; safe to call twice. Sessions that are still active become stale."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
