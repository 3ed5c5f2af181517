"""Converts tool calls of Claude Code to activities: a table from tool name to kind, title and output.

Pure. Unknown tools become activities of kind `tool`, with call and result attached.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from laneway.core.model import Activity, ActivityKind, ActivityStatus, FileChange, Location, Look

T = TypeVar("T")

SERVER_PREFIX = "mcp__"
SILENT = frozenset({"AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "StructuredOutput", "ToolSearch"})
"""Calls that are shown in another form, as a question or as the answer, or not at all."""
AGENTS = frozenset({"Agent", "Task"})
EDITORS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
COMMAND = "Bash"
_EXIT = re.compile(r"Exit code (\d+)(?:\n|$)")
_PERSISTED = "<persisted-output>"
_CUT = re.compile(r"\[\d+ characters truncated\]")
_TOOL_ERROR = re.compile(r"</?tool_use_error>")


class ToolCall(msgspec.Struct, frozen=True):
    """A tool call of the model."""

    call_id: str
    name: str
    arguments: dict[str, Any]


class ToolCallResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call, as Claude Code reports it."""

    content: Any = None
    """What the model is shown: a text, or a list of blocks."""
    is_error: bool = False
    details: Any = None
    """Claude Code's own record: its shape depends on the tool."""
    is_rejected: bool = False
    """The call was not allowed, so it never ran."""

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            blocks = [block for block in self.content if isinstance(block, dict)]
            return "\n".join(str(block["text"]) for block in blocks if block.get("type") == "text")
        return self.content if isinstance(self.content, str) else ""


def maybe(value: Any, kind: type[T]) -> T | None:
    """An optional field: none if it has another type. A bool is not a number."""
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def result_of(message: dict[str, Any], block: dict[str, Any]) -> ToolCallResult:
    """The result in a `tool_result` block of a message."""
    decisions = [
        each.get("permission_decision") or {}
        for each in message.get("tool_result_meta") or []
        if isinstance(each, dict) and each.get("id") == block.get("tool_use_id")
    ]
    return ToolCallResult(
        content=block.get("content"),
        is_error=block.get("is_error") is True,
        details=message.get("tool_use_result"),
        is_rejected=any(decision.get("decision") == "reject" for decision in decisions),
    )


def started(turn_id: str, call: ToolCall, frame: bytes = b"") -> Activity:
    """A call that was made, and may still be asked about."""
    kind, title, fields = _maker(call)(call, None)
    return Activity(
        turn_id=turn_id,
        item_id=call.call_id,
        kind=kind,
        title=title,
        status="running",
        item={"name": call.name, "input": call.arguments},
        frame=frame,
        **fields,
    )


def ended(turn_id: str, call: ToolCall, result: ToolCallResult, frame: bytes = b"") -> Activity:
    kind, title, fields = _maker(call)(call, result)
    status: ActivityStatus = "completed"
    if result.is_rejected:
        status = "declined"
    elif result.is_error:
        status = "failed"
    item = {"name": call.name, "input": call.arguments, "result": result.details}
    return Activity(
        turn_id=turn_id,
        item_id=call.call_id,
        kind=kind,
        title=title,
        status=status,
        item=item,
        frame=frame,
        **fields,
    )


def background_id(result: ToolCallResult) -> str | None:
    """The id under which the end of this call is reported later, if it goes on in the background."""
    details = result.details if isinstance(result.details, dict) else {}
    return maybe(details.get("backgroundTaskId"), str)


def unwrapped(text: str) -> str:
    """An error without the tags that Claude Code puts around it for the model."""
    return _TOOL_ERROR.sub("", text)


# ── one function for each kind of tool ──────────────────────────────────────

_Parts = tuple[ActivityKind, str, dict[str, Any]]
_Maker = Callable[[ToolCall, ToolCallResult | None], _Parts]


def _maker(call: ToolCall) -> _Maker:
    if call.name.startswith(SERVER_PREFIX):
        return _mcp
    return _MAKERS.get(call.name, _tool)


def _command(call: ToolCall, result: ToolCallResult | None) -> _Parts:
    command = str(call.arguments.get("command", ""))
    fields: dict[str, Any] = {"input": command}
    if result is not None and not result.is_rejected:
        fields |= _command_output(result)
        fields["late_output"] = fields["output"]  # nothing is told while it runs
    return "command", command, fields


def _command_output(result: ToolCallResult) -> dict[str, Any]:
    """Claude Code tells the exit code only of a command that failed, and in words."""
    if isinstance(result.details, dict) and "stdout" in result.details:
        parts = [str(result.details.get(name) or "") for name in ("stdout", "stderr")]
        is_cut = "persistedOutputPath" in result.details
        return {
            "output": "\n".join(part for part in parts if part),
            "exit_code": 0 if background_id(result) is None else None,
            "is_cut": is_cut,
        }
    text = result.text
    match = _EXIT.match(text)
    is_cut = _PERSISTED in text or bool(_CUT.search(text))
    if match is None:
        return {"output": unwrapped(text), "is_cut": is_cut}
    return {"output": text[match.end() :], "exit_code": int(match[1]), "is_cut": is_cut}


def _edit(call: ToolCall, result: ToolCallResult | None) -> _Parts:
    changes = (change_of(call, result),)
    locations = tuple(Location(path=change.path, line=line) for change in changes for line in _lines(change))
    fields: dict[str, Any] = {"changes": changes, "locations": locations}
    if result is not None and result.is_error:
        fields["output"] = unwrapped(result.text)
    return "edit", _edit_title(changes[0]), fields


