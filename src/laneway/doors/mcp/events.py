"""What a session's owner is told while it works: `codex/event`, and `notifications/progress`.

One `Teller` per session, called on the engine's reader: it renders and posts, and waits for
nobody. A client that does not read loses these, counted; it never loses an answer.

It also decides who takes care of a question: the run of the turn that asks; in a turn that nobody
waits for, the first run that waits behind it, else `UnattendedQuestions`.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from laneway.base.plain import label
from laneway.core.model import (
    Activity,
    Asked,
    Event,
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
from laneway.doors.mcp.server import Call, Line
from laneway.doors.mcp.unattended import UnattendedQuestions

MAX_HELD = 1000
"""Events of a thread that is still being started: a line or two for each MCP server of the user."""
MAX_PARTIAL_CHARS = 256 * 1024
"""Of a message that is being written, kept for a caller whose time runs out."""
MESSAGE_CHARS = 200
"""Of a progress message: clients show it in one line."""


class Script(Protocol):
    """The words for events, as the clients of one kind know them. One for each session."""

    def opening(self, info: ThreadInfo) -> list[Any]:
        """What is told of a thread once it is there."""
        ...

    def of(self, event: Event) -> list[Any]: ...


class Silence:
    """For clients that want no events."""

    def opening(self, info: ThreadInfo) -> list[Any]:
        return []

    def of(self, event: Event) -> list[Any]:
        return []


class Listener(Protocol):
    """Who waits for a turn: a run."""

    request_id: bytes
    progress_token: Any
    line: Line
    is_attended: bool
    """Whether somebody waits for it now, and could be asked."""

    def on_question(self, question: Question) -> None: ...

    def on_withdrawn(self, gone: Withdrawn) -> None: ...


class Teller:
    """A session's reader (see `core.audience.Reader`) on behalf of the client that owns it."""

    def __init__(self, line: Line, script: Script, unattended: UnattendedQuestions) -> None:
        self.lost = 0
        self.is_closed = False
        self.unattended = unattended
        self._line = line
        self._script = script
        self._marks: dict[str, Any] = {}
        self._thread_id = ""
        self._held: list[Event] | None = []
        self._listeners: dict[str, Listener] = {}
        self._strays: dict[str, tuple[Question, Listener]] = {}
        """Open questions of turns that nobody waits for, and the run that has each meanwhile."""
        self._current: Listener | None = None
        self._partial: list[str] = []
        self._partial_chars = 0
        self._turn_id = ""
        self._steps = 0
        unattended.on_parked = self._hand_out

    def open(self, info: ThreadInfo, marks: dict[str, Any], first: Listener | None, *, is_new: bool) -> None:
        """The session is there: tell what the client should know first, then what happened meanwhile.

        Only the first call counts. A thread that was resumed is not introduced again.
        """
        if self._held is None:
            return
        self._thread_id, self._marks, self._current = info.thread_id, marks, first
        opening = self._script.opening(info)
        for body in opening if is_new else ():
            self._tell(body)
        held, self._held = self._held, None
        for event in held:
            self.push(event)

    def follow(self, ticket: str, listener: Listener) -> None:
        """From its start on, the turn with this ticket is this listener's."""
        self._listeners[ticket] = listener
        self._hand_out()

    def unfollow(self, ticket: str) -> None:
        gone = self._listeners.pop(ticket, None)
        left = [question for question, listener in self._strays.values() if listener is gone]
        for question in left:
            del self._strays[question.question_id]
            self._entrust(question)

    def attend(self, call: Call) -> None:
        """The client's latest call: what no call waits for is told and asked there from now on."""
        self._line = call.line
        self.unattended.attend(call)
        self._hand_out()

    @property
    def partial(self) -> str:
        """The text of the running turn as far as it has come."""
        return "".join(self._partial)

    # ── the engine's reader ────────────────────────────────────────────────

    def push(self, event: Event) -> None:
        if self._held is not None:
            if len(self._held) < MAX_HELD:
                self._held.append(event)
            else:
                self.lost += 1
            return
        kind = type(event)
        if kind is Text:
            self._note(event.text)  # type: ignore[attr-defined]
        elif kind is TurnStarted:
            self._begin(event)  # type: ignore[arg-type]
        elif kind is ThreadKnown:
            self._thread_id = event.thread_id  # type: ignore[attr-defined]
        for body in self._script.of(event):
            self._tell(body)
        if kind is not Text:
            self._progress(event)
            self._hand_over(event)

    def close(self) -> None:
        """The session is over."""
        self.is_closed = True
        self._listeners.clear()
        self._strays.clear()
        self._current = None
        self.unattended.close()

    def _begin(self, event: TurnStarted) -> None:
        self._current = self._listeners.get(event.ticket or "")
        self._turn_id = event.turn_id
        self._partial.clear()
        self._partial_chars = 0

    def _note(self, text: str) -> None:
        if self._partial_chars < MAX_PARTIAL_CHARS:
            self._partial.append(text)
            self._partial_chars += len(text)

    def _hand_over(self, event: Event) -> None:
        listener = self._current
        if isinstance(event, TurnDone):
            self._current = None
        elif isinstance(event, Asked):
            if listener is not None:
                listener.on_question(event.question)
            else:
                self._entrust(event.question)
        elif isinstance(event, Withdrawn):
            self.unattended.on_withdrawn(event)
            _, holder = self._strays.pop(event.question_id, (None, listener))
            if holder is not None:
                holder.on_withdrawn(event)

    # ── questions in turns that nobody waits for ───────────────────────────

    def _entrust(self, question: Question) -> None:
        """To a call that waits behind the turn, which can at least return with it; else to nobody's care."""
        listener = self._first_waiting
        if listener is None:
            self.unattended.on_question(question)
        else:
            self._strays[question.question_id] = (question, listener)
            listener.on_question(question)

    @property
    def _first_waiting(self) -> Listener | None:
        return next((each for each in self._listeners.values() if each.is_attended), None)

    def _hand_out(self) -> None:
        """What is parked goes to a call that waits behind it."""
        listener = self._first_waiting
        for question in self.unattended.release() if listener is not None else ():
            self._entrust(question)

    # ── to the client ──────────────────────────────────────────────────────

    def _tell(self, body: Any) -> None:
        listener = self._current
        meta: dict[str, Any] = {"threadId": self._thread_id, **self._marks}
        if listener is not None:
            meta = {"requestId": msgspec.Raw(listener.request_id), **meta}
        line = listener.line if listener is not None else self._line
        if not line.notify("codex/event", {"_meta": meta, "msg": body, "id": self._turn_id, **self._marks}):
            self.lost += 1

    def _progress(self, event: Event) -> None:
        listener = self._current
        if listener is None or listener.progress_token is None:
            return
        message = progress_of(event)
        if message:
            self.progress(listener, message)

    def progress(self, listener: Listener, message: str) -> None:
        """Say that work goes on: clients that hear nothing for long give up."""
        self._steps += 1
        told = {
            "progressToken": listener.progress_token,
            "progress": self._steps,
            "message": label(" ".join(message.split()), MESSAGE_CHARS),
        }
        if not listener.line.notify("notifications/progress", told):
            self.lost += 1


def progress_of(event: Event) -> str:
    """One line for people; empty if there is nothing to say."""
    match event:
        case TurnStarted():
            return "Codex has begun."
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
