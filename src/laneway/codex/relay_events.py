"""Converts the `codex/event` notifications of `codex mcp-server` to the core's events.

One `RelayTranslator` per thread. It renames the old events to app-server's notifications, and the one
`Translator` keeps the promises of `laneway.core.model`. Every notification is the `frame` of exactly
one event, so that `RelayScript` can forward it unchanged, once and in order.
"""

from __future__ import annotations

import codecs
import logging
import shlex
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from laneway.base.errors import EngineLost
from laneway.codex.relay_calls import changes
from laneway.codex.translate import Delta, Translator, failure_of
from laneway.core.model import Compacted, Event, Failure, Other, Output, Status, Text, Thought
from laneway.core.ports import ThreadInfo
from laneway.wire.messages import UNREADABLE, Raw

log = logging.getLogger(__name__)

EVENT = "codex/event"


class Meta(msgspec.Struct):
    requestId: Raw = Raw()
    """As received: the id of our tool call under which the child reads the thread's events."""
    threadId: str = ""


class RelayedEvent(msgspec.Struct):
    """The params of one `codex/event`."""

    msg: Raw
    id: str = ""
    meta: Meta = msgspec.field(name="_meta", default_factory=Meta)


class RelayTranslator:
    """Called with the events of one thread in order; emits the core's events in order."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._translator = Translator(self._emit_with_frame)
        self._msg: dict[str, Any] = {}
        self._is_frame_sent = False
        self._ticket: str | None = None
        self._last_message = ""
        self._items: dict[str, str] = {}
        self._streams: dict[str, codecs.IncrementalDecoder] = {}
        self._failure: Failure | None = None

    @property
    def turn_id(self) -> str | None:
        return self._translator.turn_id

    @property
    def has_failed(self) -> bool:
        """Whether the running turn will end in failure."""
        return self._failure is not None

    def expect(self, ticket: str | None) -> None:
        self._translator.expect(ticket)
        if ticket is not None:
            self._ticket = ticket

    def finish(self, status: Status, failure: Failure | None = None, text: str = "") -> None:
        """End the running turn without an event that says so."""
        turn = self.turn_id
        if turn is not None:
            self._complete_message(turn, text, b"")
            self._translator.finish(status, failure or self._failure, b"")

    def lost(self, loss: EngineLost) -> None:
        self._translator.lost(loss)

    def handle(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        """Handle one event. `turn` is the id that it came with: of a turn, or empty before the first."""
        self._msg, self._is_frame_sent = msg, False
        kind = str(msg.get("type"))
        handler = _ALWAYS.get(kind) or (_IN_TURN.get(kind) if turn == self.turn_id else None)
        if handler is not None:
            try:
                handler(self, turn, msg, frame)
            except (LookupError, TypeError, ValueError, AttributeError) as surprise:
                log.warning("%s has an unexpected shape: %.200r", kind, surprise)
        if not self._is_frame_sent:
            self._emit(Other(method=EVENT, params=msg, frame=frame))

    def _emit_with_frame(self, event: Event) -> None:
        """Emit an event. Only the first one has the frame; an unknown notification becomes `Other`."""
        if type(event) is Other:
            event = Other(method=EVENT, params=self._msg, frame=event.frame)
        if event.frame:
            if self._is_frame_sent:
                event = msgspec.structs.replace(event, frame=b"")
            self._is_frame_sent = True
        self._emit(event)

    # ── turns ──────────────────────────────────────────────────────────────

    def _started(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        self._last_message = ""
        self._failure = None
        self._items.clear()
        self._streams.clear()
        self._translator.begin(turn or str(msg["turn_id"]), frame)

    def _completed(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        error = msg.get("error")
        if self._failure is None and error:
            self._failure = _failure(error)
        last = msg.get("last_agent_message")
        if isinstance(last, str) and last != self._last_message:
            # Events under two calls of one thread may overtake each other: the last one repeats the text.
            self._complete_message(turn, last, b"")
        self._translator.finish("failed" if self._failure else "completed", self._failure, frame)

    def _aborted(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        self._translator.finish("interrupted", None, frame)

    def _failed(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        # The end of the turn is still to come: ending it here would lose messages in between.
        self._failure = _failure(msg)
        self._notify("error", {"error": {"message": self._failure.message}, "turnId": turn}, frame)

    def _retrying(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        error = {"message": str(msg["message"])}
        self._notify("error", {"error": error, "turnId": turn, "willRetry": True}, frame)

    def _warned(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        self._notify("warning", {"message": str(msg["message"])}, frame)

    def _notify(self, method: str, params: dict[str, Any], frame: bytes) -> None:
        self._translator.notification(method, params, frame)

    # ── messages and reasoning ─────────────────────────────────────────────

    def _item_started(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        item = msg["item"]
        self._items[str(item["type"])] = str(item["id"])

    def _user_message(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        item = {
            "type": "userMessage",
            "id": self._items.get("UserMessage", f"{turn}/user"),
            "content": [{"type": "text", "text": str(msg["message"])}],
            "clientId": self._ticket,
        }
        self._notify("item/started", {"item": item, "turnId": turn}, frame)
        self._notify("item/completed", {"item": item, "turnId": turn}, b"")

    def _text(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        self._items["AgentMessage"] = msg["item_id"]
        self._delta(Text, turn, msg["item_id"], msg["delta"], frame)

    def _message(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        self._complete_message(turn, str(msg["message"]), frame)
        self._last_message = str(msg["message"])
        self._items.pop("AgentMessage", None)

    def _complete_message(self, turn: str, text: str, frame: bytes) -> None:
        item = {
            "type": "agentMessage",
            "id": self._items.get("AgentMessage", f"{turn}/message"),
            "text": text,
        }
        if text:
            self._notify("item/completed", {"item": item, "turnId": turn}, frame)

    def _reasoning(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        self._items["streamed"] = msg["item_id"]
        self._delta(Thought, turn, msg["item_id"], msg["delta"], frame)

    def _reasoning_break(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        if msg["item_id"] == self._items.get("streamed"):
            part = {"summaryIndex": msg["summary_index"], "itemId": msg["item_id"], "turnId": turn}
            self._notify("item/reasoning/summaryPartAdded", part, frame)

    def _reasoning_complete(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        item_id = self._items.get("Reasoning", f"{turn}/thought")
        if item_id != self._items.get("streamed"):
            item = {"type": "reasoning", "id": item_id, "summary": [str(msg["text"])]}
            self._notify("item/completed", {"item": item, "turnId": turn}, frame)

    def _delta(
        self,
        kind: type[Text] | type[Thought] | type[Output],
        turn: str,
        item_id: Any,
        text: Any,
        frame: bytes,
    ) -> None:
        delta = {"threadId": "", "turnId": turn, "itemId": item_id, "delta": text}
        self._translator.delta(kind, msgspec.convert(delta, Delta), frame)

    # ── activities ─────────────────────────────────────────────────────────

    def _begin(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        item = {**_ITEMS[msg["type"]](msg), "id": msg["call_id"], "status": "inProgress"}
        self._notify("item/started", {"item": item, "turnId": turn}, frame)

    def _end(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        self._streams.pop(msg["call_id"], None)
        item = {"status": "completed", **_ITEMS[msg["type"]](msg), "id": msg["call_id"]}
        self._notify("item/completed", {"item": item, "turnId": turn}, frame)

    def _output(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        import base64

        call_id = msg["call_id"]
        item = self._translator.item(call_id)
        if item is not None and item.get("type") == "commandExecution":
            stream = self._streams.setdefault(call_id, codecs.getincrementaldecoder("utf-8")("replace"))
            text = stream.decode(base64.b64decode(msg["chunk"]))
            self._delta(Output, turn, call_id, text, frame)

    def _plan(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        steps = [{**step, "status": _PLAN.get(step["status"], step["status"])} for step in msg["plan"]]
        plan = {"plan": steps, "explanation": msg.get("explanation"), "turnId": turn}
        self._notify("turn/plan/updated", plan, frame)

    def _diff(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        self._notify("turn/diff/updated", {"diff": msg["unified_diff"], "turnId": turn}, frame)

    def _tokens(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        info = msg["info"]
        if info is None:
            return  # limits only
        usage = {
            "last": _counts(info["last_token_usage"]),
            "total": _counts(info["total_token_usage"]),
            "modelContextWindow": info.get("model_context_window"),
        }
        self._notify("thread/tokenUsage/updated", {"tokenUsage": usage, "turnId": turn}, frame)

    def _compacted(self, turn: str, msg: dict[str, Any], frame: bytes) -> None:
        self._emit_with_frame(Compacted(turn_id=turn, frame=frame))


def _failure(error: Any) -> Failure:
    info = error.get("codex_error_info") if isinstance(error, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return failure_of({"message": str(message), "codexErrorInfo": info})


_PLAN = {"in_progress": "inProgress"}
_COUNTS = {
    "inputTokens": "input_tokens",
    "cachedInputTokens": "cached_input_tokens",
    "outputTokens": "output_tokens",
    "reasoningOutputTokens": "reasoning_output_tokens",
    "totalTokens": "total_tokens",
}


def _counts(counts: dict[str, Any]) -> dict[str, Any]:
    return {ours: counts.get(theirs) for ours, theirs in _COUNTS.items()}


# ── old records as app-server's items ──────────────────────────────────────


def _command(msg: dict[str, Any]) -> dict[str, Any]:
    item = {
        "type": "commandExecution",
        "command": shlex.join(str(word) for word in msg["command"]),
        "cwd": _path(msg.get("cwd")),
        "commandActions": msg.get("parsed_cmd"),
        "aggregatedOutput": msg.get("aggregated_output"),
        "exitCode": msg.get("exit_code"),
    }
    return {**item, "status": msg["status"]} if msg.get("status") else item


def _path(path: Any) -> Any:
    """0.153 sends folders as URLs, older versions as plain paths."""
    if not isinstance(path, str) or not path.startswith("file://"):
        return path
    from urllib.parse import unquote

    return unquote(path.removeprefix("file://"))


def _edit(msg: dict[str, Any]) -> dict[str, Any]:
    item = {
        "type": "fileChange",
        "changes": [
            {
                "path": change.path,
                "kind": {"type": change.kind, "move_path": change.move_path},
                "diff": change.diff,
            }
            for change in changes(msg.get("changes"))
        ],
    }
    if msg.get("success") is not None:
        item["status"] = msg.get("status") or ("completed" if msg["success"] else "failed")
    return item


def _mcp(msg: dict[str, Any]) -> dict[str, Any]:
    invocation = msg["invocation"]
    item = {"type": "mcpToolCall", "server": invocation.get("server"), "tool": invocation.get("tool")}
    item["arguments"] = invocation.get("arguments")
    result = msg.get("result")
    if isinstance(result, dict) and "Err" in result:
        item |= {"status": "failed", "error": {"message": str(result["Err"])}}
    elif isinstance(result, dict):
        item["result"] = result.get("Ok", result)
    return item


def _search(msg: dict[str, Any]) -> dict[str, Any]:
    return {"type": "webSearch", "query": msg.get("query") or "", "action": msg.get("action")}


def _image(msg: dict[str, Any]) -> dict[str, Any]:
    return {"type": "imageView", "path": msg.get("path")}


_ITEMS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "exec_command_begin": _command,
    "exec_command_end": _command,
    "patch_apply_begin": _edit,
    "patch_apply_end": _edit,
    "mcp_tool_call_begin": _mcp,
    "mcp_tool_call_end": _mcp,
    "web_search_begin": _search,
    "web_search_end": _search,
    "view_image_tool_call": _image,
}
_Handler = Callable[[RelayTranslator, str, dict[str, Any], bytes], None]
_ALWAYS: dict[str, _Handler] = {"task_started": RelayTranslator._started, "warning": RelayTranslator._warned}
_IN_TURN: dict[str, _Handler] = {
    "task_complete": RelayTranslator._completed,
    "turn_aborted": RelayTranslator._aborted,
    "error": RelayTranslator._failed,
    "stream_error": RelayTranslator._retrying,
    "item_started": RelayTranslator._item_started,
    "user_message": RelayTranslator._user_message,
    "agent_message_content_delta": RelayTranslator._text,
    "agent_message": RelayTranslator._message,
    "reasoning_content_delta": RelayTranslator._reasoning,
    "agent_reasoning_section_break": RelayTranslator._reasoning_break,
    "agent_reasoning": RelayTranslator._reasoning_complete,
    "exec_command_output_delta": RelayTranslator._output,
    "plan_update": RelayTranslator._plan,
    "turn_diff": RelayTranslator._diff,
    "token_count": RelayTranslator._tokens,
    "context_compacted": RelayTranslator._compacted,
    **{kind: RelayTranslator._begin for kind in _ITEMS if kind.endswith("_begin")},
    **{kind: RelayTranslator._end for kind in _ITEMS if not kind.endswith("_begin")},
}


# ── forwarding ─────────────────────────────────────────────────────────────


class _Message(msgspec.Struct):
    msg: Raw


class _Frame(msgspec.Struct):
    params: _Message


class _Typed(msgspec.Struct):
    type: str


class RelayScript:
    """The MCP server's `Script` for this engine: the child's own `msg`, as received."""

    def __init__(self, level: Literal["full", "compact"] = "full") -> None:
        self._types: frozenset[str] | None = None
        if level == "compact":
            from laneway.codex.legacy_shapes import COMPACT

            self._types = COMPACT

    def opening(self, info: ThreadInfo) -> list[Any]:
        return []  # the child sends `session_configured` itself

    def of(self, event: Event) -> list[Any]:
        if not event.frame:
            return []
        try:
            msg = msgspec.json.decode(event.frame, type=_Frame).params.msg
            if self._types is not None and msgspec.json.decode(msg, type=_Typed).type not in self._types:
                return []
        except UNREADABLE:
            return []
        return [msg]
