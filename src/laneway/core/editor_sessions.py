"""Records of editors' sessions, from which a restarted Laneway can resume them, and the port of their store.

`laneway.store.editor_sessions` implements the port with one row per session. The engine stores the
conversation; a record holds only what the engine does not: the user's choices and the access of the
session. No secrets: an editor's MCP servers are never written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from laneway.core.access import Permit


class Defaults(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The user's choices (none where nothing was chosen), and the access that resulted."""

    mode: str = "config"
    model: str | None = None
    effort: str | None = None
    personality: str | None = None
    summary: str | None = None
    network: bool | None = None
    is_set: bool = False
    """Whether a mode or the network was ever chosen."""
    approval_policy: Any = None
    sandbox_policy: dict[str, Any] | None = None
    permissions: str | None = None
    configured: Permit | None = None
    """The access that config.toml granted at the time."""
    sent: Permit | None = None
    """The access that Codex had last: sent by us, or reported by Codex."""
    empty_in: str | None = None
    """The Codex home of a session without any prompt, whose thread Codex has not written to disk yet."""

    @property
    def policy(self) -> Permit | None:
        """The access that the session was shown with."""
        if self.sandbox_policy is None:
            return None
        return Permit(self.approval_policy, self.sandbox_policy, self.permissions)


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Times are seconds since 1970."""

    session_id: str
    thread_id: str
    cwd: str
    created_at: int = 0
    updated_at: int = 0
    defaults: Defaults = Defaults()
    directories: tuple[str, ...] = ()
    """Further folders that the editor opened the session with."""


class SessionRecords(Protocol):
    """All calls block, and raise `StoreError`."""

    def get(self, session_id: str) -> SessionRecord | None: ...

    def put(self, record: SessionRecord) -> SessionRecord:
        """Write the record over an older one; returns it as stored."""
        ...

    def delete(self, session_id: str) -> bool: ...

    def change_thread(self, session_id: str, old: str, new: str) -> bool:
        """Give a session another thread; false if another process was first."""
        ...

    def renamed(self, thread_ids: Iterable[str]) -> dict[str, str]:
        """Session ids by thread id, for sessions whose id no longer names their thread."""
        ...

    def empty(self, codex_home: str, age_s: int, limit: int, cwd: str | None = None) -> list[SessionRecord]:
        """Sessions without any prompt in this Codex home, at most this old; the newest first."""
        ...
