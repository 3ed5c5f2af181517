"""What `codex mcp-server` tells while a turn runs (`codex/event`), as the core's events.

One `Translation` per thread. The old names are put into those of app-server, and the one
`Translator` keeps the promises of `laneway.core.model`. Every notification is the `frame` of
exactly one event, so that `RelayScript` can hand it on untouched, once and in order.
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
    """As it stood on the wire: ours, of the call under which the child listens to the thread."""
    threadId: str = ""


class RelayedEvent(msgspec.Struct):
    """The params of one `codex/event`."""

    msg: Raw
    id: str = ""
    meta: Meta = msgspec.field(name="_meta", default_factory=Meta)


class Translation:
    """Feed it the events of one thread in order; it emits events in order."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._translator = Translator(self._pass_on)
        self._told: dict[str, Any] = {}
        self._is_told = False
        self._ticket: str | None = None
        self._said = ""
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
        """The running turn ends, though nobody told of it."""
        turn = self.turn_id
        if turn is not None:
            self._say_whole(turn, text, b"")
            self._translator.finish(status, failure or self._failure, b"")

    def lost(self, loss: EngineLost) -> None:
        self._translator.lost(loss)

    def hear(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        """One event. `turn` is the id under which it came: of a turn, or empty before the first."""
        self._told, self._is_told = told, False
        kind = str(told.get("type"))
        handler = _ALWAYS.get(kind) or (_IN_TURN.get(kind) if turn == self.turn_id else None)
        if handler is not None:
            try:
                handler(self, turn, told, frame)
            except (LookupError, TypeError, ValueError, AttributeError) as surprise:
                log.warning("%s has an unexpected shape: %.200r", kind, surprise)
        if not self._is_told:
            self._emit(Other(method=EVENT, params=told, frame=frame))

    def _pass_on(self, event: Event) -> None:
        """A frame goes with the first event that it makes; what nobody understood is told as it came."""
        if type(event) is Other:
            event = Other(method=EVENT, params=self._told, frame=event.frame)
        if event.frame:
            if self._is_told:
                event = msgspec.structs.replace(event, frame=b"")
            self._is_told = True
        self._emit(event)

    # ── turns ──────────────────────────────────────────────────────────────

    def _started(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        self._said = ""
        self._failure = None
        self._items.clear()
        self._streams.clear()
        self._translator.begin(turn or str(told["turn_id"]), frame)

    def _completed(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        error = told.get("error")
        if self._failure is None and error:
            self._failure = _failure(error)
        last = told.get("last_agent_message")
        if isinstance(last, str) and last != self._said:
            # Two listeners of one thread may overtake each other: the end tells the text again.
            self._say_whole(turn, last, b"")
        self._translator.finish("failed" if self._failure else "completed", self._failure, frame)

    def _aborted(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        self._translator.finish("interrupted", None, frame)

    def _failed(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        # The end of the turn is yet to come: words said before it would be lost in it.
        self._failure = _failure(told)
        self._app_server("error", {"error": {"message": self._failure.message}, "turnId": turn}, frame)

    def _retried(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        error = {"message": str(told["message"])}
        self._app_server("error", {"error": error, "turnId": turn, "willRetry": True}, frame)

    def _warned(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        self._app_server("warning", {"message": str(told["message"])}, frame)

    def _app_server(self, method: str, params: dict[str, Any], frame: bytes) -> None:
        self._translator.notification(method, params, frame)

    # ── words ──────────────────────────────────────────────────────────────

    def _item_started(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        item = told["item"]
        self._items[str(item["type"])] = str(item["id"])

    def _user_message(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        item = {
            "type": "userMessage",
            "id": self._items.get("UserMessage", f"{turn}/user"),
            "content": [{"type": "text", "text": str(told["message"])}],
            "clientId": self._ticket,
        }
        self._app_server("item/started", {"item": item, "turnId": turn}, frame)
        self._app_server("item/completed", {"item": item, "turnId": turn}, b"")

    def _text(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        self._items["AgentMessage"] = told["item_id"]
        self._delta(Text, turn, told["item_id"], told["delta"], frame)

    def _message(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        self._say_whole(turn, str(told["message"]), frame)
        self._said = str(told["message"])
        self._items.pop("AgentMessage", None)

    def _say_whole(self, turn: str, text: str, frame: bytes) -> None:
        item = {
            "type": "agentMessage",
            "id": self._items.get("AgentMessage", f"{turn}/message"),
            "text": text,
        }
        if text:
            self._app_server("item/completed", {"item": item, "turnId": turn}, frame)

    def _thought(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        self._items["streamed"] = told["item_id"]
        self._delta(Thought, turn, told["item_id"], told["delta"], frame)

    def _thought_break(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        if told["item_id"] == self._items.get("streamed"):
            part = {"summaryIndex": told["summary_index"], "itemId": told["item_id"], "turnId": turn}
            self._app_server("item/reasoning/summaryPartAdded", part, frame)

    def _thought_whole(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        item_id = self._items.get("Reasoning", f"{turn}/thought")
        if item_id != self._items.get("streamed"):
            item = {"type": "reasoning", "id": item_id, "summary": [str(told["text"])]}
            self._app_server("item/completed", {"item": item, "turnId": turn}, frame)

    def _delta(
        self,
        kind: type[Text] | type[Thought] | type[Output],
        turn: str,
        item_id: Any,
        text: Any,
        frame: bytes,
    ) -> None:
        given = {"threadId": "", "turnId": turn, "itemId": item_id, "delta": text}
        self._translator.delta(kind, msgspec.convert(given, Delta), frame)

    # ── deeds ──────────────────────────────────────────────────────────────

    def _begin(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        item = {**_ITEMS[told["type"]](told), "id": told["call_id"], "status": "inProgress"}
        self._app_server("item/started", {"item": item, "turnId": turn}, frame)

    def _end(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        self._streams.pop(told["call_id"], None)
        item = {"status": "completed", **_ITEMS[told["type"]](told), "id": told["call_id"]}
        self._app_server("item/completed", {"item": item, "turnId": turn}, frame)

    def _output(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        import base64

        call_id = told["call_id"]
        item = self._translator.item(call_id)
        if item is not None and item.get("type") == "commandExecution":
            stream = self._streams.setdefault(call_id, codecs.getincrementaldecoder("utf-8")("replace"))
            text = stream.decode(base64.b64decode(told["chunk"]))
            self._delta(Output, turn, call_id, text, frame)

    def _plan(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        steps = [{**step, "status": _PLAN.get(step["status"], step["status"])} for step in told["plan"]]
        plan = {"plan": steps, "explanation": told.get("explanation"), "turnId": turn}
        self._app_server("turn/plan/updated", plan, frame)

    def _diff(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        self._app_server("turn/diff/updated", {"diff": told["unified_diff"], "turnId": turn}, frame)

    def _tokens(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        info = told["info"]
        if info is None:
            return  # limits only
        usage = {
            "last": _counts(info["last_token_usage"]),
            "total": _counts(info["total_token_usage"]),
            "modelContextWindow": info.get("model_context_window"),
        }
        self._app_server("thread/tokenUsage/updated", {"tokenUsage": usage, "turnId": turn}, frame)

    def _compacted(self, turn: str, told: dict[str, Any], frame: bytes) -> None:
        self._pass_on(Compacted(turn_id=turn, frame=frame))


def _failure(told: Any) -> Failure:
    info = told.get("codex_error_info") if isinstance(told, dict) else None
    message = told.get("message") if isinstance(told, dict) else told
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


def _command(told: dict[str, Any]) -> dict[str, Any]:
    item = {
        "type": "commandExecution",
        "command": shlex.join(str(word) for word in told["command"]),
        "cwd": _path(told.get("cwd")),
        "commandActions": told.get("parsed_cmd"),
        "aggregatedOutput": told.get("aggregated_output"),
        "exitCode": told.get("exit_code"),
    }
    return {**item, "status": told["status"]} if told.get("status") else item


def _path(told: Any) -> Any:
    """0.153 tells folders as URLs, the older ones plainly."""
    if not isinstance(told, str) or not told.startswith("file://"):
        return told
    from urllib.parse import unquote

    return unquote(told.removeprefix("file://"))


def _edit(told: dict[str, Any]) -> dict[str, Any]:
    item = {
        "type": "fileChange",
        "changes": [
            {
                "path": change.path,
                "kind": {"type": change.kind, "move_path": change.move_path},
                "diff": change.diff,
            }
            for change in changes(told.get("changes"))
        ],
    }
    if told.get("success") is not None:
        item["status"] = told.get("status") or ("completed" if told["success"] else "failed")
    return item


def _mcp(told: dict[str, Any]) -> dict[str, Any]:
    called = told["invocation"]
    item = {"type": "mcpToolCall", "server": called.get("server"), "tool": called.get("tool")}
    item["arguments"] = called.get("arguments")
    result = told.get("result")
    if isinstance(result, dict) and "Err" in result:
        item |= {"status": "failed", "error": {"message": str(result["Err"])}}
    elif isinstance(result, dict):
        item["result"] = result.get("Ok", result)
    return item


def _search(told: dict[str, Any]) -> dict[str, Any]:
    return {"type": "webSearch", "query": told.get("query") or "", "action": told.get("action")}


def _image(told: dict[str, Any]) -> dict[str, Any]:
    return {"type": "imageView", "path": told.get("path")}


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
_Handler = Callable[[Translation, str, dict[str, Any], bytes], None]
_ALWAYS: dict[str, _Handler] = {"task_started": Translation._started, "warning": Translation._warned}
_IN_TURN: dict[str, _Handler] = {
    "task_complete": Translation._completed,
    "turn_aborted": Translation._aborted,
    "error": Translation._failed,
    "stream_error": Translation._retried,
    "item_started": Translation._item_started,
    "user_message": Translation._user_message,
    "agent_message_content_delta": Translation._text,
    "agent_message": Translation._message,
    "reasoning_content_delta": Translation._thought,
    "agent_reasoning_section_break": Translation._thought_break,
    "agent_reasoning": Translation._thought_whole,
    "exec_command_output_delta": Translation._output,
    "plan_update": Translation._plan,
    "turn_diff": Translation._diff,
    "token_count": Translation._tokens,
    "context_compacted": Translation._compacted,
    **{kind: Translation._begin for kind in _ITEMS if kind.endswith("_begin")},
    **{kind: Translation._end for kind in _ITEMS if not kind.endswith("_begin")},
}


# ── handing on ─────────────────────────────────────────────────────────────


class _Message(msgspec.Struct):
    msg: Raw


class _Frame(msgspec.Struct):
    params: _Message


class _Typed(msgspec.Struct):
    type: str


class RelayScript:
    """The `Script` of the MCP door for this engine: the child's own `msg`, as it stood on the wire."""

    def __init__(self, level: Literal["full", "compact"] = "full") -> None:
        self._only: frozenset[str] | None = None
        if level == "compact":
            from laneway.codex.legacy_shapes import COMPACT

            self._only = COMPACT

    def opening(self, info: ThreadInfo) -> list[Any]:
        return []  # the child introduces its threads itself

    def of(self, event: Event) -> list[Any]:
        if not event.frame:
            return []
        try:
            told = msgspec.json.decode(event.frame, type=_Frame).params.msg
            if self._only is not None and msgspec.json.decode(told, type=_Typed).type not in self._only:
                return []
        except UNREADABLE:
            return []
        return [told]
