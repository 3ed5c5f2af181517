"""Converts a session's events to the `codex/event` messages of the removed `codex mcp-server` (0.153.4).

One `LegacyEvents` per session: called with each event of the core in order, unmerged or merged, it
returns the `msg` objects of the notifications that the old server would have sent. Knows neither the
MCP server nor the wire. Called on the engine's reader: it never waits and never raises.

`full` returns all that the old server sent; `compact` only what a person follows (`COMPACT`): no raw
items, no deltas, no items. The model's raw items exist only on threads that were started with
`experimentalRawEvents`; without them a message is known to be complete only when the next event comes.

What the old server sent and today's app-server does not provide:

- `task_started.model_context_window` in the first turn of a thread: known with the first count of tokens;
- the `phase` of a message on threads without raw items, and its `memory_citation`;
- standard error apart from standard output (unified exec did not separate them either), and the
  output of the patch tool when it failed;
- `isError` of a tool result: derived from the item's status.

Times are those of arrival, except those that Codex reports at the end of a turn. Events of subagents
are left out, as the old server did: they belong to other threads.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from laneway.codex.legacy_items import LegacyContext, begin_messages, end_messages, is_codex_item
from laneway.codex.legacy_shapes import (
    COMPACT,
    LIMITS,
    OMITTED,
    Message,
    changes_json,
    error_info,
    frame_params,
    question_messages,
    session_configured,
    snake,
    snake_keys,
    token_counts,
    user_input,
)
from laneway.codex.legacy_text import LegacyText
from laneway.codex.legacy_turn import McpStartups, TurnRecord
from laneway.core.model import (
    Accepted,
    Activity,
    Asked,
    Compacted,
    Diff,
    Event,
    Notice,
    Other,
    Output,
    Plan,
    Text,
    Thought,
    Titled,
    Tokens,
    TurnDone,
    TurnStarted,
    Usage,
    UserSaid,
)
from laneway.core.ports import ThreadInfo

Level = Literal["full", "compact"]

MAX_TOOL_CALLS = 1024
"""Tool calls of one turn whose tool's name is kept."""
_SHELLS = frozenset({"shell", "shell_command", "local_shell"})
"""Tools whose commands have no process id even while running."""


