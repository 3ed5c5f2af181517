"""Converts Codex's thread items to activities: one table from item type to title, input, output and status.

Pure. Unknown types become activities of kind `other`, with the whole item attached.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any, TypeVar

from laneway.core.model import Activity, ActivityKind, ActivityStatus, FileChange, Location

T = TypeVar("T")

TEXT_ITEMS = frozenset({"userMessage", "agentMessage", "reasoning", "plan", "hookPrompt"})
"""Items that are text and no activity."""

_STATUS: dict[str, ActivityStatus] = {
    "inProgress": "running",
    "in_progress": "running",
    "generating": "running",
    "completed": "completed",
    "failed": "failed",
    "declined": "declined",
    "interrupted": "interrupted",
}
_SHELL = re.compile(r"(?:\S*/)?(?:ba|z|da|k)?sh -l?c ")
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)", re.MULTILINE)


def maybe(value: Any, kind: type[T]) -> T | None:
    """An optional field: none if it has another type. A bool is not a number."""
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def activity(turn_id: str, item: dict[str, Any], *, ended: bool, frame: bytes = b"") -> Activity:
    """One item in its present state. With `ended`, its status is never `running`."""
    kind, title, details = _MAKERS.get(str(item.get("type")), _other)(item)
    status = _STATUS.get(str(item.get("status")), "completed" if ended else "running")
    if ended and status == "running":
        status = "completed"
    if ended and kind == "tool" and item.get("success") is False:
        status = "failed"
    return Activity(
        turn_id=turn_id,
        item_id=str(item.get("id", "")),
        kind=kind,
        title=title,
        status=status,
        item=item,
        frame=frame,
        **details,
    )


def file_changes(changes: list[dict[str, Any]] | None) -> tuple[FileChange, ...]:
    result = []
    for change in changes or []:
        kind = change.get("kind") or {}
        kind_name = kind.get("type") if isinstance(kind, dict) else kind
        result.append(
            FileChange(
                path=str(change.get("path", "")),
                kind="add" if kind_name == "add" else "delete" if kind_name == "delete" else "update",
                diff=str(change.get("diff", "")),
                move_path=maybe(kind.get("move_path"), str) if isinstance(kind, dict) else None,
            )
        )
    return tuple(result)


def plain_command(command: str) -> str:
    """The command without the shell that Codex wraps around it."""
    if not _SHELL.match(command):
        return command
    try:
        args = shlex.split(command)
    except ValueError:
        return command
    return args[2] if len(args) == 3 else command


_ActivityParts = tuple[ActivityKind, str, dict[str, Any]]


def _command(item: dict[str, Any]) -> _ActivityParts:
    command = str(item.get("command", ""))
    return (
        "command",
        plain_command(command),
        {
            "input": command,
            "output": maybe(item.get("aggregatedOutput"), str),
            "exit_code": maybe(item.get("exitCode"), int),
            "cwd": maybe(item.get("cwd"), str),
            "locations": tuple(
                Location(path=str(action["path"]))
                for action in item.get("commandActions") or []
                if isinstance(action, dict) and action.get("path")
            ),
        },
    )


def _edit(item: dict[str, Any]) -> _ActivityParts:
    changes = file_changes(item.get("changes"))
    locations = tuple(
        Location(path=change.move_path or change.path, line=line)
        for change in changes
        for line in _hunk_lines(change)
    )
    return "edit", _edit_title(changes), {"changes": changes, "locations": locations}


def _hunk_lines(change: FileChange) -> list[int]:
    return [max(1, int(line)) for line in _HUNK.findall(change.diff)] or [1]


def count_lines(change: FileChange) -> tuple[int, int]:
    """Lines added and removed. For added and deleted files Codex sends the text itself, not a diff."""
    lines = change.diff.removesuffix("\n").split("\n") if change.diff else []
    if change.kind == "add":
        return len(lines), 0
    if change.kind == "delete":
        return 0, len(lines)
    return (
        # Codex's diffs have no file headers: a line that begins with `+++` adds `++…`.
        sum(line.startswith("+") for line in lines),
        sum(line.startswith("-") for line in lines),
    )


def _edit_title(changes: tuple[FileChange, ...]) -> str:
    if not changes:
        return "Edit files"
    parts = []
    for change in changes[:3]:
        added, removed = count_lines(change)
        parts.append(f"{change.path.rsplit('/', 1)[-1]} (+{added} −{removed})")
    more = f" and {len(changes) - 3} more" if len(changes) > 3 else ""
    return "Edit " + ", ".join(parts) + more


def _mcp(item: dict[str, Any]) -> _ActivityParts:
    error = item.get("error")
    result = item.get("result") or {}
    return (
        "mcp",
        f"{item.get('server', '')}.{item.get('tool', '')}",
        {
            "input": item.get("arguments"),
            "content": result.get("content") if isinstance(result, dict) else result,
            "output": maybe(error.get("message"), str) if isinstance(error, dict) else None,
        },
    )


def _tool(item: dict[str, Any]) -> _ActivityParts:
    content = item.get("contentItems") or []
    texts = [str(part["text"]) for part in content if isinstance(part, dict) and "text" in part]
    return (
        "tool",
        str(item.get("tool", "")),
        {"input": item.get("arguments"), "content": content or None, "output": "\n".join(texts) or None},
    )


def _agent(item: dict[str, Any]) -> _ActivityParts:
    title = str(item.get("tool") or item.get("kind") or "subagent")
    return "agent", title, {"input": item.get("prompt") or item.get("agentPath")}


def _search(item: dict[str, Any]) -> _ActivityParts:
    return "search", str(item.get("query", "")), {"input": item.get("action"), "content": item.get("results")}


def _image(item: dict[str, Any]) -> _ActivityParts:
    path = item.get("savedPath") or item.get("path")
    return (
        "image",
        str(path or item.get("revisedPrompt") or "image"),
        {"content": item.get("result"), "locations": (Location(path=str(path)),) if path else ()},
    )


def _review(item: dict[str, Any]) -> _ActivityParts:
    return "review", str(item.get("review") or item.get("type")), {}


def _compaction(item: dict[str, Any]) -> _ActivityParts:
    return "compaction", "Compact the conversation", {}


def _sleep(item: dict[str, Any]) -> _ActivityParts:
    return "sleep", f"Wait {int(item.get('durationMs') or 0) / 1000:g} s", {}


def _other(item: dict[str, Any]) -> _ActivityParts:
    return "other", str(item.get("type", "item")), {}


_MAKERS: dict[str, Callable[[dict[str, Any]], _ActivityParts]] = {
    "commandExecution": _command,
    "fileChange": _edit,
    "mcpToolCall": _mcp,
    "dynamicToolCall": _tool,
    "collabAgentToolCall": _agent,
    "subAgentActivity": _agent,
    "webSearch": _search,
    "imageView": _image,
    "imageGeneration": _image,
    "enteredReviewMode": _review,
    "exitedReviewMode": _review,
    "contextCompaction": _compaction,
    "sleep": _sleep,
}
