"""The core's `Records` port, implemented on the files of one team's store.

Turns records into registry entries and back; fields that `Entry` does not have are in its `extra`,
beside those of other programs, which stay as they are. All waiting happens in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from laneway.base.engines import DEFAULT_BACKEND
from laneway.core.named.records import AuditLine, Record, RecordView, refuse_reserved
from laneway.store.claim import HeldIdentity
from laneway.store.listing import EXTRA_KINDS, SessionRow, row_of
from laneway.store.names import check_name
from laneway.store.registry import KNOWN, Entry
from laneway.store.stamps import Now, stamp, utc_now
from laneway.store.store import Store

_IN_ENTRY = tuple(name for name in KNOWN if name != "backend_id")
_RENAMED = {"reasoning_effort": "effort"}


class StoreClaim:
    """The core's `Claim` port on a claimed identity."""

    def __init__(self, claim: HeldIdentity) -> None:
        self._claim = claim

    async def get(self, agent_id: str) -> Record | None:
        entry = self._claim.registry.get(agent_id)
        return None if entry is None else record_of(entry)

    async def put(self, record: Record) -> None:
        await asyncio.to_thread(self._claim.registry.update, entry_of(record))

    async def write_summary(self, thread_id: str, text: str) -> None:
        await asyncio.to_thread(self._claim.summaries.write, thread_id, text)

    async def tell(self, agent_id: str) -> None:
        await asyncio.to_thread(self._claim.tell, agent_id)

    async def release(self) -> None:
        await asyncio.to_thread(self._claim.release)


class StoreRecords:
    """The core's `Records` port: `StoreRecords(Store(sessions_root(), team))`."""

    def __init__(self, store: Store, *, now: Now = utc_now) -> None:
        self._store = store
        self._now = now

    @property
    def team(self) -> str:
        return self._store.team

    def now(self) -> str:
        return stamp(self._now())

    def check(self, identity: str) -> None:
        refuse_reserved(identity)
        check_name(identity, "an identity")

    async def claim(self, identity: str, agent_id: str | None) -> StoreClaim:
        self.check(identity)
        return StoreClaim(await asyncio.to_thread(self._store.claim, identity, agent_id=agent_id))

    async def view(self) -> RecordView:
        return await asyncio.to_thread(self._view)

    def _view(self) -> RecordView:
        view = self._store.rows()
        return RecordView(tuple(map(record_of_row, view.rows)), view.problems)

    async def summary(self, identity: str, thread_id: str) -> str | None:
        return await asyncio.to_thread(self._store.summary, identity, thread_id)

    async def audit(self, lines: Sequence[AuditLine]) -> None:
        await asyncio.to_thread(self._store.audit.append, *lines)


def entry_of(record: Record) -> Entry:
    entry_fields = {name: getattr(record, name) for name in _IN_ENTRY}
    # Unset fields, too: a value from before a resume must not come back.
    extra = {name: getattr(record, _RENAMED.get(name, name)) for name in EXTRA_KINDS}
    return Entry(**entry_fields, backend_id=record.thread_id, extra=extra)


def record_of(entry: Entry) -> Record:
    """The record of an entry. Fields of a wrong type, which only another program writes, are left out."""
    return record_of_row(row_of(entry))


def record_of_row(row: SessionRow) -> Record:
    return Record(
        agent_id=row.agent_id,
        identity=row.identity,
        team=row.team,
        backend=row.backend or DEFAULT_BACKEND,
        thread_id=row.backend_id,
        repo_root=row.repo_root,
        repo_name=row.repo_name,
        branch=row.branch,
        cwd=row.cwd,
        started_at=row.started_at,
        last_active=row.last_active,
        status=row.status,
        state="busy" if row.state == "busy" else "idle",
        tag=row.tag,
        role=row.role,
        agent_name=row.agent_name,
        agent_source=row.agent_source,
        model=row.model,
        sandbox=row.sandbox,
        approval_policy=row.approval_policy,
        effort=row.reasoning_effort,
        base_instructions=row.base_instructions,
        developer_instructions=row.developer_instructions,
        # Copied, because rows are cached.
        config=dict(row.config or {}),
        native=dict(row.native or {}),
        ephemeral=bool(row.ephemeral),
        is_empty=bool(row.is_empty),
        tools=list(row.tools or []),
        turns=row.turns or 0,
        tokens=row.tokens or 0,
    )