class LegacyEvents:
    def __init__(self, level: Level = "full", now: Callable[[], float] = time.time) -> None:
        self._is_full = level == "full"
        self._now = now
        self._thread_id = ""
        self._cwd = ""
        self._sandbox: dict[str, Any] = {}
        self._window: int | None = None
        self._limits: Any = None
        self._pending_count: Message | None = None
        self._open_text: LegacyText | None = None
        self._has_raw_items = False
        self._tool_names: dict[str, str] = {}
        self._announced: dict[str, Activity] = {}
        self._started_ms: dict[str, int] = {}
        self._user_item: Message | None = None
        self._turn = TurnRecord(now)
        self._mcp_startups = McpStartups()

    # ── called by the MCP server ───────────────────────────────────────────

    def opening(self, info: ThreadInfo) -> list[Message]:
        """The messages that introduce a thread."""
        native = info.native
        self._thread_id, self._cwd = info.thread_id, info.cwd or str(native.get("cwd") or "")
        sandbox = native.get("sandbox")
        self._sandbox = sandbox if isinstance(sandbox, dict) else {}
        configured = session_configured(native)
        if configured.get("thread_id") is None:  # another engine, whose facts are its own
            configured |= {"session_id": info.thread_id, "thread_id": info.thread_id, "cwd": self._cwd}
        return [configured]

    def of(self, event: Event) -> list[Message]:
        """The old messages for one event: often none, sometimes several."""
        if isinstance(event, Text):
            open_text = self._open_text
            if open_text is not None and open_text.item_id == event.item_id:
                if self._is_full:
                    return [open_text.add_delta(event.text)]
                open_text.add_text(event.text)
                return []
        handler = _HANDLERS.get(type(event))
        if handler is None:
            return []
        messages: list[Message] = []
        try:
            messages += self._flush(event)
            messages += handler(self, event)
        except (LookupError, TypeError, ValueError, AttributeError, msgspec.MsgspecError):
            # A record of an unknown shape must not stop the turn or its other events.
            if isinstance(event, Other):
                messages += _unknown_message(event.method, event.params)
        return messages if self._is_full else [message for message in messages if message["type"] in COMPACT]

    def _now_ms(self) -> int:
        return int(self._now() * 1000)

    def _context(self) -> LegacyContext:
        return LegacyContext(self._thread_id, self._cwd, self._sandbox, self._now_ms())

    # ── messages and reasoning ─────────────────────────────────────────────

    def _text(self, event: Text) -> list[Message]:
        """The first delta of a message; `of` handles all others."""
        self._turn.note_first_output()
        open_text = self._open_text = LegacyText(self._thread_id, event, self._now_ms())
        return [*open_text.begin(), open_text.add_delta(event.text)]

    def _reasoning(self, event: Thought) -> list[Message]:
        open_text = self._open_text
        if open_text is not None and open_text.item_id == event.item_id:
            return open_text.add_reasoning(event)
        self._turn.note_first_output()
        open_text = self._open_text = LegacyText(self._thread_id, event, self._now_ms())
        return [*open_text.begin(), *open_text.add_reasoning(event)]

    def _output(self, event: Output) -> list[Message]:
        messages = self._begin_announced(event.item_id)
        if not self._is_full:
            return messages
        chunk = base64.b64encode(event.text.encode()).decode()
        delta = {"type": "exec_command_output_delta", "call_id": event.item_id, "stream": "stdout"}
        return [*messages, {**delta, "chunk": chunk}]

    # ── messages that waited for the next event ────────────────────────────

    def _flush(self, event: Event) -> list[Message]:
        messages: list[Message] = []
        open_text = self._open_text
        if open_text is not None and self._completes(open_text, event):
            self._open_text = None
            if not (isinstance(event, TurnDone) and event.status == "interrupted"):
                # An interrupted message is incomplete, and the old server did not send it as a whole.
                messages += open_text.end(self._now_ms(), _phase(event))
        if not (isinstance(event, Other) and event.method == LIMITS):
            messages += self._token_count()
        return messages

    def _completes(self, open_text: LegacyText, event: Event) -> bool:
        """Whether this event shows that the message is complete; its raw item does, if there are any."""
        match event:
            case Other(method="rawResponseItem/completed", params=params):
                return bool(params["item"].get("id") == open_text.item_id)
            case Usage():
                return not self._has_raw_items
            case Activity(status=status):
                return status == "running"
            case Text() | Thought():
                return event.item_id != open_text.item_id
            case _:
                return isinstance(event, TurnDone | Plan | Asked | Compacted)

    def _token_count(self) -> list[Message]:
        count, self._pending_count = self._pending_count, None
        return [] if count is None else [{**count, "rate_limits": self._limits}]

    # ── the turn ───────────────────────────────────────────────────────────

    def _turn_started(self, event: TurnStarted) -> list[Message]:
        return [*self._mcp_startups.at_first_turn(), self._turn.begin(event.turn_id, self._window)]

    def _turn_done(self, event: TurnDone) -> list[Message]:
        self._announced.clear()
        self._started_ms.clear()
        self._tool_names.clear()
        return self._turn.end(event)

    def _user_said(self, event: UserSaid) -> list[Message]:
        content: list[Any] = [{"type": "text", "text": event.text, "text_elements": []}]
        if self._is_full and event.frame:
            content = frame_params(event.frame).get("item", {}).get("content", content)
        item = {"type": "UserMessage", "id": event.item_id, "content": [user_input(part) for part in content]}
        self._user_item = {
            "thread_id": self._thread_id,
            "turn_id": event.turn_id,
            "item": item,
            "started_at_ms": self._now_ms(),
        }
        return [{"type": "item_started", **self._user_item}]

    def _accepted(self, event: Accepted) -> list[Message]:
        user_item, self._user_item = self._user_item, None
        if user_item is None:
            return []
        content = user_item["item"]["content"]
        message = {
            "type": "user_message",
            "message": "".join(part["text"] for part in content if part.get("type") == "text"),
            "images": [part["image_url"] for part in content if "image_url" in part],
            "local_images": [part["path"] for part in content if part.get("type") == "local_image"],
            "audio": [],
            "local_audio": [],
            "text_elements": [element for part in content for element in part.get("text_elements") or []],
        }
        return [{"type": "item_completed", **user_item, "completed_at_ms": self._now_ms()}, message]

    # ── activities ─────────────────────────────────────────────────────────

    def _activity(self, event: Activity) -> list[Message]:
        if not is_codex_item(event):
            from laneway.codex.legacy_neutral import as_codex  # only where another engine works

            event = as_codex(event)
        self._turn.note_first_output()
        if event.status == "running":
            return self._begin_activity(event)
        if event.status == "detached":
            return []  # it still runs; the old server would have reported its end later, if at all
        if event.item_id in self._announced and event.status in ("declined", "interrupted"):
            del self._announced[event.item_id]
            return []  # it never ran
        messages = self._begin_announced(event.item_id, event)
        context = self._context()
        return [*messages, *end_messages(event, context, self._started_ms.pop(event.item_id, context.at_ms))]

    def _begin_activity(self, event: Activity) -> list[Message]:
        if event.item_id in self._started_ms:
            return [
                {
                    "type": "patch_apply_updated",
                    "call_id": event.item_id,
                    "changes": changes_json(event.changes),
                }
            ]
        if self._awaits_approval(event):
            self._announced[event.item_id] = event
            return []
        context = self._context()
        self._started_ms[event.item_id] = context.at_ms
        return begin_messages(event, context)

    def _awaits_approval(self, event: Activity) -> bool:
        """App-server reports a command before it asks for approval; the old server, when it ran.

        Such a command has no process id yet. Commands of the older shell tools never have one.
        """
        item = event.item
        return (
            event.kind == "command"
            and isinstance(item, dict)
            and item.get("processId") is None
            and item.get("source") == "agent"
            and self._tool_names.get(event.item_id) not in _SHELLS
        )

    def _begin_announced(self, item_id: str, current: Activity | None = None) -> list[Message]:
        """The begin of a command that was reported before its approval, and now runs."""
        announced = self._announced.pop(item_id, None)
        if announced is None:
            return []
        context = self._context()
        self._started_ms[item_id] = context.at_ms
        return begin_messages(current or announced, context)

    # ── the rest ───────────────────────────────────────────────────────────

    def _plan(self, event: Plan) -> list[Message]:
        steps = [
            {"step": step.text, "status": "in_progress" if step.status == "running" else step.status}
            for step in event.steps
        ]
        return [{"type": "plan_update", "explanation": event.explanation, "plan": steps}]

    def _diff(self, event: Diff) -> list[Message]:
        return [{"type": "turn_diff", "unified_diff": event.diff}]

    def _usage(self, event: Usage) -> list[Message]:
        """Held back until the rate limits, which come right after it."""
        self._window = event.window or self._window
        usage = frame_params(event.frame).get("tokenUsage", {}) if self._is_full else {}
        info = {
            "total_token_usage": token_counts(event.total, usage.get("total")),
            "last_token_usage": token_counts(event.last, usage.get("last")),
            "model_context_window": event.window,
        }
        self._pending_count = {"type": "token_count", "info": info}
        return []

    def _notice(self, event: Notice) -> list[Message]:
        if event.level != "error":
            return [_warning(event)]
        error = frame_params(event.frame).get("error", {})
        fields = {"message": event.message, "codex_error_info": error_info(error.get("codexErrorInfo"))}
        if event.will_retry:
            fields["message"] = error.get("message", event.message)  # ours includes the details
            return [{"type": "stream_error", **fields, "additional_details": error.get("additionalDetails")}]
        self._turn.error = fields
        return [{"type": "error", **fields}]

    def _asked(self, event: Asked) -> list[Message]:
        return question_messages(event.question, self._now_ms())

    def _compacted(self, event: Compacted) -> list[Message]:
        return [{"type": "context_compacted"}]

    def _titled(self, event: Titled) -> list[Message]:
        return [{"type": "thread_name_updated", "thread_id": self._thread_id, "thread_name": event.title}]

    def _other(self, event: Other) -> list[Message]:
        params = event.params if isinstance(event.params, dict) else {}
        match event.method:
            case "rawResponseItem/completed":
                return self._raw_item(params["item"])
            case "rawResponse/completed":
                usage = token_counts(Tokens(), params.get("usage"))
                message = {"type": "raw_response_completed", "response_id": params.get("responseId")}
                return [{**message, "token_usage": usage, "usage_metadata": params.get("usageMetadata")}]
            case "mcpServer/startupStatus/updated":
                return self._mcp_startups.on_status(params)
            case method if method == LIMITS:
                self._limits = snake_keys(params.get("rateLimits"))
                return self._token_count()
            case method if method in OMITTED:
                return []
            case _:
                return _unknown_message(event.method, event.params)

    def _raw_item(self, item: Message) -> list[Message]:
        self._has_raw_items = True
        if item.get("type") == "function_call" and len(self._tool_names) < MAX_TOOL_CALLS:
            self._tool_names[str(item.get("call_id"))] = str(item.get("name"))
        return [{"type": "raw_response_item", "item": item}]


