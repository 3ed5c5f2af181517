"""One thread of a `codex mcp-server` behind the core's `Thread` port.

The old server reads the events of a thread only while a tool call on it is unanswered: each such
call is an *ear*. A turn is followed by its events, whichever ear hears them, and never by the
answer of one call, because after an interrupt two ears listen and either may be answered:

- an interrupted call is never answered, so its ear stays; the thread works on, and the process no
  longer ends by itself at the end of its input (it is told to by a signal);
- a turn that fails is answered before Codex has told of its end. If another ear is left, that hears
  the end. If none is, the end would answer the next call at once, and every answer after it would
  come one call late: such a thread takes no further turn, and says so.

The first turn goes by `codex`, which gives the thread its id; all others by `codex-reply`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from laneway.base.errors import EngineError, EngineLost, EngineRefused, QuestionGone
from laneway.base.ids import new_id
from laneway.codex import relay_calls as calls
from laneway.codex.relay_events import RelayedEvent, Translation
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
"""Events behind which the call that heard them is answered."""
DEAF = (
    "the last turn of this thread failed, and `codex mcp-server` cannot go on with a thread after that:"
    " start a new session, or use --backend app-server"
)


class RelayCalls(Protocol):
    """What a thread needs of its link."""

    @property
    def stderr_tail(self) -> str: ...

    def call_tool(self, thread: RelayThread, tool: str, arguments: dict[str, Any]) -> None: ...

    def cancel(self, request_id: bytes) -> None: ...

    def disown(self, thread: RelayThread) -> None: ...

    def after_ping(self, then: Callable[[], None]) -> None: ...


class RelayThread:
    def __init__(self, link: RelayCalls, host: Host, spec: ThreadSpec) -> None:
        self._link = link
        self._host: Host | None = host
        self._spec = spec
        self._first = TurnSpec(parts=())
        self._info = ThreadInfo(thread_id="", cwd=str(spec.cwd))
        self._translation = Translation(self._emit)
        self._ears: dict[bytes, None] = {}
        self._begun: asyncio.Future[str] | None = None
        self._is_deaf = False
        """Codex has something left to tell that nobody heard; it would answer the next call."""
        self._is_ending = False
        """The end of the turn has been heard, and waits a moment for what may overtake it."""
        self._tool = "codex"
        self._newest = b""
        self._open: dict[str, asyncio.Future[Answer]] = {}

    @property
    def info(self) -> ThreadInfo:
        """Without an id before the first turn."""
        return self._info

    @property
    def thread_id(self) -> str:
        return self._info.thread_id

    @property
    def has_ears(self) -> bool:
        """Whether a call is left unanswered: the process then does not end by itself."""
        return bool(self._ears)

    @property
    def is_held(self) -> bool:
        return self._host is not None

    def take_up(self, host: Host) -> None:
        """Somebody goes on with a thread that was released."""
        self._host = host

    # ── asked by the core ──────────────────────────────────────────────────

    async def start_turn(self, ticket: str, spec: TurnSpec) -> str:
        if self._begun is not None or self._translation.turn_id is not None:
            raise EngineRefused("codex-reply", 0, "a turn is already running on this thread")
        self._tool, arguments = self._call(spec)
        self._newest = b""
        self._begun = asyncio.get_running_loop().create_future()
        self._translation.expect(ticket)
        try:
            self._link.call_tool(self, self._tool, arguments)
            return await self._begun
        finally:
            self._translation.expect(None)
            self._begun = None

    def _call(self, spec: TurnSpec) -> tuple[str, dict[str, Any]]:
        if not self.thread_id:
            self._first = spec
            return "codex", calls.first_call(self._spec, spec)
        if self._is_deaf:
            raise EngineRefused("codex-reply", 0, DEAF)
        return "codex-reply", calls.next_call(self.thread_id, self._first, spec)

    async def steer(self, ticket: str, turn_id: str, parts: tuple[Part, ...]) -> None:
        raise calls.refused("codex-reply", "`codex mcp-server` cannot add to a running turn")

    async def interrupt(self, turn_id: str) -> None:
        if turn_id == self._translation.turn_id and self._ears:
            self._link.cancel(next(reversed(self._ears)))

    def answer(self, question_id: str, answer: Answer) -> None:
        asked = self._open.pop(question_id, None)
        if asked is None:
            raise QuestionGone(question_id)
        asked.set_result(answer)

    async def history(self, older: str | None = None, limit: int = 50, *, oldest_first: bool = False) -> Page:
        raise calls.refused("history", "`codex mcp-server` does not tell what was said before")

    async def release(self) -> None:
        """The process keeps the thread; it can be taken up again for as long as that lives."""
        self._host = None
        self._link.disown(self)

    # ── told by the link ───────────────────────────────────────────────────

    def on_sent(self, request_id: bytes) -> None:
        self._ears[request_id] = None
        self._newest = request_id

    def on_told(self, told: RelayedEvent, frame: bytes) -> None:
        if not self.thread_id and told.meta.threadId:
            self._info = msgspec.structs.replace(self._info, thread_id=told.meta.threadId)
            self._tell(ThreadKnown(thread_id=self.thread_id))
        content = msgspec.json.decode(told.msg)
        if not isinstance(content, dict):
            content = {"value": content}
        kind = content.get("type")
        if kind in ENDINGS:
            # Its answer follows, but the next turn may be asked for before that is read.
            self._ears.pop(bytes(told.meta.requestId), None)
        if kind == "task_complete" and self._ears and self._is_doubtful(told.id, content):
            self._is_ending = True
            self._link.after_ping(lambda: self._end(told.id, content, frame))
            return
        self._translation.hear(told.id, content, frame)
        if kind == "error" and not self._ears and not self._is_ending and self._translation.turn_id:
            self._is_deaf = True
            self._translation.finish("failed")

    def _end(self, turn_id: str, content: dict[str, Any], frame: bytes) -> None:
        self._is_ending = False
        self._translation.hear(turn_id, content, frame)

    def _is_doubtful(self, turn_id: str, content: dict[str, Any]) -> bool:
        """An end without a word: another ear may be slow to tell of the error that it ended with."""
        is_ours = turn_id == self._translation.turn_id and not self._translation.has_failed
        return is_ours and not content.get("last_agent_message") and not content.get("error")

    def on_answer(self, request_id: bytes, outcome: calls.CallOutcome) -> None:
        """A call is over. Whatever still waits to be heard must not wait for ever."""
        was_ear = request_id in self._ears
        self._ears.pop(request_id, None)
        if self._begun is not None and not self._begun.done():
            if request_id == self._newest:
                self._on_early_answer(outcome)
        elif was_ear and not self._ears and not self._is_ending:
            if outcome.is_error:
                self._translation.finish("failed", Failure(kind="other", message=outcome.text))
            else:
                self._translation.finish("completed", text=outcome.text)

    def _on_early_answer(self, outcome: calls.CallOutcome) -> None:
        """The call for a turn is over before the turn has begun."""
        if outcome.is_error:
            self._refuse(EngineRefused(self._tool, 0, outcome.text))
        elif not self._ears:
            # It was answered by something else: our words are in, and nobody hears what comes of them.
            self._is_deaf = True
            self._refuse(EngineRefused(self._tool, 0, DEAF))

    def on_unsent(self, how: str) -> None:
        """The call never got through, or nobody is left to answer it."""
        self._refuse(EngineLost(how, self._link.stderr_tail))

    def on_lost(self, how: str) -> None:
        loss = EngineLost(how, self._link.stderr_tail)
        self._ears.clear()
        self._translation.lost(loss)
        self.on_unsent(how)
        self._tell(EngineGone(how=how, last_words=loss.last_words))

    async def ask(self, question: Question) -> Answer:
        """Ask whoever owns the thread. Nobody there is a no, and so is the end of the turn."""
        if self._host is None:
            return DECLINE
        asked: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._open[question.question_id] = asked
        try:
            self._tell(Asked(question=question))
            return await asked
        finally:
            self._withdraw(question.question_id)

    def _refuse(self, error: EngineError) -> None:
        if self._begun is not None and not self._begun.done():
            self._begun.set_exception(error)

    def _withdraw(self, question_id: str) -> None:
        asked = self._open.pop(question_id, None)
        if asked is not None:
            if not asked.done():
                asked.set_result(DECLINE)
            self._tell(Withdrawn(question_id=question_id))

    def _emit(self, event: Event) -> None:
        if type(event) is TurnDone:
            for question_id in list(self._open):
                self._withdraw(question_id)
        self._tell(event)
        if type(event) is TurnStarted and self._begun is not None and not self._begun.done():
            self._begun.set_result(event.turn_id)

    def _tell(self, event: Event) -> None:
        if self._host is not None:
            self._host.on_event(event)


def question_of(params: dict[str, Any]) -> Question | None:
    return calls.question(params, new_id("q"))
