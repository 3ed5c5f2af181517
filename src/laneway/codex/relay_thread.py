"""One thread of a `codex mcp-server` behind the core's `Thread` port.

The old server reads the events of a thread only while a tool call on it is unanswered (an *open call*).
A turn is followed by its events, under whichever open call they come, and never by the answer of one
call, because after an interrupt there are two open calls and either may be answered:

- an interrupted call is never answered, so it stays open; the thread still works, but the process no
  longer exits at the end of its input (it is ended by a signal);
- a turn that fails is answered before Codex has reported its end. If another call is open, the end
  comes under that. If none is, the end would answer the next call at once, and every answer after it
  would come one call late: such a thread accepts no further turn, and says so.

The first turn is a call of `codex`, which gives the thread its id; all others are calls of `codex-reply`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from laneway.base.errors import EngineError, EngineLost, EngineRefused, QuestionGone
from laneway.codex import relay_calls as calls
from laneway.codex.relay_events import RelayedEvent, RelayTranslator
from laneway.core.model import (
    DECLINE,
    Answer,
    Asked,
    EngineGone,
    Event,
    Failure,
    Question,
    ThreadKnown,
    TurnDone,
    TurnStarted,
    Withdrawn,
)
from laneway.core.ports import Host, Page, Part, ThreadInfo, ThreadSpec, TurnSpec

ENDINGS = frozenset({"task_complete", "error"})
"""Events after which the call under which they came is answered."""
UNUSABLE = (
    "the last turn of this thread failed, and `codex mcp-server` cannot go on with a thread after that:"
    " start a new session, or use --backend app-server"
)


class RelayCalls(Protocol):
    """The part of `RelayLink` that a thread needs."""

    @property
    def stderr_tail(self) -> str: ...

    def call_tool(self, thread: RelayThread, tool: str, arguments: dict[str, Any]) -> None: ...

    def cancel(self, request_id: bytes) -> None: ...

    def untrack(self, thread: RelayThread) -> None: ...

    def after_ping(self, then: Callable[[], None]) -> None: ...


class RelayThread:
    def __init__(self, link: RelayCalls, host: Host, spec: ThreadSpec) -> None:
        self._link = link
        self._host: Host | None = host
        self._spec = spec
        self._first_turn = TurnSpec(parts=())
        self._info = ThreadInfo(thread_id="", cwd=str(spec.cwd))
        self._translator = RelayTranslator(self._emit)
        self._open_calls: dict[bytes, None] = {}
        self._turn_start: asyncio.Future[str] | None = None
        self._is_unusable = False
        """Codex has an unread event left, which would answer the next call."""
        self._is_end_held = False
        """The end of the turn has come, and is held for a moment for events that it may have overtaken."""
        self._tool = "codex"
        self._newest_call = b""
        self._questions: dict[str, asyncio.Future[Answer]] = {}

    @property
    def info(self) -> ThreadInfo:
        """It has no id before the first turn."""
        return self._info

    @property
    def thread_id(self) -> str:
        return self._info.thread_id

    @property
    def has_open_calls(self) -> bool:
        """Whether a call is unanswered: the process then does not exit by itself."""
        return bool(self._open_calls)

    @property
    def has_owner(self) -> bool:
        return self._host is not None

    def set_owner(self, host: Host) -> None:
        """Resume a thread that was released."""
        self._host = host

    # ── called by the core ─────────────────────────────────────────────────

    async def start_turn(self, ticket: str, spec: TurnSpec) -> str:
        if self._turn_start is not None or self._translator.turn_id is not None:
            raise EngineRefused("codex-reply", 0, "a turn is already running on this thread")
        self._tool, arguments = self._call_for(spec)
        self._newest_call = b""
        self._turn_start = asyncio.get_running_loop().create_future()
        self._translator.expect(ticket)
        try:
            self._link.call_tool(self, self._tool, arguments)
            return await self._turn_start
        finally:
            self._translator.expect(None)
            self._turn_start = None

    def _call_for(self, spec: TurnSpec) -> tuple[str, dict[str, Any]]:
        if not self.thread_id:
            self._first_turn = spec
            return "codex", calls.first_call(self._spec, spec)
        if self._is_unusable:
            raise EngineRefused("codex-reply", 0, UNUSABLE)
        return "codex-reply", calls.next_call(self.thread_id, self._first_turn, spec)

    async def steer(self, ticket: str, turn_id: str, parts: tuple[Part, ...]) -> None:
        raise calls.unsupported("codex-reply", "`codex mcp-server` cannot add to a running turn")

    async def interrupt(self, turn_id: str) -> None:
        if turn_id == self._translator.turn_id and self._open_calls:
            self._link.cancel(next(reversed(self._open_calls)))

    def answer(self, question_id: str, answer: Answer) -> None:
        future = self._questions.pop(question_id, None)
        if future is None or future.done():
            raise QuestionGone(question_id)
        future.set_result(answer)

    async def history(self, older: str | None = None, limit: int = 50, *, oldest_first: bool = False) -> Page:
        raise calls.unsupported("history", "`codex mcp-server` does not tell what was said before")

    async def release(self) -> None:
        """The process keeps the thread, which can be resumed as long as that runs."""
        self._host = None
        self._link.untrack(self)

    # ── called by the link ─────────────────────────────────────────────────

    def on_sent(self, request_id: bytes) -> None:
        self._open_calls[request_id] = None
        self._newest_call = request_id

    def on_relayed(self, event: RelayedEvent, frame: bytes) -> None:
        if not self.thread_id and event.meta.threadId:
            self._info = msgspec.structs.replace(self._info, thread_id=event.meta.threadId)
            self._send_event(ThreadKnown(thread_id=self.thread_id))
        content = msgspec.json.decode(event.msg)
        if not isinstance(content, dict):
            content = {"value": content}
        kind = content.get("type")
        if kind in ENDINGS:
            # Its answer follows, but the next turn may be started before that is read.
            self._open_calls.pop(bytes(event.meta.requestId), None)
        if kind == "task_complete" and self._open_calls and self._may_be_incomplete(event.id, content):
            self._is_end_held = True
            self._link.after_ping(lambda: self._end(event.id, content, frame))
            return
        self._translator.handle(event.id, content, frame)
        if kind == "error" and not self._open_calls and not self._is_end_held and self._translator.turn_id:
            self._is_unusable = True
            self._translator.finish("failed")

    def _end(self, turn_id: str, content: dict[str, Any], frame: bytes) -> None:
        self._is_end_held = False
        self._translator.handle(turn_id, content, frame)

    def _may_be_incomplete(self, turn_id: str, content: dict[str, Any]) -> bool:
        """An end without a message: the error that caused it may still come under another open call."""
        is_ours = turn_id == self._translator.turn_id and not self._translator.has_failed
        return is_ours and not content.get("last_agent_message") and not content.get("error")

    def on_answer(self, request_id: bytes, outcome: calls.CallOutcome) -> None:
        """A call was answered. A turn whose end can no longer come must not wait for ever."""
        was_open = request_id in self._open_calls
        self._open_calls.pop(request_id, None)
        if self._turn_start is not None and not self._turn_start.done():
            if request_id == self._newest_call:
                self._on_early_answer(outcome)
        elif was_open and not self._open_calls and not self._is_end_held:
            if outcome.is_error:
                self._translator.finish("failed", Failure(kind="other", message=outcome.text))
            else:
                self._translator.finish("completed", text=outcome.text)

    def _on_early_answer(self, outcome: calls.CallOutcome) -> None:
        """The call for a turn was answered before the turn began."""
        if outcome.is_error:
            self._fail_start(EngineRefused(self._tool, 0, outcome.text))
        elif not self._open_calls:
            # An older event answered it: the prompt was accepted, and its events will not be read.
            self._is_unusable = True
            self._fail_start(EngineRefused(self._tool, 0, UNUSABLE))

    def on_unsent(self, how: str) -> None:
        """The call was not sent, or the process that would answer it has ended."""
        self._fail_start(EngineLost(how, self._link.stderr_tail))

    def on_lost(self, how: str) -> None:
        loss = EngineLost(how, self._link.stderr_tail)
        self._open_calls.clear()
        self._translator.lost(loss)
        self.on_unsent(how)
        self._send_event(EngineGone(how=how, last_words=loss.last_words))

    async def ask(self, question: Question) -> Answer:
        """Ask the thread's owner. Without an owner the answer is a decline, and also when the turn ends."""
        if self._host is None:
            return DECLINE
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._questions[question.question_id] = future
        try:
            self._send_event(Asked(question=question))
            return await future
        finally:
            self._withdraw(question.question_id)

    def _fail_start(self, error: EngineError) -> None:
        if self._turn_start is not None and not self._turn_start.done():
            self._turn_start.set_exception(error)

    def _withdraw(self, question_id: str) -> None:
        future = self._questions.pop(question_id, None)
        if future is not None:
            if not future.done():
                future.set_result(DECLINE)
            self._send_event(Withdrawn(question_id=question_id))

    def _emit(self, event: Event) -> None:
        if type(event) is TurnDone:
            for question_id in list(self._questions):
                self._withdraw(question_id)
        self._send_event(event)
        if type(event) is TurnStarted and self._turn_start is not None and not self._turn_start.done():
            self._turn_start.set_result(event.turn_id)

    def _send_event(self, event: Event) -> None:
        if self._host is not None:
            self._host.on_event(event)