_HANDLERS: dict[type[Event], Callable[[LegacyEvents, Any], list[Message]]] = {
    Text: LegacyEvents._text,
    Thought: LegacyEvents._reasoning,
    Output: LegacyEvents._output,
    TurnStarted: LegacyEvents._turn_started,
    TurnDone: LegacyEvents._turn_done,
    UserSaid: LegacyEvents._user_said,
    Accepted: LegacyEvents._accepted,
    Activity: LegacyEvents._activity,
    Plan: LegacyEvents._plan,
    Diff: LegacyEvents._diff,
    Usage: LegacyEvents._usage,
    Notice: LegacyEvents._notice,
    Asked: LegacyEvents._asked,
    Compacted: LegacyEvents._compacted,
    Titled: LegacyEvents._titled,
    Other: LegacyEvents._other,
}


def _phase(event: Event) -> str | None:
    """The phase of a message, which only its raw item contains."""
    if isinstance(event, Other) and isinstance(event.params["item"].get("phase"), str):
        return str(event.params["item"]["phase"])
    return None


def _warning(event: Notice) -> Message:
    if event.frame.startswith(b'{"method":"deprecationNotice"'):
        params = msgspec.json.decode(event.frame)["params"]
        return {
            "type": "deprecation_notice",
            "summary": params.get("summary"),
            "details": params.get("details"),
        }
    return {"type": "warning", "message": event.message}


def _unknown_message(method: str, params: Any) -> list[Message]:
    """A notification that is newer than the old server, under a name in its style."""
    if method.startswith("codex/event/"):
        return []  # the app-server of 0.104 sends everything twice: these are the messages that we make
    fields = params if isinstance(params, dict) else {"params": params}
    return [{"type": snake(method), **{key: value for key, value in fields.items() if key != "type"}}]
