"""Letters (inputs) and effects (outputs) of a conversation's rules, as values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from laneway.core.conversations import InputState
from laneway.core.model import Answer, Failure, Question, Status, Tokens
from laneway.doors.chat.conversation_state import CutTurn, TakenInput
from laneway.doors.chat.messages import Place
from laneway.doors.chat.options import Busy
from laneway.doors.chat.outputs import AnyOutput

# ── letters ────────────────────────────────────────────────────────────────


class InputTaken(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A message. Those of a restart wait for each other, whatever the setting."""

    taken: TakenInput
    busy: Busy | None = None
    engine_commands: Mapping[str, tuple[str, ...]] = {}


class CutFound(msgspec.Struct, frozen=True, tag=True):
    """A turn that was cut before a restart, or input that is too old to be run by itself."""

    cut: CutTurn


class LaneStarted(msgspec.Struct, frozen=True, tag=True):
    """A turn has begun in its lane; without a ticket the lane has begun it by itself."""

    lane: str
    turn_id: str
    ticket: str | None


class InputAccepted(msgspec.Struct, frozen=True, tag=True):
    lane: str
    ticket: str


class LaneEnded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A turn is over. Named by its ticket where it never began."""

    lane: str
    ticket: str = ""
    turn_id: str = ""
    status: Status
    text: str = ""
    failure: Failure | None = None
    diff: str = ""
    tokens: Tokens | None = None
    seconds: float = 0.0


class SteerEnded(msgspec.Struct, frozen=True, tag=True):
    input_id: int
    is_taken: bool


class LaneAsked(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    lane: str
    number: int
    question: Question
    at: float


class QuestionWithdrawn(msgspec.Struct, frozen=True, tag=True):
    lane: str
    question_id: str
    is_declined: bool = False


class QuestionAnswered(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """By a button. Words that answer come as a message."""

    number: int
    answer: Answer
    by: str
    text: str


class QuestionExpired(msgspec.Struct, frozen=True, tag=True):
    number: int


class NobodyAnswers(msgspec.Struct, frozen=True, tag=True):
    """All questions are declined from now on."""


class StopLate(msgspec.Struct, frozen=True, tag=True):
    """A turn that was interrupted has not ended in time."""

    ticket: str


class SilenceReached(msgspec.Struct, frozen=True, tag=True):
    """A turn has told nothing for this long."""

    ticket: str
    seconds: float
    is_over: bool
    """Whether it is to be interrupted."""


class DelegationAsked(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    call_id: str
    caller_lane: str
    lane: str
    task: str


class DelegationCancelled(msgspec.Struct, frozen=True, tag=True):
    call_id: str


class ImageExpired(msgspec.Struct, frozen=True, tag=True):
    input_id: int


class ControlDone(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A command that was carried out outside, or why it was not."""

    taken: TakenInput
    text: str = ""
    is_refused: bool = False


class LeadChosen(msgspec.Struct, frozen=True, tag=True):
    lane: str


class LaneSeen(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a lane can do is known."""

    lane: str
    steers: bool
    takes_images: bool


class QuitAsked(msgspec.Struct, frozen=True, tag=True):
    """Every lane is to be stopped, and nothing is to be begun."""

    by: str = "quit"


ChatLetter: TypeAlias = (
    InputTaken
    | CutFound
    | LaneStarted
    | InputAccepted
    | LaneEnded
    | SteerEnded
    | LaneAsked
    | QuestionWithdrawn
    | QuestionAnswered
    | QuestionExpired
    | NobodyAnswers
    | StopLate
    | SilenceReached
    | DelegationAsked
    | DelegationCancelled
    | ImageExpired
    | ControlDone
    | LeadChosen
    | LaneSeen
    | QuitAsked
)

# ── effects ────────────────────────────────────────────────────────────────


class ShowOutput(msgspec.Struct, frozen=True, tag=True):
    output: AnyOutput


class BeginTurn(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Note the inputs as begun, open the lane, begin the turn with what the lane was not told yet."""

    ticket: str
    lane: str
    task: str
    text: str
    images: tuple[Path, ...] = ()
    command: str = ""
    input_ids: tuple[int, ...] = ()


class SteerTurn(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    input_id: int
    lane: str
    ticket: str
    """Of the words, not of the turn."""
    turn_ticket: str
    text: str
    images: tuple[Path, ...] = ()


class InterruptLane(msgspec.Struct, frozen=True, tag=True):
    lane: str
    ticket: str


class AbandonLane(msgspec.Struct, frozen=True, tag=True):
    """Close the lane and forget it; nothing that it tells counts any more."""

    lane: str


class AnswerLane(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    lane: str
    ticket: str
    question: Question
    answer: Answer


class MarkInput(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    input_id: int
    state: InputState
    lane: str = ""
    ticket: str = ""


class CloseQuestion(msgspec.Struct, frozen=True, tag=True):
    number: int


class HandBackTurn(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Keep for these lanes what the turn has done."""

    ticket: str
    lane: str
    task: str
    for_lanes: tuple[str, ...]
    ended: LaneEnded
    call_id: str = ""
    """Of a delegated turn: whose result it is."""


class DropHandBacks(msgspec.Struct, frozen=True, tag=True):
    ticket: str


class RefuseDelegation(msgspec.Struct, frozen=True, tag=True):
    call_id: str
    text: str


class SetTimer(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    name: str
    seconds: float
    letter: StopLate | QuestionExpired | ImageExpired


class DropTimer(msgspec.Struct, frozen=True, tag=True):
    name: str


class RunControl(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A command that needs more than this conversation's state: the store, other conversations, a file."""

    name: str
    arguments: str
    taken: TakenInput


class KeepDefault(msgspec.Struct, frozen=True, tag=True):
    """Store the default lane."""

    lane: str


class TellPlace(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Answer a command with a text that is composed from what holds now."""

    what: Literal["help", "status", "lanes", "lane", "usage", "unknown"]
    place: Place
    subject: str = ""


ChatEffect: TypeAlias = (
    ShowOutput
    | BeginTurn
    | SteerTurn
    | InterruptLane
    | AbandonLane
    | AnswerLane
    | MarkInput
    | CloseQuestion
    | HandBackTurn
    | DropHandBacks
    | RefuseDelegation
    | SetTimer
    | DropTimer
    | RunControl
    | KeepDefault
    | TellPlace
)
