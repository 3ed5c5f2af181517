"""Session records and audit lines as values, and the port (`Records`) of the store that keeps them.

`NamedSessions` is the only user; `laneway.store.records` keeps them in files. Everything that may
touch a disk is awaited. A `Claim` is one identity, locked against all other processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from laneway.base.engines import DEFAULT_BACKEND
from laneway.base.errors import BadName

Status: TypeAlias = Literal["active", "stale", "closed", "interrupted"]
"""`stale`: its process is gone. `interrupted`: closed without the summary that was asked for."""

RESERVED = frozenset({"team-lead", "user", "system", "main"})
"""Names with another meaning in Claude's teams and for people; no session may have one."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One session: its identity, its folder, and the settings that are needed to resume it."""

    agent_id: str
    identity: str
    team: str
    backend: str = DEFAULT_BACKEND
    """The key of the engine that runs it."""
    thread_id: str | None = None
    repo_root: str | None = None
    repo_name: str | None = None
    branch: str | None = None
    cwd: str | None = None
    started_at: str = ""
    last_active: str = ""
    status: Status = "active"
    state: Literal["busy", "idle"] = "idle"
    tag: str | None = None
    role: str | None = None
    agent_name: str | None = None
    agent_source: str | None = None
    model: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None
    effort: str | None = None
    base_instructions: str | None = None
    developer_instructions: str | None = None
    """The caller's own instructions: every resume sends them again."""
    config: dict[str, Any] = {}
    native: dict[str, Any] = {}
    ephemeral: bool = False
    is_empty: bool = False
    """Whether its thread has had no input yet, so that the engine has not written it to disk."""
    tools: list[str] = []
    """Our tools that its thread was started with."""
    turns: int = 0
    tokens: int = 0

    @property
    def is_resumable(self) -> bool:
        """Whether it can be resumed: it is not active, and its thread was kept."""
        return self.status != "active" and self.thread_id is not None and not self.ephemeral


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the audit log. The store redacts and shortens its texts."""

    event_type: str
    agent_id: str | None
    identity: str | None
    recipient: str = ""
    message_summary: str = ""
    prompt_summary: str = ""
    thread_id: str = ""
    turn_id: str = ""
    request_id: str = ""
    outcome: str = ""


class RecordView(msgspec.Struct, frozen=True):
    """All records of a team at one time."""

    records: tuple[Record, ...]
    """A session marked active whose identity no process holds is listed as stale."""
    problems: tuple[str, ...] = ()
    """What could not be read, as sentences."""


class Claim(Protocol):
    """An identity that is ours until it is released: the only way to write its records."""

    async def get(self, agent_id: str) -> Record | None: ...

    async def put(self, record: Record) -> None:
        """On the disk when this returns, or `StoreError`."""
        ...

    async def write_summary(self, thread_id: str, text: str) -> None: ...

    async def tell(self, agent_id: str) -> None:
        """Write down which session uses the name now, as information for other processes."""
        ...

    async def release(self) -> None:
        """Twice is harmless."""
        ...


class Records(Protocol):
    """The store of one team's records and audit lines."""

    @property
    def team(self) -> str: ...

    def now(self) -> str:
        """The current time in the format of records."""
        ...

    def check(self, identity: str) -> None:
        """Raise `BadName` if no session can have this name."""
        ...

    async def claim(self, identity: str, agent_id: str | None) -> Claim:
        """Lock this identity; `IdentityHeld` if a living process has it, `BadName` if it is no valid name."""
        ...

    async def view(self) -> RecordView:
        """All sessions of the team, of running and of ended processes."""
        ...

    async def summary(self, identity: str, thread_id: str) -> str | None: ...

    async def audit(self, lines: Sequence[AuditLine]) -> None: ...


def refuse_reserved(identity: str) -> None:
    if identity.casefold() in RESERVED:
        raise BadName(f"The name {identity} is reserved: choose another identity.")


def latest(records: Iterable[Record]) -> Record | None:
    """The one that was active last."""
    return max(records, key=lambda record: record.last_active or record.started_at, default=None)
