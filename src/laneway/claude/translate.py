"""Converts the messages of Claude Code to the core's events, with one translator for each agent.

Owns the state that the promises of `laneway.core.model` need: one `TurnStarted` and one last `TurnDone`
for each turn, every activity ended, no text sent twice. When a turn begins and ends is decided by its
caller (`laneway.claude.turns`). Never raises, whatever Claude Code sends; what it does not know becomes
`Other`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from laneway.base.errors import EngineLost
from laneway.claude.activities import EDITORS, SILENT, ToolCall, ended, maybe, result_of, started
from laneway.claude.background import BackgroundCalls
from laneway.claude.checklist import TOOLS as CHECKLIST_TOOLS
from laneway.claude.checklist import Checklist
from laneway.claude.login import with_remedy
from laneway.claude.process import StreamEvent
from laneway.claude.tokens import ThreadTokens
from laneway.claude.turn_diff import TurnDiff
from laneway.core.model import (
    Activity,
    ActivityStatus,
    Compacted,
    Diff,
    Event,
    Failure,
    Notice,
    Other,
    SettingsChanged,
    Status,
    Text,
    Thought,
    TurnDone,
    TurnStarted,
)

log = logging.getLogger(__name__)

ENGINE_LOST = "engine_lost"
_KNOWN = frozenset(
    {
        ("system", "background_tasks_changed"),
        ("system", "init"),
        ("system", "session_state_changed"),
        ("system", "task_progress"),
        ("system", "task_started"),
        ("system", "task_updated"),
        ("system", "thinking_tokens"),
        ("conversation_reset", ""),
        ("keep_alive", ""),
    }
)
"""Messages that tell a reader nothing, or that others read."""


class MessageTranslator:
    """Called with the messages of one agent in order; emits events in order."""

    def __init__(self, emit: Callable[[Event], None], cwd: str, declined: set[str] | None = None) -> None:
        """`declined`: the ids of calls that were not allowed, kept up to date by the caller."""
        self._emit = emit
        self._declined = declined if declined is not None else set()
        self._turn_id: str | None = None
        self._message_id = self._model = ""
        self._block: tuple[int, str] = (0, "")
        """The content block that is being streamed: its number and its kind."""
        self._sent_chars = 0
        """Of that block."""
        self._text = ""
        self._failure: Failure | None = None
        """The error that stands in for an answer."""
        self._has_acted = False
        self._calls: dict[str, ToolCall] = {}
        self._background = BackgroundCalls(emit)
        self._checklist = Checklist()
        self._diff = TurnDiff(cwd)
        self._compactions = 0
        self._compacting: Activity | None = None
        self.tokens = ThreadTokens()
        self.is_stopping = False
        """Whether the turn is being interrupted: calls that fail now were interrupted."""

    @property
    def turn_id(self) -> str | None:
        return self._turn_id

    @property
    def failure(self) -> Failure | None:
        return self._failure

    @property
    def has_acted(self) -> bool:
        """Whether a tool was called in the running turn."""
        return self._has_acted

    def call(self, call_id: str) -> ToolCall | None:
        """A call in progress."""
        return self._calls.get(call_id)

    # ── turns ──────────────────────────────────────────────────────────────

    def begin(self, turn_id: str, ticket: str | None = None, frame: bytes = b"") -> None:
        if self._turn_id is not None:
            self.finish("completed")
        self._turn_id, self._text, self._failure = turn_id, "", None
        self._has_acted = self.is_stopping = False
        self._emit(TurnStarted(turn_id=turn_id, ticket=ticket, frame=frame))

    def finish(
        self, status: Status, failure: Failure | None = None, text: str | None = None, frame: bytes = b""
    ) -> None:
        """The running turn ends, and with it its open calls."""
        turn_id, self._turn_id = self._turn_id, None
        if turn_id is None:
            return
        self._end_compaction(turn_id, "interrupted")
        self._background.end_turn()
        for call in self._calls.values():
            if call.name not in SILENT:
                open_activity = started(turn_id, call)
                at_end: ActivityStatus = "detached" if status == "completed" else "interrupted"
                self._emit(msgspec.structs.replace(open_activity, status=at_end))
        self._calls.clear()
        self._diff.clear()
        self.is_stopping = False
        text = self._text if text is None else text
        self._emit(TurnDone(turn_id=turn_id, status=status, text=text, failure=failure, frame=frame))

    def lost(self, loss: EngineLost) -> None:
        """The process died."""
        self.finish("failed", Failure(kind=ENGINE_LOST, message=str(loss)))
        self._background.lost()

    # ── messages ───────────────────────────────────────────────────────────

    def stream(self, event: StreamEvent, frame: bytes) -> None:
        """A piece of an answer, in a turn."""
        turn_id, part = self._turn_id, event.event
        if turn_id is None:
            return
        match part.type:
            case "content_block_delta" if part.delta is not None:
                item_id = f"{self._message_id}/{part.index}"
                text = part.delta.text or part.delta.thinking
                kind = Text if part.delta.type == "text_delta" else Thought
                if text:
                    self._sent_chars += len(text)
                    self._emit(kind(turn_id=turn_id, item_id=item_id, text=text, frame=frame))
            case "content_block_start":
                self._block = part.index, str((part.content_block or {}).get("type"))
                self._sent_chars = 0
            case "message_start":
                self._message_id = str((part.message or {}).get("id"))
                self._model = str((part.message or {}).get("model") or "")
            case "message_delta" if part.usage is not None:
                self._emit(self.tokens.add_answer(turn_id, part.usage, self._model))

    def message(self, message: dict[str, Any], frame: bytes) -> None:
        """Any other message."""
        kind, subtype = str(message.get("type")), str(message.get("subtype") or "")
        try:
            handler = _HANDLERS.get((kind, subtype)) or _HANDLERS.get((kind, ""))
            if handler is not None and handler(self, message, frame):
                return
            if (kind, subtype) in _KNOWN:
                return
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            log.warning("a %s message of an unknown shape (%r): %.200r", kind, problem, frame)
        method = f"{kind}/{subtype}" if subtype else kind
        self._emit(Other(method=method, params=message, frame=frame))

    def _assistant(self, message: dict[str, Any], frame: bytes) -> bool:
        answer = message["message"]
        for block in answer["content"]:
            match block["type"]:
                case "text" if message.get("is_api_error_message") is True:
                    problem = str(message.get("error") or "other")
                    self._failure = Failure(
                        kind=problem,
                        message=with_remedy(problem, str(block["text"])),
                        http_status=maybe(message.get("api_error_status"), int),
                    )
                case "text" | "thinking" as kind:
                    self._whole_block(kind, str(block[kind]), answer, message, frame)
                case "tool_use":
                    self._call(ToolCall(str(block["id"]), str(block["name"]), dict(block["input"])), frame)
                case kind:
                    self._emit(Other(method=f"assistant/{kind}", params=block))
        return True

    def _whole_block(
        self, kind: str, text: str, answer: dict[str, Any], message: dict[str, Any], frame: bytes
    ) -> None:
        """A block that is complete: what was not streamed of it is sent now."""
        index, open_kind = self._block
        is_streamed = open_kind == kind and answer.get("id") == self._message_id
        rest = text[self._sent_chars :] if is_streamed else text
        item_id = f"{self._message_id}/{index}" if is_streamed else str(message.get("uuid"))
        if kind == "text":
            self._text = text
        self._block = (index, "")
        if rest and self._turn_id is not None:
            event = Text if kind == "text" else Thought
            self._emit(event(turn_id=self._turn_id, item_id=item_id, text=rest, frame=frame))

    def _call(self, call: ToolCall, frame: bytes) -> None:
        if self._turn_id is None:
            return
        self._calls[call.call_id] = call
        self._has_acted = True
        if call.name not in SILENT and call.name not in CHECKLIST_TOOLS:
            self._emit(started(self._turn_id, call, frame))

    def _user(self, message: dict[str, Any], frame: bytes) -> bool:
        """Results of calls. Texts in such messages are for the model: reminders, summaries, remarks."""
        content = message["message"]["content"]
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                self._result(message, block, frame)
        return True

    def _result(self, message: dict[str, Any], block: dict[str, Any], frame: bytes) -> None:
        call, turn_id = self._calls.pop(str(block.get("tool_use_id")), None), self._turn_id
        if call is None or turn_id is None or call.name in SILENT:
            return
        result = result_of(message, block)
        if call.name in CHECKLIST_TOOLS:
            plan = self._checklist.take(turn_id, call, result)
            if plan is not None:
                self._emit(plan)
            return
        if call.call_id in self._declined:
            result = msgspec.structs.replace(result, is_rejected=True)
        activity = ended(turn_id, call, result, frame)
        if self._background.keep(activity, result):
            return
        if activity.status == "failed" and self.is_stopping:
            activity = msgspec.structs.replace(activity, status="interrupted")
        self._emit(activity)
        if call.name in EDITORS:
            diff = self._diff.take(call, result)
            if diff is not None:
                self._emit(Diff(turn_id=turn_id, diff=diff))

    def _task_notification(self, message: dict[str, Any], frame: bytes) -> bool:
        self._background.end(message, self._turn_id)
        return True

    def _status(self, message: dict[str, Any], frame: bytes) -> bool:
        mode = message.get("permissionMode")
        if mode is not None:
            self._emit(SettingsChanged(settings={"permissionMode": mode}, frame=frame))
        if self._turn_id is not None and message.get("status") == "compacting":
            self._compactions += 1
            self._compacting = Activity(
                turn_id=self._turn_id,
                item_id=f"compaction-{self._compactions}",
                kind="compaction",
                title="Compact the conversation",
                status="running",
            )
            self._emit(self._compacting)
        elif self._turn_id is not None and "compact_result" in message:
            is_done = message["compact_result"] == "success"
            self._end_compaction(self._turn_id, "completed" if is_done else "failed")
        return True

    def _end_compaction(self, turn_id: str, status: ActivityStatus) -> None:
        activity, self._compacting = self._compacting, None
        if activity is not None:
            self._emit(msgspec.structs.replace(activity, status=status))

    def _compact_boundary(self, message: dict[str, Any], frame: bytes) -> bool:
        self._emit(Compacted(turn_id=self._turn_id, frame=frame))
        return True

    def _retry(self, message: dict[str, Any], frame: bytes) -> bool:
        status = message.get("error_status")
        problem = str(message.get("error") or "no reason given").replace("_", " ")
        attempt, tries = message.get("attempt"), message.get("max_retries")
        delay_s = (message.get("retry_delay_ms") or 0) / 1000
        text = (
            f"The model could not be reached ({problem}{f', HTTP {status}' if status else ''});"
            f" try {attempt} of {tries} follows in {delay_s:.1f} s"
        )
        self._emit(Notice(level="warning", message=text, turn_id=self._turn_id, will_retry=True, frame=frame))
        return True


_HANDLERS: dict[tuple[str, str], Callable[[MessageTranslator, dict[str, Any], bytes], bool]] = {
    ("assistant", ""): MessageTranslator._assistant,
    ("user", ""): MessageTranslator._user,
    ("system", "api_retry"): MessageTranslator._retry,
    ("system", "compact_boundary"): MessageTranslator._compact_boundary,
    ("system", "status"): MessageTranslator._status,
    ("system", "task_notification"): MessageTranslator._task_notification,
}
