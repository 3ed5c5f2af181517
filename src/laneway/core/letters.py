"""What goes into the rules of a session and what comes out: state, letters, effects, as values.

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
    """The turn that a ticket of ours runs; without a `turn_id` the engine has not begun it yet."""

    ticket: str
    kind: Kind
    turn_id: str | None = None
    stop: Stop | None = None


class Closing(msgspec.Struct, frozen=True):
    waiters: tuple[str, ...]
    last: str | None
    """A turn to run before the end (a summary), once nothing else runs."""
    releasing: bool = False


class State(msgspec.Struct, frozen=True):
    live: Live | None = None
    foreign: str | None = None
    """A turn that we did not ask for and must not steer."""
    clients: tuple[str, ...] = ()
    mail: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    closing: Closing | None = None
    is_closed: bool = False
    is_stuck: bool = False
    """A turn was told to stop and never ended: nothing can be started behind it."""

    @property
    def status(self) -> Literal["idle", "busy", "closed"]:
        if self.is_closed:
            return "closed"
        return "busy" if self.live or self.foreign or self.closing else "idle"


# ── letters ────────────────────────────────────────────────────────────────


class Say(msgspec.Struct, frozen=True):
    ticket: str
    kind: Kind = "client"


class Cancel(msgspec.Struct, frozen=True):
    ticket: str
    why: Stop = "cancel"


class CancelAll(msgspec.Struct, frozen=True):
    """Stop the running turn, whoever asked for it, and forget the waiting client turns."""


class Steer(msgspec.Struct, frozen=True):
    ticket: str


class Close(msgspec.Struct, frozen=True):
    ticket: str
    last: str | None = None


class Answered(msgspec.Struct, frozen=True):
    ticket: str
    question_id: str


class Begun(msgspec.Struct, frozen=True):
    turn_id: str
    ticket: str | None


class Refused(msgspec.Struct, frozen=True):
    """The engine would not, or could not, begin the ticket's turn."""

    ticket: str


class Ended(msgspec.Struct, frozen=True):
    turn_id: str


class Opened(msgspec.Struct, frozen=True):
    question_id: str


class Gone(msgspec.Struct, frozen=True):
    question_id: str


class Expired(msgspec.Struct, frozen=True):
    question_id: str


class TimedOut(msgspec.Struct, frozen=True):
    ticket: str


class Unheard(msgspec.Struct, frozen=True):
    """The engine would not stop a turn, and some time has passed."""

    turn_id: str


class GraceOver(msgspec.Struct, frozen=True):
    """The time is up in which a stopped turn should have ended."""


class Lost(msgspec.Struct, frozen=True):
    """The engine's process is gone; the turns it ran have been ended before this."""


class Released(msgspec.Struct, frozen=True):
    pass


class Tick(msgspec.Struct, frozen=True):
    pass


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
    ticket: str


class Interrupt(msgspec.Struct, frozen=True):
    turn_id: str


class SteerNow(msgspec.Struct, frozen=True):
    ticket: str
    turn_id: str


class Settle(msgspec.Struct, frozen=True):
    """The one answer to a ticket. `stop` tells who ended a turn early."""

    ticket: str
    outcome: Outcome
    stop: Stop | None = None


class Decline(msgspec.Struct, frozen=True):
    question_id: str


class Deliver(msgspec.Struct, frozen=True):
    """Hand the answer that came with this ticket to the engine."""

    question_id: str
    ticket: str


class RunClock(msgspec.Struct, frozen=True):
    """The ticket's time runs (again); without a ticket nobody's does."""

    ticket: str | None


class WatchQuestion(msgspec.Struct, frozen=True):
    question_id: str


class ForgetQuestion(msgspec.Struct, frozen=True):
    question_id: str


class StartGrace(msgspec.Struct, frozen=True):
    pass


class StopGrace(msgspec.Struct, frozen=True):
    pass


class Release(msgspec.Struct, frozen=True):
    pass


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
