"""The state of a session in ACP 2: idle, running or requires_action; sent at every change.

A client needs it because a prompt is answered before its turn is over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal

from laneway.base.errors import RemoteError
from laneway.core.model import TurnDone
from laneway.core.turn import TurnResult
from laneway.doors.acp.faults import LoginNeeded, stop_reason
from laneway.doors.acp.v2.shapes import error_of

State = Literal["idle", "running", "requires_action"]


class ForegroundState:
    """Derives the state from turns, questions and open tool calls, and sends each `state_update`."""

    def __init__(self, send_update: Callable[[dict[str, Any]], None]) -> None:
        self._send_update = send_update
        self._state: State = "idle"
        self._has_turn = False
        self._questions: dict[str, str | None] = {}
        """By open question: the tool call that it is about."""

    def run(self) -> None:
        """Something runs: a prompt, a command or a turn."""
        if self._state == "idle":
            self._become("running")

    def begin_turn(self) -> None:
        """A turn has begun."""
        self._has_turn = True
        self.run()

    def end_turn(self) -> None:
        """The turn is over, and so are its questions. `UpdatesV2` decides whether the session is idle."""
        self._has_turn = False
        self._questions.clear()

    def add_question(self, question_id: str, call_id: str | None) -> None:
        self._questions[question_id] = call_id

    def remove_question(self, question_id: str) -> None:
        self._questions.pop(question_id, None)

    def update(self, open_calls: Collection[str]) -> None:
        """Update the state: requires_action if each open tool call waits for a question."""
        if self._state != "idle":
            is_blocked = bool(self._questions) and set(open_calls) <= set(self._questions.values())
            self._become("requires_action" if is_blocked else "running")
        elif self._has_turn and not self._questions:
            self.run()  # its prompt ended with a question in text, and it continues without an answer

    def become_idle(self, stop: str, error: RemoteError | None = None) -> None:
        """What ran is over. Sends nothing if nothing ran."""
        if self._state != "idle":
            self._state = "idle"
            failure = {"error": error_of(error)} if error is not None else {}
            self._send_update(
                {"sessionUpdate": "state_update", "state": "idle", "stopReason": stop, **failure}
            )

    def send(self) -> None:
        """Send the present state, also once more for a client that has just opened the session."""
        self._send_update({"sessionUpdate": "state_update", "state": self._state})

    def _become(self, state: State) -> None:
        if state != self._state:
            self._state = state
            self.send()


def outcome_of(done: TurnDone) -> tuple[str, RemoteError | None]:
    """The stop reason of a turn that no prompt waits for, and its error if it failed."""
    try:
        return stop_reason(TurnResult(done.status, failure=done.failure, turn_id=done.turn_id)), None
    except LoginNeeded as needed:
        return "error", needed.failure
    except RemoteError as failure:
        return "error", failure
