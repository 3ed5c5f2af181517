"""Ids of sessions and tool calls, made from Codex's ids of threads, turns and items.

A session id contains its thread's id. The exception is a session whose thread was lost while it was
empty: it keeps its id and gets another thread, which only its record names.
"""

from __future__ import annotations

import re

_SESSION = "sess_"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def session_id(thread_id: str) -> str:
    return _SESSION + thread_id


def thread_id(session_id: str) -> str | None:
    """The thread id in a session id; none if the session id is not one of ours."""
    thread = session_id.removeprefix(_SESSION)
    return thread if session_id.startswith(_SESSION) and _UUID.fullmatch(thread) else None


def tool_call_id(thread_id: str, turn_id: str, item_id: str) -> str:
    return f"codex:{thread_id}:{turn_id}:{item_id}"
