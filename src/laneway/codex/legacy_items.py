"""Converts activities to the old `codex mcp-server`'s events: one table from item type to begin and end.

Pure. The shapes are those of the traces under `tests/golden/mcp-server-0.153.4`; where a scripted model
cannot produce an item, those of Codex's own published table from items to old events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from laneway.codex.legacy_shapes import (
    Message,
    argv,
    changes_json,
    duration,
    file_url,
    parsed_commands,
    snake,
    without_none,
)
from laneway.core.model import Activity, FileChange

NEUTRAL_KINDS = frozenset({"command", "read", "edit", "mcp", "tool", "search"})
"""Kinds of activity that `legacy_neutral` gives an item of Codex's."""
_EDIT_MARKS = {"add": "A", "update": "M", "delete": "D"}


class LegacyContext(msgspec.Struct, frozen=True):
    """The thread's facts that an item does not contain."""

    thread_id: str
    cwd: str
    sandbox: dict[str, Any]
    at_ms: int


def begin_messages(event: Activity, context: LegacyContext) -> list[Message]:
    """`item_started`, and the older event that means the same."""
    item_json = event.item if isinstance(event.item, dict) else {}
    item, older = _MAKERS.get(str(item_json.get("type")), _other)(event, item_json, context, False)
    started = {
        "type": "item_started",
        "thread_id": context.thread_id,
        "turn_id": event.turn_id,
        "item": item,
        "started_at_ms": context.at_ms,
    }
    return [started, *older]


def end_messages(event: Activity, context: LegacyContext, started_at_ms: int) -> list[Message]:
    """`item_completed`, and the older event that means the same."""
    item_json = event.item if isinstance(event.item, dict) else {}
    item, older = _MAKERS.get(str(item_json.get("type")), _other)(event, item_json, context, True)
    completed = {
        "type": "item_completed",
        "thread_id": context.thread_id,
        "turn_id": event.turn_id,
        "item": item,
        "started_at_ms": started_at_ms,
        "completed_at_ms": context.at_ms,
    }
    return [completed, *older]


def is_codex_item(event: Activity) -> bool:
    """Whether it has an item of Codex's, or none that the old server had an event for."""
    kind = event.item.get("type") if isinstance(event.item, dict) else None
    return kind in _MAKERS or event.kind not in NEUTRAL_KINDS


_OldEvents = tuple[Message, list[Message]]


def _command(event: Activity, item: Message, context: LegacyContext, has_ended: bool) -> _OldEvents:
    command = {
        "command": argv(item.get("command")),
        "cwd": file_url(str(item.get("cwd") or context.cwd)),
        "parsed_cmd": parsed_commands(item.get("commandActions")),
        "source": snake(str(item.get("source") or "agent")),
    }
    process = without_none({"process_id": item.get("processId")})
    ids = {"call_id": event.item_id, **process, "turn_id": event.turn_id}
    item_out = {"type": "CommandExecution", "id": event.item_id, **process, **command}
    if not has_ended:
        begin = {"type": "exec_command_begin", **ids, "started_at_ms": context.at_ms, **command}
        return {**item_out, "status": "in_progress"}, [begin]
    output = event.output or ""
    result = {
        "stdout": output,
        "stderr": "",
        "aggregated_output": output,
        "exit_code": event.exit_code if event.exit_code is not None else -1,
        "duration": duration(item.get("durationMs")),
        "formatted_output": output,
    }
    status = event.status if event.status in ("completed", "declined") else "failed"
    end = {"type": "exec_command_end", **ids, "completed_at_ms": context.at_ms, **command, **result}
    return {**item_out, "status": status, **result}, [{**end, "status": status}]


def _edit(event: Activity, item: Message, context: LegacyContext, has_ended: bool) -> _OldEvents:
    changes = changes_json(event.changes)
    ids = {"call_id": event.item_id, "turn_id": event.turn_id}
    if not has_ended:
        approved = auto_approved(event.changes, context)
        item_out = {"type": "FileChange", "id": event.item_id, "changes": changes, "auto_approved": approved}
        return item_out, [{"type": "patch_apply_begin", **ids, "auto_approved": approved, "changes": changes}]
    status = event.status if event.status in ("completed", "declined") else "failed"
    output = {
        "stdout": patch_output(event.changes, context.cwd) if status == "completed" else "",
        "stderr": "",
    }
    end = {"type": "patch_apply_end", **ids, **output, "success": status == "completed", "changes": changes}
    item_out = {"type": "FileChange", "id": event.item_id, "changes": changes, "status": status, **output}
    return item_out, [{**end, "status": status}]


def auto_approved(changes: Iterable[FileChange], context: LegacyContext) -> bool:
    """Whether Codex makes these edits without approval. App-server does not say; this is Codex's rule."""
    kind = context.sandbox.get("type")
    if kind != "workspaceWrite":
        return kind == "dangerFullAccess"
    roots = [context.cwd, *(str(root) for root in context.sandbox.get("writableRoots") or [])]
    paths = [path for change in changes for path in (change.path, change.move_path) if path]
    return all(any(path.startswith(root.rstrip("/") + "/") for root in roots) for path in paths)


