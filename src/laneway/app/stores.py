"""Opens the session store of a team, with the location and retention that the settings name."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from laneway.base.settings import Settings
from laneway.store.layout import AGENT_SESSIONS, CODEX_SESSIONS, sessions_root
from laneway.store.retention import Retention
from laneway.store.store import Store


def store_of(
    settings: Settings,
    *,
    team: str | None = None,
    is_flat: bool = False,
    root: Path | None = None,
    keep: Retention | None = None,
) -> Store:
    """A team's store, by default the settings' one. `is_flat`: as the older `codex-mcp` has it."""
    root = root or sessions_root(CODEX_SESSIONS if is_flat else AGENT_SESSIONS)
    return Store(root, team or settings.team, flat=is_flat, retention=keep or retention(settings))


def retention(settings: Settings) -> Retention:
    """Age and size limits of sessions and audit files; 0 days means no age limit."""

    def days(number: int) -> timedelta | None:
        return timedelta(days=number) if number else None

    return Retention(
        session_age=days(settings.session_age_days),
        max_sessions=settings.registry_max_sessions,
        audit_max_bytes=settings.audit_max_bytes,
        audit_files=settings.audit_files,
        audit_age=days(settings.audit_age_days),
    )
