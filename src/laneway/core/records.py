"""What is kept about sessions, as values, and the port behind which it is kept.

`Colleagues` is the only user; `laneway.store.records` keeps it all in files. Everything that
may touch a disk is awaited. A `Claim` is one identity, held against all other processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from laneway.base.errors import BadName

Status: TypeAlias = Literal["active", "stale", "closed", "interrupted"]
"""`stale`: its process is gone. `interrupted`: closed, but the summary that was asked for did not come."""

RESERVED = frozenset({"team-lead", "user", "system", "main"})
"""Names that mean somebody else to Claude's teams and to people; no session may have one."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One session: who it is, where it works, and how it was started, so that it can be again."""

    agent_id: str
    identity: str
    team: str
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
    """The caller's own: every resume sends them again."""
    config: dict[str, Any] = {}
    native: dict[str, Any] = {}
    ephemeral: bool = False
    is_empty: bool = False
    """Whether nothing was said in its thread yet, so that the engine has not written it down."""
    tools: list[str] = []
    """Those of ours that its thread was started with."""
    turns: int = 0
    tokens: int = 0

    @property
    def is_resumable(self) -> bool:
        """Whether somebody can have it back who is not using it now."""
        return self.status != "active" and self.thread_id is not None and not self.ephemeral


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """What happened. Texts are redacted and cut by whoever keeps them."""

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


class View(msgspec.Struct, frozen=True):
    records: tuple[Record, ...]
    """A session marked active whose identity nobody holds is shown as stale."""
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
        """Which session works under the name now: information for others."""
        ...

    async def release(self) -> None:
        """Twice is harmless."""
        ...


class Records(Protocol):
    @property
    def team(self) -> str: ...

    def now(self) -> str:
        """The time, as records tell it."""
        ...

    def check(self, identity: str) -> None:
        """Raise `BadName` for what can be no session's name."""
        ...

    async def claim(self, identity: str, agent_id: str | None) -> Claim:
        """Be this identity; `IdentityHeld` if a living process is, `BadName` if nobody can be."""
        ...

    async def view(self) -> View:
        """All sessions of the team, of living and of dead processes."""
        ...

    async def summary(self, identity: str, thread_id: str) -> str | None: ...

    async def audit(self, lines: Sequence[AuditLine]) -> None: ...


def refuse_reserved(identity: str) -> None:
    if identity.casefold() in RESERVED:
        raise BadName(f"The name {identity} is reserved: choose another identity.")


def latest(records: Iterable[Record]) -> Record | None:
    """The one that was active last."""
    return max(records, key=lambda record: record.last_active or record.started_at, default=None)
