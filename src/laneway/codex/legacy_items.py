"""Activities of today as the old server told them: one table from item type to the pair of old events.

Pure. The shapes are those of the traces under `tests/golden/mcp-server-0.153.4`, and of Codex's
own published table from items to old events for what a scripted model cannot bring about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from laneway.codex.legacy_shapes import Message, argv, changed, duration, file_url, given, parsed, snake
from laneway.core.model import Activity, FileChange

_EDIT_MARKS = {"add": "A", "update": "M", "delete": "D"}


class LegacyContext(msgspec.Struct, frozen=True):
    """What an item does not tell of itself."""

    thread_id: str
    cwd: str
    sandbox: dict[str, Any]
    at_ms: int


def begun(event: Activity, scene: LegacyContext) -> list[Message]:
    """An item as the old pair: `item_started`, and the older event that says the same."""
    record = event.item if isinstance(event.item, dict) else {}
    item, told = _MAKERS.get(str(record.get("type")), _other)(event, record, scene, False)
    started = {
        "type": "item_started",
        "thread_id": scene.thread_id,
        "turn_id": event.turn_id,
        "item": item,
        "started_at_ms": scene.at_ms,
    }
    return [started, *told]


def ended(event: Activity, scene: LegacyContext, started_at_ms: int) -> list[Message]:
    record = event.item if isinstance(event.item, dict) else {}
    item, told = _MAKERS.get(str(record.get("type")), _other)(event, record, scene, True)
    completed = {
        "type": "item_completed",
        "thread_id": scene.thread_id,
        "turn_id": event.turn_id,
        "item": item,
        "started_at_ms": started_at_ms,
        "completed_at_ms": scene.at_ms,
    }
    return [completed, *told]


Made = tuple[Message, list[Message]]


def _command(event: Activity, item: Message, scene: LegacyContext, is_over: bool) -> Made:
    what = {
        "command": argv(item.get("command")),
        "cwd": file_url(str(item.get("cwd") or scene.cwd)),
        "parsed_cmd": parsed(item.get("commandActions")),
        "source": snake(str(item.get("source") or "agent")),
    }
    number = given({"process_id": item.get("processId")})
    same = {"call_id": event.item_id, **number, "turn_id": event.turn_id}
    shown = {"type": "CommandExecution", "id": event.item_id, **number, **what}
    if not is_over:
        begin = {"type": "exec_command_begin", **same, "started_at_ms": scene.at_ms, **what}
        return {**shown, "status": "in_progress"}, [begin]
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
    end = {"type": "exec_command_end", **same, "completed_at_ms": scene.at_ms, **what, **result}
    return {**shown, "status": status, **result}, [{**end, "status": status}]


def _edit(event: Activity, item: Message, scene: LegacyContext, is_over: bool) -> Made:
    changes = changed(event.changes)
    same = {"call_id": event.item_id, "turn_id": event.turn_id}
    if not is_over:
        approved = auto_approved(event.changes, scene)
        shown = {"type": "FileChange", "id": event.item_id, "changes": changes, "auto_approved": approved}
        return shown, [{"type": "patch_apply_begin", **same, "auto_approved": approved, "changes": changes}]
    status = event.status if event.status in ("completed", "declined") else "failed"
    out = {"stdout": success(event.changes, scene.cwd) if status == "completed" else "", "stderr": ""}
    end = {"type": "patch_apply_end", **same, **out, "success": status == "completed", "changes": changes}
    shown = {"type": "FileChange", "id": event.item_id, "changes": changes, "status": status, **out}
    return shown, [{**end, "status": status}]


def auto_approved(changes: Iterable[FileChange], scene: LegacyContext) -> bool:
    """Whether Codex makes these edits unasked. App-server does not say; this is Codex's own rule."""
    kind = scene.sandbox.get("type")
    if kind != "workspaceWrite":
        return kind == "dangerFullAccess"
    roots = [scene.cwd, *(str(root) for root in scene.sandbox.get("writableRoots") or [])]
    paths = [path for change in changes for path in (change.path, change.move_path) if path]
    return all(any(path.startswith(root.rstrip("/") + "/") for root in roots) for path in paths)


def success(changes: Iterable[FileChange], cwd: str) -> str:
    """The words of the patch tool, which app-server does not pass on."""
    lines = [f"{_EDIT_MARKS[change.kind]} {change.path.removeprefix(cwd + '/')}\n" for change in changes]
    return "".join(
        ("Success. Updated the following files:\n", *sorted(lines, key=lambda line: "AMD".index(line[0])))
    )


