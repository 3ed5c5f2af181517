"""Helpers for the tests of `LegacyEvents`: one with a thread, and the messages that it returns."""

from __future__ import annotations

from typing import Any

from laneway.codex.legacy import LegacyEvents, Level
from laneway.core.model import Event
from laneway.core.ports import ThreadInfo


def fresh(level: Level = "full", **native: Any) -> LegacyEvents:
    """One that knows its thread, with a clock that stands still."""
    legacy = LegacyEvents(level, now=lambda: 100.0)
    started = {"thread": {"id": "t", "path": "/r"}, "model": "m", "cwd": "/w", **native}
    legacy.opening(ThreadInfo(thread_id="t", cwd="/w", native=started))
    return legacy


def messages_of(legacy: LegacyEvents, *events: Event) -> list[dict[str, Any]]:
    return [message for event in events for message in legacy.of(event)]


def types(messages: list[dict[str, Any]]) -> list[str]:
    return [str(message["type"]) for message in messages]
