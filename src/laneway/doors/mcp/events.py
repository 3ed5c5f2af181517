"""Forwards a session's events to the MCP client that owns it: `codex/event` and `notifications/progress`.

One `EventForwarder` per session, called on the engine's reader: it renders and posts, and never waits.
A client that does not read loses notifications, which are counted; it never loses an answer.

It also decides which `TurnListener` gets a question: the run of the turn that asks; in a turn that no
call waits for, the first run that is queued behind it, else `UnattendedQuestions`.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from laneway.base.engines import CODEX
from laneway.core.early_events import EarlyEvents
from laneway.core.model import (
    Activity,
    Asked,
    Event,
    Look,
    Notice,
    Plan,
    Question,
    Text,
    ThreadKnown,
    TurnDone,
    TurnStarted,
    Withdrawn,
)
from laneway.core.ports import ThreadInfo
from laneway.doors.mcp.progress import send_progress
from laneway.doors.mcp.server import Call, CallerChannel
from laneway.doors.mcp.unattended import UnattendedQuestions
from laneway.rendering.titles import look_title

MAX_PARTIAL_CHARS = 256 * 1024
"""Of a message that is being written, kept for a caller whose call times out."""


class Script(Protocol):
    """Renders events as the bodies of `codex/event`, in one dialect. One for each session."""

    def opening(self, info: ThreadInfo) -> list[Any]:
        """The bodies that introduce a new thread."""
        ...

    def of(self, event: Event) -> list[Any]: ...


class Silence:
    """For clients that want no events."""

    def opening(self, info: ThreadInfo) -> list[Any]:
        return []

    def of(self, event: Event) -> list[Any]:
        return []


class TurnListener(Protocol):
    """What waits for a turn on behalf of a call: a `ClientRun`."""

    request_id: bytes
    progress_token: Any
    channel: CallerChannel
    is_attended: bool
    """Whether a call waits for it now, so that its client can be asked."""

    def on_question(self, question: Question) -> None: ...

    def on_withdrawn(self, gone: Withdrawn) -> None: ...


class EventForwarder:
    """A session's reader (see `core.audience.Reader`) on behalf of the client that owns it."""

    def __init__(self, channel: CallerChannel, script: Script, unattended: UnattendedQuestions) -> None:
        self.lost = 0
        self.is_closed = False
        self.unattended = unattended
        self._channel = channel
        self._script = script
        self._id_fields: dict[str, Any] = {}
        self._thread_id = ""
        self._engine = CODEX
        self._early: EarlyEvents[Event] | None = EarlyEvents()
        self._listeners: dict[str, TurnListener] = {}
        self._assigned: dict[str, tuple[Question, TurnListener]] = {}
        """Open questions of turns that no call waits for, and the run that takes care of each."""
        self._current: TurnListener | None = None
        self._partial: list[str] = []
        self._partial_chars = 0
        self._turn_id = ""
        self._steps = 0
        unattended.on_parked = self._assign_parked

    def open(
        self,
        info: ThreadInfo,
        id_fields: dict[str, Any],
        first: TurnListener | None,
        *,
        is_new: bool,
        engine: str = CODEX,
    ) -> None:
        """The session is open: send its introduction, then the events that came before this.

        Only the first call counts. A resumed thread is not introduced again. `engine` is the name of who
        works.
        """
        early, self._early = self._early, None
        if early is None:
            return
        self._engine = engine
        self._thread_id, self._id_fields, self._current = info.thread_id, id_fields, first
        introduction = self._script.opening(info)
        for body in introduction if is_new else ():
            self._send_event(body)
        for event in early.take():
            self.push(event)

    def follow(self, ticket: str, listener: TurnListener) -> None:
        """The turn with this ticket belongs to this listener from its start on."""
        self._listeners[ticket] = listener
        self._assign_parked()

    def unfollow(self, ticket: str) -> None:
        gone = self._listeners.pop(ticket, None)
        unassigned = [question for question, listener in self._assigned.values() if listener is gone]
        for question in unassigned:
            del self._assigned[question.question_id]
            self._assign(question)

    def attend(self, call: Call) -> None:
        """The client's latest call: events and questions that no call waits for go there from now on."""
        self._channel = call.channel
        self.unattended.attend(call)
        self._assign_parked()

    @property
    def partial(self) -> str:
        """The text of the running turn so far."""
        return "".join(self._partial)

    # ── the engine's reader ────────────────────────────────────────────────

    def push(self, event: Event) -> None:
        if self._early is not None:
            self.lost += not self._early.add(event)
            return
        kind = type(event)
        if kind is Text:
            self._add_partial(event.text)  # type: ignore[attr-defined]
        elif kind is TurnStarted:
            self._begin(event)  # type: ignore[arg-type]
        elif kind is ThreadKnown:
            self._thread_id = event.thread_id  # type: ignore[attr-defined]
        for body in self._script.of(event):
            self._send_event(body)
        if kind is not Text:
            self._progress(event)
            self._pass_question(event)

    def close(self) -> None:
        """The session is over."""
        self.is_closed = True
        self._listeners.clear()
        self._assigned.clear()
        self._current = None
        self.unattended.close()

    def _begin(self, event: TurnStarted) -> None:
        self._current = self._listeners.get(event.ticket or "")
        self._turn_id = event.turn_id
        self._partial.clear()
        self._partial_chars = 0

    def _add_partial(self, text: str) -> None:
        if self._partial_chars < MAX_PARTIAL_CHARS:
            self._partial.append(text)
            self._partial_chars += len(text)

    def _pass_question(self, event: Event) -> None:
        listener = self._current
        if isinstance(event, TurnDone):
            self._current = None
        elif isinstance(event, Asked):
            if listener is not None:
                listener.on_question(event.question)
            else:
                self._assign(event.question)
        elif isinstance(event, Withdrawn):
            self.unattended.on_withdrawn(event)
            _, assignee = self._assigned.pop(event.question_id, (None, listener))
            if assignee is not None:
                assignee.on_withdrawn(event)

    # ── questions in turns that no call waits for ──────────────────────────

    def _assign(self, question: Question) -> None:
        """To a call that waits behind the turn, which can at least return with it; else it is unattended."""
        listener = self._first_waiting
        if listener is None:
            self.unattended.on_question(question)
        else:
            self._assigned[question.question_id] = (question, listener)
            listener.on_question(question)

    @property
    def _first_waiting(self) -> TurnListener | None:
        return next((each for each in self._listeners.values() if each.is_attended), None)

    def _assign_parked(self) -> None:
        """Give parked questions to a call that waits behind them."""
        listener = self._first_waiting
        for question in self.unattended.release() if listener is not None else ():
            self._assign(question)

    # ── to the client ──────────────────────────────────────────────────────

    def _send_event(self, body: Any) -> None:
        listener = self._current
        meta: dict[str, Any] = {"threadId": self._thread_id, **self._id_fields}
        if listener is not None:
            meta = {"requestId": msgspec.Raw(listener.request_id), **meta}
        channel = listener.channel if listener is not None else self._channel
        params = {"_meta": meta, "msg": body, "id": self._turn_id, **self._id_fields}
        if not channel.notify("codex/event", params):
            self.lost += 1

    def _progress(self, event: Event) -> None:
        listener = self._current
        if listener is None or listener.progress_token is None:
            return
        message = progress_of(event, self._engine)
        if message:
            self.progress(listener, message)

    def progress(self, listener: TurnListener, message: str) -> None:
        """Report progress: clients that hear nothing for long give up on the call."""
        self._steps += 1
        if not send_progress(listener.channel, listener.progress_token, self._steps, message):
            self.lost += 1


def progress_of(event: Event, engine: str) -> str:
    """One line for people; empty if there is nothing to say."""
    match event:
        case TurnStarted():
            return f"{engine} has begun."
        case Activity(kind="read", status="running", look=Look() as look):
            return look_title(look)
        case Activity(status="running", title=title):
            return title
        case Plan(steps=steps):
            running = next((step.text for step in steps if step.status == "running"), "")
            done = sum(step.status == "completed" for step in steps)
            return f"{done} of {len(steps)} steps done. {running}".strip()
        case Notice(message=message, will_retry=True):
            return f"Trying again: {message}"
        case Asked(question=question):
            return f"Waiting for an answer: {question.message}"
        case _:
            return ""
