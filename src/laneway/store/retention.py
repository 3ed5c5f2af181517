"""Limits on the age and number of stored sessions and audit files. Codex's transcripts are never touched."""

from __future__ import annotations

from datetime import timedelta

import msgspec


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How long sessions and audit files are kept, and how many."""

    session_age: timedelta | None = timedelta(days=90)
    """Closed and stale sessions that are older leave the registry when their identity is next claimed.
    Long enough that nobody misses one; `None` keeps them until they are pruned."""

    max_sessions: int = 500
    """In one identity's registry, which is rewritten at every change. Ended sessions make room."""

    audit_max_bytes: int = 10 * 1024 * 1024
    """Of one audit file: some 40,000 lines. Then it becomes `audit.jsonl.1`, and a new one begins."""

    audit_files: int = 5
    """Older audit files that stay: `audit.jsonl.1`, the newest of them, to `audit.jsonl.5`."""

    audit_age: timedelta | None = timedelta(days=90)
    """Rotated audit files last written before that are removed, and a file begun before that is rotated."""
