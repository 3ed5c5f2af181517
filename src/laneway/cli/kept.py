"""Where sessions are kept, by the settings: for the servers that keep them and the commands that look."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec

from laneway.base.settings import Settings
from laneway.cli.chosen import settings_here
from laneway.store.layout import AGENT_SESSIONS, CODEX_SESSIONS, sessions_root
from laneway.store.retention import Retention
from laneway.store.store import Store


def open_store(team: str | None, *, is_flat: bool = False) -> Store:
    """A team's store, to look into or to prune by hand."""
    settings = settings_here({"team": team})
    # Whoever looks or prunes by hand removes what was asked for and nothing else; age is for the doors.
    kept = msgspec.structs.replace(retention(settings), session_age=None)
    return store_of(settings, is_flat=is_flat, kept=kept)


def store_of(
    settings: Settings, *, is_flat: bool = False, root: Path | None = None, kept: Retention | None = None
) -> Store:
    """The team's store. The older seed keeps its own place, without teams (`is_flat`)."""
    root = root or sessions_root(CODEX_SESSIONS if is_flat else AGENT_SESSIONS)
    return Store(root, settings.team, flat=is_flat, retention=kept or retention(settings))


def retention(settings: Settings) -> Retention:
    """How long things are kept; 0 days keep them."""

    def days(number: int) -> timedelta | None:
        return timedelta(days=number) if number else None

    return Retention(
        session_age=days(settings.session_age_days),
        max_sessions=settings.registry_max_sessions,
        audit_max_bytes=settings.audit_max_bytes,
        audit_files=settings.audit_files,
        audit_age=days(settings.audit_age_days),
    )
