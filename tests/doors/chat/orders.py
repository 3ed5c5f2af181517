"""Every order in which letters can reach a conversation: a model of its lanes, and a search through it.

`explore` plays the letters of people in their order, and between them whatever the lanes, the timers and the
store could tell at that moment, in every order. It returns all ends that there are, and checks on the way
what must hold in every state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from laneway.core.model import Choice, Question
from laneway.doors.chat.conversation_letters import (
    AbandonLane,
    AnswerLane,
    BeginTurn,
    ChatLetter,
    DelegationAsked,
    DelegationCancelled,
    HandBackTurn,
    InputAccepted,
    InputTaken,
    InterruptLane,
    LaneAsked,
    LaneEnded,
    LaneStarted,
    MarkInput,
    QuestionExpired,
    QuestionWithdrawn,
    RefuseDelegation,
    ShowOutput,
    SteerEnded,
    SteerTurn,
    StopLate,
)
from laneway.doors.chat.conversation_state import ConversationData, TakenInput
from laneway.doors.chat.messages import Place, Sender
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.outputs import InputReceipt
from laneway.doors.chat.step import step

PLACE = Place("terminal", "one")
ANNA = Sender(platform="terminal", user_id="anna", name="Anna", is_owner=True)
LANES = ("claude", "codex")


def starting(**options: Any) -> ConversationData:
    settings = ChatOptions(**{"cwd": Path("/work"), **options})
    return ConversationData(options=settings, lanes=LANES, default_lane="claude")


def said(number: int, text: str, *, at: float = 0.0, **more: Any) -> InputTaken:
    taken = TakenInput(
        input_id=number, place=PLACE, message_id=str(number), sender=ANNA, at=at, text=text, **more
    )
    return InputTaken(taken=taken)


def asked(lane: str, number: int, turn_id: str, at: float = 0.0) -> LaneAsked:
    choices = (
        Choice(choice_id="accept", label="Allow", grants="once"),
        Choice(choice_id="decline", label="Decline", grants="nothing"),
    )
    question = Question(
        question_id=f"q{number}",
        kind="command",
        thread_id="",
        turn_id=turn_id,
        item_id=None,
        message="Run it?",
        choices=choices,
    )
    return LaneAsked(lane=lane, number=number, question=question, at=at)


@dataclass(frozen=True)
class PlayedTurn:
    """What a lane still has to tell of a turn."""

    lane: str
    ticket: str
    phase: str = "begun"
    """Then `started`, then `accepted`."""
    is_interrupted: bool = False
    asks: int = 0
    delegates: int = 0
    waits_for: str = ""
    """The call of a delegation."""
    question: int = 0
    """The number of the one that is open."""

    @property
    def turn_id(self) -> str:
        return f"turn-{self.ticket}"


@dataclass(frozen=True)
class World:
    state: ConversationData
    script: tuple[ChatLetter, ...]
    turns: tuple[PlayedTurn, ...] = ()
    steers: tuple[int, ...] = ()
    pending: tuple[ChatLetter, ...] = ()
    """What can come at any moment: ends of lanes that were given up, withdrawals, cancellations."""
    questions: int = 0
    calls: int = 0
    asks: int = 0
    """That each turn of the default lane still makes …"""
    delegates: int = 0
    """… and turns that it delegates."""
    begun: tuple[int, ...] = ()
    """Inputs that were given to a lane, by a turn or into one."""
    over: tuple[int, ...] = ()
    """Inputs that were marked as over."""
    ended: tuple[str, ...] = ()
    """Tickets of turns that were handed back."""
    answered: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    """Calls that got a result or were refused."""
    receipts: tuple[tuple[int, str], ...] = ()
    stops: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    """Tickets of turns, in the order of their beginning."""


def letters(world: World) -> Iterator[tuple[ChatLetter, World]]:
    """All that can be heard next, each with the world that has told it."""
    if world.script:
        yield world.script[0], replace(world, script=world.script[1:])
    for turn in world.turns:
        yield from _of_turn(world, turn)
    for index, letter in enumerate(world.pending):
        yield letter, replace(world, pending=world.pending[:index] + world.pending[index + 1 :])
    for input_id in world.steers:
        rest = replace(world, steers=tuple(each for each in world.steers if each != input_id))
        yield SteerEnded(input_id, is_taken=False), rest
        yield SteerEnded(input_id, is_taken=True), replace(rest, begun=(*rest.begun, input_id))


def _of_turn(world: World, turn: PlayedTurn) -> Iterator[tuple[ChatLetter, World]]:
    lane, ticket = turn.lane, turn.ticket
    if turn.phase == "begun":
        yield LaneStarted(lane, turn.turn_id, ticket), _with(world, turn, phase="started")
    elif turn.phase == "started":
        yield InputAccepted(lane, ticket), _with(world, turn, phase="accepted")
    elif not turn.question and not turn.waits_for and not turn.is_interrupted:
        yield _end(turn, "completed"), _without(world, turn)
        if turn.asks:
            number = world.questions + 1
            after = _with(world, turn, asks=turn.asks - 1, question=number)
            yield asked(lane, number, turn.turn_id), replace(after, questions=number)
        if turn.delegates:
            call = f"call{world.calls + 1}"
            after = _with(world, turn, delegates=turn.delegates - 1, waits_for=call)
            letter = DelegationAsked(call_id=call, caller_lane=lane, lane="codex", task="help")
            yield letter, replace(after, calls=world.calls + 1)
    if turn.question:
        yield QuestionExpired(turn.question), world
    if turn.is_interrupted:
        yield _end(turn, "interrupted"), _cancelling(_without(world, turn), turn)
        yield StopLate(ticket), world


def _end(turn: PlayedTurn, status: Any) -> LaneEnded:
    if turn.phase == "begun":
        return LaneEnded(lane=turn.lane, ticket=turn.ticket, status=status)
    return LaneEnded(lane=turn.lane, turn_id=turn.turn_id, status=status)


def _with(world: World, turn: PlayedTurn, **changes: Any) -> World:
    turns = tuple(replace(each, **changes) if each is turn else each for each in world.turns)
    return replace(world, turns=turns)


def _without(world: World, turn: PlayedTurn) -> World:
    return replace(world, turns=tuple(each for each in world.turns if each is not turn))


def _cancelling(world: World, turn: PlayedTurn) -> World:
    """A lane that ends while it waits for another one cancels its call."""
    if not turn.waits_for or turn.waits_for in world.results:
        return world
    return replace(world, pending=(*world.pending, DelegationCancelled(turn.waits_for)))


def heard(world: World, letter: ChatLetter) -> World:
    state, effects = step(world.state, letter)
    world = replace(world, state=state)
    for effect in effects:
        world = _carried_out(world, effect)
    check(world)
    return world


def _carried_out(world: World, effect: Any) -> World:
    match effect:
        case BeginTurn(lane=lane, ticket=ticket, input_ids=input_ids):
            is_leading = lane == "claude"
            turn = PlayedTurn(
                lane,
                ticket,
                asks=world.asks if is_leading else 0,
                delegates=world.delegates if is_leading else 0,
            )
            assert all(each.lane != lane for each in world.turns), "a lane has two turns at once"
            return replace(
                world,
                turns=(*world.turns, turn),
                begun=(*world.begun, *input_ids),
                order=(*world.order, ticket),
            )
        case SteerTurn(input_id=input_id):
            return replace(world, steers=(*world.steers, input_id))
        case InterruptLane(lane=lane, ticket=ticket):
            turns = tuple(
                replace(each, is_interrupted=True) if each.ticket == ticket else each for each in world.turns
            )
            return replace(world, turns=turns, stops=(*world.stops, ticket))
        case AbandonLane(lane=lane):
            late = tuple(_end(each, "interrupted") for each in world.turns if each.lane == lane)
            for each in world.turns:
                if each.lane == lane:
                    world = _cancelling(_without(world, each), each)
            return replace(world, pending=(*world.pending, *late))
        case AnswerLane(lane=lane, question=question):
            turns = tuple(
                replace(each, question=0) if each.turn_id == question.turn_id else each
                for each in world.turns
            )
            withdrawn = QuestionWithdrawn(lane, question.question_id)
            return replace(
                world,
                turns=turns,
                answered=(*world.answered, question.question_id),
                pending=(*world.pending, withdrawn),
            )
        case HandBackTurn(ticket=ticket, call_id=call_id):
            world = replace(world, ended=(*world.ended, ticket))
            return _with_result(world, call_id) if call_id else world
        case RefuseDelegation(call_id=call_id):
            return _with_result(world, call_id)
        case MarkInput(input_id=input_id, state="done" | "void"):
            return replace(world, over=(*world.over, input_id))
        case ShowOutput(output=InputReceipt() as receipt):
            return replace(world, receipts=(*world.receipts, (receipt.input_id, receipt.kind)))
        case _:
            return world


def _with_result(world: World, call_id: str) -> World:
    turns = tuple(replace(each, waits_for="") if each.waits_for == call_id else each for each in world.turns)
    return replace(world, turns=turns, results=(*world.results, call_id))


def check(world: World) -> None:
    """What holds in every state."""
    state = world.state
    own = [turn for turn in state.turns if turn.caller is None]
    assert len(own) <= 1, "two lanes work at once"
    assert most(world.begun) <= 1, "an input was given to a lane twice"
    assert most(world.ended) <= 1, "a turn has ended twice"
    assert most(world.answered) <= 1, "a question was answered twice"
    assert most(world.stops) <= 1, "a turn was interrupted twice"
    assert most(world.results) <= 1, "a call has two results"
    assert most(world.over) <= 1, "an input was over twice"
    assert not state.queue or state.turns or state.is_quitting, "something waits, and nothing works"


def most(values: tuple[Any, ...]) -> int:
    return max(Counter(values).values(), default=0)


def explore(world: World) -> list[World]:
    """All ends of all orders. The same state is looked at once."""
    seen: set[str] = set()
    ends: dict[str, World] = {}
    todo = [world]
    while todo:
        now = todo.pop()
        found = False
        for letter, told in letters(now):
            found = True
            after = heard(told, letter)
            key = repr(after)
            if key not in seen:
                seen.add(key)
                todo.append(after)
        if not found:
            ends[repr(now)] = now
    return list(ends.values())


def wander(world: World, choose: Callable[[int], int]) -> World:
    """One order, by chance: `choose` picks one of so many."""
    while options := list(letters(world)):
        letter, told = options[choose(len(options))]
        world = heard(told, letter)
    return world


def is_settled(world: World) -> bool:
    state = world.state
    return not (state.turns or state.queue or state.steering or state.open_questions)
