"""What `codex exec --json` prints, one line at a time, as events of a job, and what they come to.

`EventNormaliser` reads the lines of one worker. No line stops it: garbage, broken UTF-8, unknown types and
lines that are too long become events, too. The shapes were seen from 0.104 to 0.169. No input or output.

    thread.started, turn.started, turn.completed, reasoning, todo_list, unknown types    progress
    agent_message                                                                        message
    command_execution, file_change, mcp_tool_call, web_search     started: tool_call, completed: tool_result
    error, turn.failed, and an item of type error, which is a warning                    error
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.codex.exec.activities import ActivityLog, text_of
from laneway.codex.exec.tokens import TokenCount
from laneway.codex.own_features import is_about_own_features

WorkerEventType: TypeAlias = Literal["message", "progress", "tool_call", "tool_result", "error"]
TurnPhase: TypeAlias = Literal["none", "running", "completed", "failed"]

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Codex cuts the output of a command at 1 MiB; a longer line is told and not read."""
MAX_SHOWN_CHARS = 200
"""Of a line that is no event."""
MAX_WARNINGS = 50
MAX_WRAPPED = 4
"""Errors within errors."""
RECONNECTING = "Reconnecting..."
_START = re.compile(rb'\{"type":"item\.(\w+)","item":\{"id":"([\w-]{1,64})","type":"(\w{1,64})"')
"""The beginning of a line about an item, for one that is too long to be decoded."""
_decoder = msgspec.json.Decoder()


class WorkerEvent(msgspec.Struct, frozen=True):
    type: WorkerEventType
    content: dict[str, Any]
    at: float
    """By the normaliser's clock."""
    is_sign_of_life: bool = True
    """Not: what Codex repeats for ever while nothing happens."""


class WorkerState(msgspec.Struct, frozen=True):
    """What a worker's events came to."""

    thread_id: str = ""
    turn: TurnPhase = "none"
    last_error: str = ""
    """Of a failed turn, why; else the last error that was told."""
    last_message: str | None = None
    usage: TokenCount | None = None
    """Of the whole thread; only of a completed turn."""
    has_acted: bool = False
    """Whether there was a message, a thought, a plan, a command or the like."""


