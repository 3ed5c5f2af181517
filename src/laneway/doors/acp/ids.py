"""Ids that a client sees, and what they stand for.

A session is its thread: the id says which. A tool call can be traced to thread, turn and item.
"""

from __future__ import annotations

_SESSION = "sess_"


def session_id(thread_id: str) -> str:
    return _SESSION + thread_id


def thread_id(session_id: str) -> str | None:
    """The thread behind a session id; none if it is no id of ours."""
    return session_id.removeprefix(_SESSION) if session_id.startswith(_SESSION) else None


def tool_call_id(thread_id: str, turn_id: str, item_id: str) -> str:
    return f"codex:{thread_id}:{turn_id}:{item_id}"
