"""A `Legacy` that knows its thread, and what it tells, for the tests of the old event names."""

from __future__ import annotations

from typing import Any

from laneway.codex.legacy import Legacy, Level
from laneway.core.model import Event
from laneway.core.ports import ThreadInfo


def fresh(level: Level = "full", **native: Any) -> Legacy:
    """One that has been told its thread, at a time that stands still."""
    legacy = Legacy(level, now=lambda: 100.0)
    started = {"thread": {"id": "t", "path": "/r"}, "model": "m", "cwd": "/w", **native}
    legacy.opening(ThreadInfo(thread_id="t", cwd="/w", native=started))
    return legacy


def told(legacy: Legacy, *events: Event) -> list[dict[str, Any]]:
    return [one for event in events for one in legacy.of(event)]


def types(messages: list[dict[str, Any]]) -> list[str]:
    return [str(message["type"]) for message in messages]