def patch_output(changes: Iterable[FileChange], cwd: str) -> str:
    """The output of the patch tool, which app-server does not send."""
    lines = [f"{_EDIT_MARKS[change.kind]} {change.path.removeprefix(cwd + '/')}\n" for change in changes]
    return "".join(
        ("Success. Updated the following files:\n", *sorted(lines, key=lambda line: "AMD".index(line[0])))
    )


def _mcp(event: Activity, item: Message, context: LegacyContext, has_ended: bool) -> _OldEvents:
    invocation = without_none({key: item.get(key) for key in ("server", "tool", "arguments")})
    item_out: Message = {
        "type": "McpToolCall",
        "id": event.item_id,
        **invocation,
        "status": item.get("status"),
    }
    ids = {"call_id": event.item_id, "invocation": invocation}
    if not has_ended:
        return item_out, [{"type": "mcp_tool_call_begin", **ids}]
    took = duration(item.get("durationMs"))
    result = item.get("result")
    if isinstance(result, dict):
        is_error = True if item.get("status") == "failed" else None
        result = without_none({**result, "isError": is_error})
        return {**item_out, "result": result, "duration": took}, [
            {"type": "mcp_tool_call_end", **ids, "duration": took, "result": {"Ok": result}}
        ]
    error = event.output or "the call was given up"
    return {**item_out, "error": {"message": error}, "duration": took}, [
        {"type": "mcp_tool_call_end", **ids, "duration": took, "result": {"Err": error}}
    ]


def _search(event: Activity, item: Message, context: LegacyContext, has_ended: bool) -> _OldEvents:
    action = item.get("action")
    if isinstance(action, dict):
        action = {
            key: snake(value) if key == "type" else value for key, value in without_none(action).items()
        }
    search = {"query": str(item.get("query") or ""), "action": action}
    item_out = {"type": "WebSearch", "id": event.item_id, **search}
    if not has_ended:
        return item_out, [{"type": "web_search_begin", "call_id": event.item_id}]
    return item_out, [{"type": "web_search_end", "call_id": event.item_id, **search}]


def _image_view(event: Activity, item: Message, context: LegacyContext, has_ended: bool) -> _OldEvents:
    item_out = {"type": "ImageView", "id": event.item_id, "path": item.get("path")}
    view = {"type": "view_image_tool_call", "call_id": event.item_id, "path": item.get("path")}
    return item_out, [view] if has_ended else []


def _image(event: Activity, item: Message, context: LegacyContext, has_ended: bool) -> _OldEvents:
    item_out, _ = _other(event, item, context, has_ended)
    ids = {"call_id": event.item_id}
    if not has_ended:
        return item_out, [{"type": "image_generation_begin", **ids}]
    return item_out, [{"type": "image_generation_end", **ids, **_fields(item_out)}]


_COLLAB = {
    "spawnAgent": "collab_agent_spawn",
    "sendInput": "collab_agent_interaction",
    "resumeAgent": "collab_resume",
    "wait": "collab_waiting",
    "closeAgent": "collab_close",
}


def _collab(event: Activity, item: Message, context: LegacyContext, has_ended: bool) -> _OldEvents:
    item_out, _ = _other(event, item, context, has_ended)
    name = _COLLAB.get(str(item.get("tool")))
    if name is None:
        return item_out, []
    time = {"completed_at_ms" if has_ended else "started_at_ms": context.at_ms}
    fields = {key: value for key, value in _fields(item_out).items() if key not in ("tool", "status")}
    return item_out, [
        {"type": f"{name}_{'end' if has_ended else 'begin'}", "call_id": event.item_id, **time, **fields}
    ]


def _tool(event: Activity, item: Message, context: LegacyContext, has_ended: bool) -> _OldEvents:
    item_out, _ = _other(event, item, context, has_ended)
    ids = {"call_id": event.item_id, "turn_id": event.turn_id}
    call = without_none({key: item.get(key) for key in ("namespace", "tool", "arguments")})
    if not has_ended:
        return item_out, [
            {"type": "dynamic_tool_call_request", **ids, "started_at_ms": context.at_ms, **call}
        ]
    result = {
        "content_items": item.get("contentItems") or [],
        "success": bool(item.get("success")),
        "error": None,
        "duration": duration(item.get("durationMs")),
    }
    end = {"type": "dynamic_tool_call_response", **ids, "completed_at_ms": context.at_ms}
    return item_out, [{**end, **call, **result}]


def _other(event: Activity, item: Message, context: LegacyContext, has_ended: bool) -> _OldEvents:
    """An item without an older event, or newer than the old server: the item alone, in snake_case."""
    kind = str(item.get("type") or "item")
    fields = {snake(key): value for key, value in without_none(item).items() if key not in ("type", "id")}
    return {"type": kind[:1].upper() + kind[1:], "id": event.item_id, **fields}, []


def _fields(item_out: Message) -> Message:
    return {key: value for key, value in item_out.items() if key not in ("type", "id")}


_MAKERS: dict[str, Callable[[Activity, Message, LegacyContext, bool], _OldEvents]] = {
    "commandExecution": _command,
    "fileChange": _edit,
    "mcpToolCall": _mcp,
    "webSearch": _search,
    "imageView": _image_view,
    "imageGeneration": _image,
    "collabAgentToolCall": _collab,
    "dynamicToolCall": _tool,
}
