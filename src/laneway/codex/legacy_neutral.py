"""Gives activities of other engines the shape of Codex's items, for the old `codex mcp-server`'s events.

Pure. Clients of those events know commands, edits, tools and searches by their names; what looks at files is
a command there, with what it does as its parsed form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from laneway.core.model import Activity, Look

_PARSED = {"read": "read", "search": "search", "list": "listFiles"}


def as_codex(event: Activity) -> Activity:
    """The activity with an item as Codex would have it; unchanged where there is no such item."""
    maker = _ITEMS.get(event.kind)
    return event if maker is None else msgspec.structs.replace(event, item=maker(event))


def _command(event: Activity) -> dict[str, Any]:
    return {"type": "commandExecution", "command": event.title, "cwd": event.cwd}


def _read(event: Activity) -> dict[str, Any]:
    look = event.look or Look(purpose="read", path=event.title)
    action = {"type": _PARSED[look.purpose], "command": event.title, "path": look.path or None}
    if look.purpose == "read":
        action["name"] = look.path.rsplit("/", 1)[-1]
    elif look.pattern:
        action["query"] = look.pattern
    return {
        "type": "commandExecution",
        "command": [event.tool or look.purpose, *(text for text in (look.pattern, look.path) if text)],
        "cwd": event.cwd,
        "commandActions": [action],
    }


def _edit(event: Activity) -> dict[str, Any]:
    return {"type": "fileChange"}


def _mcp(event: Activity) -> dict[str, Any]:
    server, _, tool = event.title.partition(".")
    content = event.content if isinstance(event.content, list) else []
    result = {"result": {"content": content}} if event.status == "completed" else {}
    item = {"type": "mcpToolCall", "server": server, "tool": tool, "arguments": event.input}
    return {**item, "status": event.status, **result}


def _tool(event: Activity) -> dict[str, Any]:
    texts = [{"type": "inputText", "text": event.output}] if event.output else []
    call = {"tool": event.tool or event.title, "arguments": event.input, "contentItems": texts}
    return {"type": "dynamicToolCall", **call, "success": event.status == "completed"}


def _search(event: Activity) -> dict[str, Any]:
    return {"type": "webSearch", "query": event.title, "action": event.input}


_ITEMS: dict[str, Callable[[Activity], dict[str, Any]]] = {
    "command": _command,
    "read": _read,
    "edit": _edit,
    "mcp": _mcp,
    "tool": _tool,
    "search": _search,
}
