"""The state of one conversation as values: turns that run, messages that wait, open questions, cut turns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from laneway.core.model import Question
from laneway.doors.chat.messages import Place, ReplyTarget, Sender
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.routing import QuestionFacts, RoutingFacts

MAX_CUT = 20
"""Turns that were cut and can be continued, the latest; older ones are found in the store."""


class TakenInput(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a person, as stored."""

    input_id: int
    place: Place
    message_id: str
    sender: Sender
    at: float
    """When it was taken, in seconds since 1970."""
    text: str = ""
    images: tuple[Path, ...] = ()
    reply: ReplyTarget | None = None
    origin: str = ""
    is_shown: bool = False
    """Whether it is among the outputs already, from before a restart."""


class PlannedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A message, and the turn that it is to become."""

    taken: TakenInput
    lane: str
    text: str
    images: tuple[Path, ...] = ()
    command: str = ""
    with_inputs: tuple[int, ...] = ()
    """Messages with images that came before and go along."""
    is_urgent: bool = False
    """Whether it goes before those that were told to wait."""

    @property
    def input_ids(self) -> tuple[int, ...]:
        return (*self.with_inputs, self.taken.input_id)


class ChatTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of a lane that was begun and has not ended."""

    ticket: str
    lane: str
    plan: PlannedTurn | None = None
    """None for a turn that the lane began by itself, or that was delegated."""
    turn_id: str | None = None
    """The lane's own, once it has told."""
    caller: str | None = None
    """Of a delegated turn: the caller's ticket …"""
    caller_lane: str | None = None
    call_id: str = ""
    """… and what its result is told under."""
    task: str = ""
    has_banner: bool = False
    is_accepted: bool = False
    """Whether the engine has recorded its input."""
    stopped_by: str = ""
    """Set once it is being interrupted."""
    steered: tuple[int, ...] = ()
    """Messages that went into it, by the ids of their inputs."""

    @property
    def asked_by(self) -> str:
        return "" if self.plan is None else self.plan.taken.sender.user_id


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    lane: str
    ticket: str
    question: Question
    asked_at: float
    for_owners: bool
    asked_by: str
    values: dict[str, Any] = {}
    """Of several fields, those that were answered."""
    is_answered: bool = False
    """Whether an answer was given to the lane, which has not withdrawn it yet."""

    @property
    def facts(self) -> QuestionFacts:
        return QuestionFacts(
            number=self.number,
            lane=self.lane,
            asked_at=self.asked_at,
            for_owners=self.for_owners,
            asked_by=self.asked_by,
        )


class KeptImage(msgspec.Struct, frozen=True):
    """A message of images alone, which waits for its sender's next words."""

    taken: TakenInput
    images: tuple[Path, ...]


class CutTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that was stopped before its end, or a message that was not acted upon: it can be continued."""

    input_id: int
    lane: str
    """Empty for a message that was not acted upon."""
    text: str
    images: tuple[Path, ...] = ()
    command: str = ""
    is_accepted: bool = False
    origin: str = ""
    """Whose words they are, if not the sender's."""


class ConversationData(msgspec.Struct, frozen=True, kw_only=True):
    options: ChatOptions
    lanes: tuple[str, ...]
    default_lane: str
    deaf: frozenset[str] = frozenset()
    """Lanes that cannot be steered …"""
    blind: frozenset[str] = frozenset()
    """… and those that take no images."""
    turns: tuple[ChatTurn, ...] = ()
    """The innermost is the last."""
    queue: tuple[PlannedTurn, ...] = ()
    steering: tuple[PlannedTurn, ...] = ()
    """Words on their way into a turn."""
    questions: tuple[OpenQuestion, ...] = ()
    kept: tuple[KeptImage, ...] = ()
    cut: tuple[CutTurn, ...] = ()
    declines: bool = False
    """Whether every question is declined at once, because nobody can answer."""
    is_quitting: bool = False

    @property
    def active(self) -> ChatTurn | None:
        return self.turns[-1] if self.turns else None

    @property
    def open_questions(self) -> tuple[OpenQuestion, ...]:
        return tuple(each for each in self.questions if not each.is_answered)

    def turn(self, ticket: str) -> ChatTurn | None:
        return next((each for each in self.turns if each.ticket == ticket), None)

    def turn_of(self, lane: str, turn_id: str) -> ChatTurn | None:
        return next((each for each in self.turns if (each.lane, each.turn_id) == (lane, turn_id)), None)

    def facts(self, engine_commands: Mapping[str, tuple[str, ...]]) -> RoutingFacts:
        return RoutingFacts(
            lanes=self.lanes,
            default_lane=self.default_lane,
            working=tuple(each.lane for each in self.turns),
            questions=tuple(each.facts for each in self.open_questions),
            engine_commands=engine_commands,
        )
