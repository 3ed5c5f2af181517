"""The events of an engine's session as a lane tells them: of each turn one start, one end, nothing after it.

What the engine leaves out is added: the start and the end of a turn that never ran, the withdrawal of a
question whose turn is over. Knows no session and awaits nothing; called on the engine's reader, too.
"""

from __future__ import annotations

import asyncio
from collections import deque

import msgspec

from laneway.core.model import (
    Accepted,
    Asked,
    Closed,
    Event,
    Failure,
    Notice,
    Status,
    Text,
    TurnDone,
    TurnStarted,
    Withdrawn,
)
from laneway.core.turn import Turn
from laneway.doors.chat.engine_words import in_words
from laneway.doors.chat.lane_engines import LaneKind
from laneway.lanes.contract import LaneHost, LaneTurn

MAX_ENDED = 64
"""Turns whose late events are recognised: a session has one turn at a time, and few end late."""


class RunningTurn:
    """A turn of a lane, from its `begin` to its end."""

    def __init__(self, lane_turn: LaneTurn) -> None:
        self.lane_turn = lane_turn
        self.task: asyncio.Task[None] | None = None
        """Brings it about."""
        self.session_turn: Turn | None = None
        """Once the session has it."""
        self.turn_id: str | None = None
        """Once it has started."""
        self.is_accepted = False
        self.is_interrupted = False
        self.done: TurnDone | None = None
        """Of a command: the end of the engine's turn, until the command is over, too."""
        self.waiting: list[str] = []
        """Of a command: texts that wait for the start of the turn."""
        self.said: list[str] = []
        """Of a command: all texts."""

    @property
    def ticket(self) -> str:
        return self.lane_turn.ticket

    @property
    def is_command(self) -> bool:
        return bool(self.lane_turn.command)


class LaneTurns:
    def __init__(self, kind: LaneKind) -> None:
        self._kind = kind
        self.host: LaneHost | None = None
        self.running: RunningTurn | None = None
        self.own_turn: str | None = None
        """The id of a turn that the engine has begun by itself, while that runs."""
        self._ended: deque[str] = deque(maxlen=MAX_ENDED)
        self._questions: dict[str, None] = {}
        """Open ones, in order."""

    @property
    def now(self) -> str | None:
        """The id of the turn that runs, once it has started."""
        return self.running.turn_id if self.running is not None else self.own_turn

    def tell(self, event: Event) -> None:
        if self.host is not None:
            self.host.on_event(event)

    # ── events of the session ──────────────────────────────────────────────

    def on_event(self, event: Event) -> None:
        turn_id = getattr(event, "turn_id", None)
        if turn_id is not None and turn_id in self._ended:
            self._tell_late(event)
            return
        match event:
            case Closed():
                return  # of the session; the lane may open another
            case TurnStarted():
                self._on_started(event)
                return
            case TurnDone():
                self._on_done(event)
                return
            case Accepted() if self.running is not None and event.client_id == self.running.ticket:
                self.running.is_accepted = True
            case Asked(question=question):
                self._questions[question.question_id] = None
            case Withdrawn():
                self._questions.pop(event.question_id, None)
            case _:
                pass
        self.tell(event)

    def _tell_late(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.tell(msgspec.structs.replace(event, turn_id=None))

    def _on_started(self, event: TurnStarted) -> None:
        running = self.running
        if running is None or event.ticket != running.ticket:
            self.own_turn = event.turn_id
            self.tell(msgspec.structs.replace(event, ticket=None))
            return
        running.turn_id = event.turn_id
        self.tell(event)
        self._show_waiting(running)

    def _on_done(self, event: TurnDone) -> None:
        running = self.running
        if running is None or event.turn_id != running.turn_id:
            if event.turn_id == self.own_turn:
                self.own_turn = None
            self._finish(event)
        elif running.is_command:
            running.done = event
        else:
            self.running = None
            self._finish(event)

    # ── what the lane adds ─────────────────────────────────────────────────

    def say(self, running: RunningTurn, text: str) -> None:
        """Show a text of a command, in its turn."""
        if self.running is not running:
            return  # it was ended meanwhile
        running.waiting.append(text)
        if running.turn_id is not None:
            self._show_waiting(running)

    def _show_waiting(self, running: RunningTurn) -> None:
        while running.waiting:
            text = running.waiting.pop(0)
            running.said.append(text)
            item_id = f"{running.ticket}/{len(running.said)}"
            self.tell(Text(turn_id=running.turn_id or running.ticket, item_id=item_id, text=text))

    def end_command(self, running: RunningTurn) -> None:
        """The command is over, and so is the engine's turn, if it had one."""
        done = running.done
        if self.running is not running:
            return
        if done is not None:
            self._show_waiting(running)
            self._end_with(running, done)
            return
        self._start(running)
        if not running.is_accepted:
            self.tell(Accepted(turn_id=str(running.turn_id), client_id=running.ticket))
        self.end(running, "completed")

    def end(self, running: RunningTurn, status: Status, failure: Failure | None = None) -> None:
        """End a turn that the engine does not end; nothing if it has ended."""
        if self.running is not running:
            return
        self._start(running)
        text = "\n\n".join(running.said)
        done = TurnDone(turn_id=str(running.turn_id), status=status, text=text, failure=failure)
        self._end_with(running, done)

    def _start(self, running: RunningTurn) -> None:
        if running.turn_id is None:
            running.turn_id = running.ticket
            self.tell(TurnStarted(turn_id=running.ticket, ticket=running.ticket))
        self._show_waiting(running)

    def _end_with(self, running: RunningTurn, done: TurnDone) -> None:
        if self.running is running:
            self.running = None
            self._finish(done)

    def _finish(self, done: TurnDone) -> None:
        for question_id in list(self._questions):
            del self._questions[question_id]
            self.tell(Withdrawn(question_id=question_id))
        self._ended.append(done.turn_id)
        failure = in_words(done.failure, self._kind.name, self._kind.login)
        self.tell(msgspec.structs.replace(done, failure=failure))