class EventNormaliser:
    """Feed it the lines of one worker. `clock` gives the time of events, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.state = WorkerState()
        self.activities = ActivityLog()
        self.warnings: list[str] = []
        self._clock = clock
        self._last_at = clock()

    def feed(self, line: bytes) -> tuple[WorkerEvent, ...]:
        """The events of one line, without its newline. Never raises."""
        if not line.strip():
            return ()
        now = self._clock()
        event = self._too_long(line, now) if len(line) > MAX_LINE_BYTES else self._read(line, now)
        self._last_at = now
        is_ours = event.content.get("kind") == "warning" and is_about_own_features(event.content["message"])
        return () if is_ours else (event,)

    def _read(self, line: bytes, now: float) -> WorkerEvent:
        value = decoded(line)
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(kind, str):
            text = line[: 4 * MAX_SHOWN_CHARS].decode("utf-8", "replace")[:MAX_SHOWN_CHARS]
            return WorkerEvent("progress", {"kind": "unreadable", "text": text}, now, False)
        item = value.get("item")
        if kind.startswith("item.") and isinstance(item, dict):
            return self._item(kind.removeprefix("item."), item, now)
        return self._event(kind, value, now)

    def _too_long(self, line: bytes, now: float) -> WorkerEvent:
        content: dict[str, Any] = {"kind": "too_long", "bytes": len(line)}
        start = _START.match(line)
        if start is not None:
            phase, item_id, item_type = (part.decode() for part in start.groups())
            content |= {"phase": phase, "item": {"id": item_id, "type": item_type}}
            self.activities.note(phase, content["item"], now, self._last_at)
        return WorkerEvent("progress", content, now)

    def _event(self, kind: str, value: dict[str, Any], now: float) -> WorkerEvent:
        content: dict[str, Any] = {"kind": kind}
        match kind:
            case "thread.started":
                thread_id = text_of(value.get("thread_id"))
                self._set(thread_id=self.state.thread_id or thread_id)
                return WorkerEvent("progress", {**content, "threadId": thread_id}, now)
            case "turn.started":
                self._set(turn="running")
                return WorkerEvent("progress", content, now)
            case "turn.completed":
                self._set(turn="completed", usage=TokenCount.of(value.get("usage")))
                return WorkerEvent("progress", {**content, "usage": value.get("usage")}, now)
            case "turn.failed":
                message = error_text(value.get("error")) or self.state.last_error
                self._set(turn="failed", last_error=message)
                return WorkerEvent("error", {**content, "message": message}, now)
            case "error":
                message = error_text(value)
                self._set(last_error=message)
                kind = "reconnecting" if message.startswith(RECONNECTING) else kind
                return WorkerEvent("error", {"kind": kind, "message": message}, now, False)
            case _:
                rest = {key: each for key, each in value.items() if key != "type"}
                return WorkerEvent("progress", {**content, "event": rest}, now)

    def _item(self, phase: str, item: dict[str, Any], now: float) -> WorkerEvent:
        kind = text_of(item.get("type"))
        if kind == "error":
            message = error_text(item)
            if len(self.warnings) < MAX_WARNINGS and not is_about_own_features(message):
                self.warnings.append(message)
            return WorkerEvent("error", {"kind": "warning", "message": message}, now, False)
        self._set(has_acted=True)
        self.activities.note(phase, item, now, self._last_at)
        match kind, phase:
            case "agent_message", "completed":
                text = text_of(item.get("text"))
                self._set(last_message=text)
                return WorkerEvent("message", {"text": text}, now)
            case "reasoning", _:
                return WorkerEvent("progress", {"kind": kind, "text": text_of(item.get("text"))}, now)
            case "todo_list", _:
                return WorkerEvent("progress", {"kind": kind, "items": item.get("items")}, now)
            case _, "started" if kind in _TOOLS:
                return WorkerEvent("tool_call", _tool(item, _CALL), now)
            case _, "completed" if kind in _TOOLS:
                return WorkerEvent("tool_result", _tool(item, _RESULT), now)
            case _:
                return WorkerEvent("progress", {"kind": kind, "phase": phase, "item": item}, now)

    def _set(self, **fields: Any) -> None:
        self.state = msgspec.structs.replace(self.state, **fields)


_TOOLS = {
    "command_execution": "command",
    "file_change": "patch",
    "mcp_tool_call": "mcp",
    "web_search": "web_search",
}
_CALL = {
    "id": "id",
    "command": "command",
    "changes": "changes",
    "server": "server",
    "tool": "name",
    "arguments": "arguments",
    "query": "query",
}
_RESULT = {
    **_CALL,
    "status": "status",
    "exit_code": "exitCode",
    "aggregated_output": "output",
    "result": "result",
    "error": "error",
}
"""Fields of an item, by our names for them."""


def _tool(item: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    fields = {name: item[field] for field, name in names.items() if item.get(field) is not None}
    return {"tool": _TOOLS[item["type"]], **fields}


def decoded(line: bytes) -> Any:
    """A line as JSON, or None. Broken characters are replaced."""
    try:
        return _decoder.decode(line)
    except (ValueError, RecursionError):
        pass
    try:
        # msgspec takes neither broken UTF-8 nor half a surrogate pair.
        return _whole(json.loads(line.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return None


def _whole(value: Any) -> Any:
    """The same with every text fit to be written down."""
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case dict():
            return {_whole(key): _whole(each) for key, each in value.items()}
        case list():
            return [_whole(each) for each in value]
        case _:
            return value


def error_text(value: Any) -> str:
    """The message of an error. A provider's answer comes as Codex got it: as JSON, within JSON."""
    message = text_of(value.get("message")) if isinstance(value, dict) else text_of(value)
    for _ in range(MAX_WRAPPED):
        inner = decoded(message.encode()) if message.startswith("{") else None
        if isinstance(inner, dict) and isinstance(inner.get("error"), dict):
            inner = inner["error"]
        if not isinstance(inner, dict) or not text_of(inner.get("message")):
            break
        message = inner["message"]
    return message
