"""Ids that a client sees, and what they stand for.

A session is named by its thread: the id says which, but for one whose empty thread was lost, and who has
another since (its record says which). A tool call can be traced to thread, turn and item.
"""

from __future__ import annotations

import re

_SESSION = "sess_"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def session_id(thread_id: str) -> str:
    return _SESSION + thread_id


def thread_id(session_id: str) -> str | None:
    """The thread behind a session id; none if it is no id of ours."""
    thread = session_id.removeprefix(_SESSION)
    return thread if session_id.startswith(_SESSION) and _UUID.fullmatch(thread) else None


def tool_call_id(thread_id: str, turn_id: str, item_id: str) -> str:
    return f"codex:{thread_id}:{turn_id}:{item_id}"
