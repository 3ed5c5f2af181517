"""What a session is doing, told to its client whenever that changes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Literal

from laneway.base.errors import RemoteError
from laneway.core.model import TurnDone
from laneway.core.turn import TurnResult
from laneway.doors.acp.faults import LoginNeeded, stop_reason
from laneway.doors.acp.v2.shapes import error_of

State = Literal["idle", "running", "requires_action"]


class Foreground:
    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._state: State = "idle"
        self._has_turn = False
        self._questions: dict[str, str | None] = {}
        """Open questions, with the tool calls that they are about."""

    def run(self) -> None:
        """Something is being done, whoever asked for it."""
        if self._state == "idle":
            self._become("running")

    def begin(self) -> None:
        """A turn has begun."""
        self._has_turn = True
        self.run()

    def end(self) -> None:
        """The turn is over, and so are its questions. Whether all is over, others know."""
        self._has_turn = False
        self._questions.clear()

    def ask(self, question_id: str, call_id: str | None) -> None:
        self._questions[question_id] = call_id

    def settle(self, question_id: str) -> None:
        self._questions.pop(question_id, None)

    def look(self, calls: Collection[str]) -> None:
        """Only a person can move it on: there are questions, and every call that is open waits for one."""
        if self._state != "idle":
            is_blocked = bool(self._questions) and set(calls) <= set(self._questions.values())
            self._become("requires_action" if is_blocked else "running")
        elif self._has_turn and not self._questions:
            self.run()  # its prompt ended with a question in text, and it goes on without an answer

    def rest(self, stop: str, error: RemoteError | None = None) -> None:
        """What was being done is over. Nothing is told where nothing had begun."""
        if self._state != "idle":
            self._state = "idle"
            failure = {"error": error_of(error)} if error is not None else {}
            self._tell({"sessionUpdate": "state_update", "state": "idle", "stopReason": stop, **failure})

    def tell(self) -> None:
        """Once more, for a client that has just come."""
        self._tell({"sessionUpdate": "state_update", "state": self._state})

    def _become(self, state: State) -> None:
        if state != self._state:
            self._state = state
            self.tell()


def how_it_ended(done: TurnDone) -> tuple[str, RemoteError | None]:
    """The stop reason of a turn that no prompt waits for, with its error if it failed."""
    try:
        return stop_reason(TurnResult(done.status, failure=done.failure, turn_id=done.turn_id)), None
    except LoginNeeded as needed:
        return "error", needed.failure
    except RemoteError as failure:
        return "error", failure
