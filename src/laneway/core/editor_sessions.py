"""What is kept of an editor's sessions, so that a restarted Laneway can go on with any of them.

Values, and the port to whoever keeps them (`laneway.store.editor_sessions`: one row a session). The
conversation itself is the engine's; here is only what the engine does not keep: what the user chose,
and which access the session had. No secrets: what an editor says of MCP servers is never written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from laneway.core.access import Permit


class Defaults(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the user chose (none: nothing), and the access that came of it."""

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
    """What config.toml meant at the time."""
    sent: Permit | None = None
    """What Codex had last: from us, or by its own account."""
    empty_in: str | None = None
    """While nothing was said in it: the Codex home of its thread, which Codex has not written down yet."""

    @property
    def policy(self) -> Permit | None:
        """What the session was shown to have."""
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
        """Keep it, in the place of what was there; as it stands now."""
        ...

    def delete(self, session_id: str) -> bool: ...

    def change_thread(self, session_id: str, old: str, new: str) -> bool:
        """Whether it was ours to give it another thread: of several who try at once, the first does."""
        ...

    def renamed(self, thread_ids: Iterable[str]) -> dict[str, str]:
        """The sessions of these threads, where a session has another thread than the one in its name."""
        ...

    def empty(self, codex_home: str, age_s: int, limit: int, cwd: str | None = None) -> list[SessionRecord]:
        """Sessions that nothing was said in yet, in this Codex home and of this age; the newest first."""
        ...