def _mcp(event: Activity, item: Message, scene: LegacyContext, is_over: bool) -> Made:
    call = given({key: item.get(key) for key in ("server", "tool", "arguments")})
    shown: Message = {"type": "McpToolCall", "id": event.item_id, **call, "status": item.get("status")}
    same = {"call_id": event.item_id, "invocation": call}
    if not is_over:
        return shown, [{"type": "mcp_tool_call_begin", **same}]
    took = duration(item.get("durationMs"))
    result = item.get("result")
    if isinstance(result, dict):
        failed = True if item.get("status") == "failed" else None
        result = given({**result, "isError": failed})
        return {**shown, "result": result, "duration": took}, [
            {"type": "mcp_tool_call_end", **same, "duration": took, "result": {"Ok": result}}
        ]
    error = event.output or "the call was given up"
    return {**shown, "error": {"message": error}, "duration": took}, [
        {"type": "mcp_tool_call_end", **same, "duration": took, "result": {"Err": error}}
    ]


def _search(event: Activity, item: Message, scene: LegacyContext, is_over: bool) -> Made:
    action = item.get("action")
    if isinstance(action, dict):
        action = {key: snake(value) if key == "type" else value for key, value in given(action).items()}
    what = {"query": str(item.get("query") or ""), "action": action}
    shown = {"type": "WebSearch", "id": event.item_id, **what}
    if not is_over:
        return shown, [{"type": "web_search_begin", "call_id": event.item_id}]
    return shown, [{"type": "web_search_end", "call_id": event.item_id, **what}]


def _image_view(event: Activity, item: Message, scene: LegacyContext, is_over: bool) -> Made:
    shown = {"type": "ImageView", "id": event.item_id, "path": item.get("path")}
    seen = {"type": "view_image_tool_call", "call_id": event.item_id, "path": item.get("path")}
    return shown, [seen] if is_over else []


def _image(event: Activity, item: Message, scene: LegacyContext, is_over: bool) -> Made:
    shown, _ = _other(event, item, scene, is_over)
    same = {"call_id": event.item_id}
    if not is_over:
        return shown, [{"type": "image_generation_begin", **same}]
    return shown, [{"type": "image_generation_end", **same, **_fields(shown)}]


_COLLAB = {
    "spawnAgent": "collab_agent_spawn",
    "sendInput": "collab_agent_interaction",
    "resumeAgent": "collab_resume",
    "wait": "collab_waiting",
    "closeAgent": "collab_close",
}


def _collab(event: Activity, item: Message, scene: LegacyContext, is_over: bool) -> Made:
    shown, _ = _other(event, item, scene, is_over)
    name = _COLLAB.get(str(item.get("tool")))
    if name is None:
        return shown, []
    clock = {"completed_at_ms" if is_over else "started_at_ms": scene.at_ms}
    what = {key: value for key, value in _fields(shown).items() if key not in ("tool", "status")}
    return shown, [
        {"type": f"{name}_{'end' if is_over else 'begin'}", "call_id": event.item_id, **clock, **what}
    ]


def _tool(event: Activity, item: Message, scene: LegacyContext, is_over: bool) -> Made:
    shown, _ = _other(event, item, scene, is_over)
    same = {"call_id": event.item_id, "turn_id": event.turn_id}
    what = given({key: item.get(key) for key in ("namespace", "tool", "arguments")})
    if not is_over:
        return shown, [{"type": "dynamic_tool_call_request", **same, "started_at_ms": scene.at_ms, **what}]
    result = {
        "content_items": item.get("contentItems") or [],
        "success": bool(item.get("success")),
        "error": None,
        "duration": duration(item.get("durationMs")),
    }
    end = {"type": "dynamic_tool_call_response", **same, "completed_at_ms": scene.at_ms}
    return shown, [{**end, **what, **result}]


def _other(event: Activity, item: Message, scene: LegacyContext, is_over: bool) -> Made:
    """What has no older event, or is newer than the old server: the item alone, spelled its way."""
    kind = str(item.get("type") or "item")
    fields = {snake(key): value for key, value in given(item).items() if key not in ("type", "id")}
    return {"type": kind[:1].upper() + kind[1:], "id": event.item_id, **fields}, []


def _fields(shown: Message) -> Message:
    return {key: value for key, value in shown.items() if key not in ("type", "id")}


_MAKERS: dict[str, Callable[[Activity, Message, LegacyContext, bool], Made]] = {
    "commandExecution": _command,
    "fileChange": _edit,
    "mcpToolCall": _mcp,
    "webSearch": _search,
    "imageView": _image_view,
    "imageGeneration": _image,
    "collabAgentToolCall": _collab,
    "dynamicToolCall": _tool,
}