def change_of(call: ToolCall, result: ToolCallResult | None = None) -> FileChange:
    """What a call changes, as far as its arguments tell, or as it was done."""
    path = str(call.arguments.get("file_path") or call.arguments.get("notebook_path") or "")
    details = result.details if result is not None and isinstance(result.details, dict) else {}
    patch = details.get("structuredPatch")
    if isinstance(patch, list) and patch:
        return FileChange(path=path, kind="update", diff="".join(map(_hunk, patch)))
    if call.name == "Write":
        return FileChange(path=path, kind="add", diff=str(call.arguments.get("content", "")))
    if call.name == "MultiEdit":
        edits = [edit for edit in call.arguments.get("edits") or [] if isinstance(edit, dict)]
    else:
        edits = [call.arguments]
    return FileChange(path=path, kind="update", diff="".join(map(_replacement, edits)))


def _hunk(hunk: dict[str, Any]) -> str:
    head = "@@ -{oldStart},{oldLines} +{newStart},{newLines} @@\n".format(**hunk)
    return head + "".join(f"{line}\n" for line in hunk["lines"])


def _replacement(edit: dict[str, Any]) -> str:
    """A hunk whose place in the file is not known."""
    old = str(edit.get("old_string") or "").splitlines()
    new = str(edit.get("new_string") or edit.get("new_source") or "").splitlines()
    lines = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    return f"@@ -1,{len(old)} +1,{len(new)} @@\n" + "".join(f"{line}\n" for line in lines)


_HUNK_HEAD = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)", re.MULTILINE)


def _lines(change: FileChange) -> list[int]:
    return [max(1, int(line)) for line in _HUNK_HEAD.findall(change.diff)] or [1]


def _edit_title(change: FileChange) -> str:
    lines = change.diff.removesuffix("\n").split("\n") if change.diff else []
    added = len(lines) if change.kind == "add" else sum(line.startswith("+") for line in lines)
    removed = 0 if change.kind == "add" else sum(line.startswith("-") for line in lines)
    return f"Edit {change.path.rsplit('/', 1)[-1]} (+{added} −{removed})"


def _read(call: ToolCall, result: ToolCallResult | None) -> _Parts:
    path = str(call.arguments.get("file_path", ""))
    line = maybe(call.arguments.get("offset"), int)
    look = Look(purpose="read", path=path)
    return "read", f"Read {path}", _looking(call, look, result, (Location(path=path, line=line),))


def _grep(call: ToolCall, result: ToolCallResult | None) -> _Parts:
    pattern = str(call.arguments.get("pattern", ""))
    look = Look(purpose="search", path=str(call.arguments.get("path") or ""), pattern=pattern)
    return "read", f"Search for {pattern}", _looking(call, look, result)


def _glob(call: ToolCall, result: ToolCallResult | None) -> _Parts:
    pattern = str(call.arguments.get("pattern", ""))
    look = Look(purpose="list", path=str(call.arguments.get("path") or ""), pattern=pattern)
    return "read", f"List {pattern}", _looking(call, look, result)


def _looking(
    call: ToolCall, look: Look, result: ToolCallResult | None, locations: tuple[Location, ...] = ()
) -> dict[str, Any]:
    fields: dict[str, Any] = {"input": call.arguments, "look": look, "locations": locations}
    return fields | _output(result)


def _output(result: ToolCallResult | None) -> dict[str, Any]:
    """The text of a result, and the other blocks of it, such as images."""
    if result is None:
        return {}
    text = result.text
    has_more = isinstance(result.content, list) and any(
        isinstance(block, dict) and block.get("type") != "text" for block in result.content
    )
    return {
        "output": unwrapped(text) or None,
        "is_cut": _PERSISTED in text,
        "content": result.content if has_more else None,
    }


def _mcp(call: ToolCall, result: ToolCallResult | None) -> _Parts:
    server, _, tool = call.name.removeprefix(SERVER_PREFIX).partition("__")
    return "mcp", f"{server}.{tool}", {"input": call.arguments, **_output(result)}


def _tool(call: ToolCall, result: ToolCallResult | None) -> _Parts:
    return "tool", call.name, {"input": call.arguments, **_output(result)}


def _agent(call: ToolCall, result: ToolCallResult | None) -> _Parts:
    title = str(call.arguments.get("description") or call.arguments.get("subagent_type") or "subagent")
    return "agent", title, {"input": call.arguments.get("prompt"), **_output(result)}


def _fetch(call: ToolCall, result: ToolCallResult | None) -> _Parts:
    url = str(call.arguments.get("url", ""))
    return "search", url, {"input": {"type": "openPage", "url": url}, **_output(result)}


def _search(call: ToolCall, result: ToolCallResult | None) -> _Parts:
    query = str(call.arguments.get("query", ""))
    return "search", query, {"input": {"query": query}, **_output(result)}


_MAKERS: dict[str, _Maker] = {
    COMMAND: _command,
    **dict.fromkeys(EDITORS, _edit),
    **dict.fromkeys(AGENTS, _agent),
    "Read": _read,
    "Grep": _grep,
    "Glob": _glob,
    "WebFetch": _fetch,
    "WebSearch": _search,
}
