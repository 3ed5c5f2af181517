"""State, letters (inputs) and effects (outputs) of a session's rules, as values.

`laneway.core.step` decides with them; `laneway.core.session` posts the letters and carries
out the effects. A ticket names one request of a caller, from its first letter to its `Settle`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["client", "mail", "last"]
Outcome: TypeAlias = Literal[
    "done", "cancelled", "closed", "refused", "stuck", "lost", "full", "no_turn", "question_gone", "ok"
]
Stop: TypeAlias = Literal["cancel", "timeout", "close", "budget", "unreachable"]


# ── state ──────────────────────────────────────────────────────────────────


class Live(msgspec.Struct, frozen=True):
    """The running turn of one of our tickets; without a `turn_id` the engine has not begun it yet."""

    ticket: str
    kind: Kind
    turn_id: str | None = None
    stop: Stop | None = None


class Closing(msgspec.Struct, frozen=True):
    """A session that is being closed, and the tickets that wait for it."""

    waiters: tuple[str, ...]
    last: str | None
    """A turn to run before the end (a summary), once nothing else runs."""
    releasing: bool = False


class State(msgspec.Struct, frozen=True):
    """Everything the rules know of a session."""

    live: Live | None = None
    foreign: str | None = None
    """A turn that we did not ask for and must not steer."""
    clients: tuple[str, ...] = ()
    mail: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    closing: Closing | None = None
    is_closed: bool = False
    is_stuck: bool = False
    """A turn was interrupted and never ended: no other turn can start."""

    @property
    def status(self) -> Literal["idle", "busy", "closed"]:
        if self.is_closed:
            return "closed"
        return "busy" if self.live or self.foreign or self.closing else "idle"


# ── letters ────────────────────────────────────────────────────────────────


class Say(msgspec.Struct, frozen=True):
    """A caller asks for a turn."""

    ticket: str
    kind: Kind = "client"


class Cancel(msgspec.Struct, frozen=True):
    """Stop one turn, running or waiting."""

    ticket: str
    why: Stop = "cancel"


class CancelAll(msgspec.Struct, frozen=True):
    """Stop the running turn, whoever asked for it, and drop the waiting client turns."""


class Steer(msgspec.Struct, frozen=True):
    """Add input to the running turn."""

    ticket: str


class Close(msgspec.Struct, frozen=True):
    """Close the session, after an optional last turn."""

    ticket: str
    last: str | None = None


class Answered(msgspec.Struct, frozen=True):
    """A caller has answered a question."""

    ticket: str
    question_id: str


class Begun(msgspec.Struct, frozen=True):
    """The engine has begun a turn; without a ticket it is not one of ours."""

    turn_id: str
    ticket: str | None


class Refused(msgspec.Struct, frozen=True):
    """The engine refused or failed to begin the ticket's turn."""

    ticket: str


class Ended(msgspec.Struct, frozen=True):
    """The engine has ended a turn."""

    turn_id: str


class Opened(msgspec.Struct, frozen=True):
    """The engine asks a question."""

    question_id: str


class Gone(msgspec.Struct, frozen=True):
    """The engine has withdrawn a question."""

    question_id: str


class Expired(msgspec.Struct, frozen=True):
    """A question was not answered in time."""

    question_id: str


class TimedOut(msgspec.Struct, frozen=True):
    """A turn has used up its time."""

    ticket: str


class Unheard(msgspec.Struct, frozen=True):
    """The engine refused to interrupt a turn; it is time to try again."""

    turn_id: str


class GraceOver(msgspec.Struct, frozen=True):
    """An interrupted turn has not ended in time."""


class Lost(msgspec.Struct, frozen=True):
    """The engine's process is gone; its turns have ended before this."""


class Released(msgspec.Struct, frozen=True):
    """The engine has released the thread, or failed to in time."""


class Tick(msgspec.Struct, frozen=True):
    """No other letter waits: the next turn may start."""


Letter: TypeAlias = (
    Say
    | Cancel
    | CancelAll
    | Steer
    | Close
    | Answered
    | Begun
    | Refused
    | Ended
    | Opened
    | Gone
    | Expired
    | TimedOut
    | Unheard
    | GraceOver
    | Lost
    | Released
    | Tick
)


# ── effects ────────────────────────────────────────────────────────────────


class Start(msgspec.Struct, frozen=True):
    """Start the ticket's turn at the engine."""

    ticket: str


class Interrupt(msgspec.Struct, frozen=True):
    """Tell the engine to stop a turn."""

    turn_id: str


class SteerNow(msgspec.Struct, frozen=True):
    """Send the ticket's input to the running turn."""

    ticket: str
    turn_id: str


class Settle(msgspec.Struct, frozen=True):
    """The one answer to a ticket. `stop` says why a turn ended early."""

    ticket: str
    outcome: Outcome
    stop: Stop | None = None


class Decline(msgspec.Struct, frozen=True):
    """Answer a question with no, by rule."""

    question_id: str
    ends_turn: bool = False
    """With the no that also ends the turn, where the question offers one: else the turn goes on until
    an interrupt reaches the engine."""


class Deliver(msgspec.Struct, frozen=True):
    """Hand the answer that came with this ticket to the engine."""

    question_id: str
    ticket: str


class RunClock(msgspec.Struct, frozen=True):
    """Run the time limit of this ticket's turn; without a ticket, stop it."""

    ticket: str | None


class WatchQuestion(msgspec.Struct, frozen=True):
    """Start the time limit of a question."""

    question_id: str


class ForgetQuestion(msgspec.Struct, frozen=True):
    """Stop the time limit of a question."""

    question_id: str


class StartGrace(msgspec.Struct, frozen=True):
    """Start the time in which an interrupted turn must end."""


class StopGrace(msgspec.Struct, frozen=True):
    """The interrupted turn has ended."""


class Release(msgspec.Struct, frozen=True):
    """Tell the engine to release the thread."""


Effect: TypeAlias = (
    Start
    | Interrupt
    | SteerNow
    | Settle
    | Decline
    | Deliver
    | RunClock
    | WatchQuestion
    | ForgetQuestion
    | StartGrace
    | StopGrace
    | Release
)
