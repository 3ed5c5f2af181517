"""The turns of one conversation on their lanes: begins, steers, interrupts, and hands back what they did.

Carries out the effects that concern lanes, and makes outputs and letters of what lanes tell. Used by
`Conversation` alone; what is to happen is decided by `turn_rules`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from laneway.base.errors import LanewayError, UsageError
from laneway.core.background import TaskSet
from laneway.core.conversations import ConversationRecord
from laneway.core.model import (
    Accepted,
    Asked,
    EngineGone,
    Event,
    Failure,
    SettingsChanged,
    ThreadKnown,
    TurnDone,
    TurnStarted,
    Withdrawn,
)
from laneway.core.ports import Clock
from laneway.doors.chat.conversation_letters import (
    AbandonLane,
    AnswerLane,
    BeginTurn,
    ChatLetter,
    HandBackTurn,
    InputAccepted,
    InterruptLane,
    LaneEnded,
    LaneSeen,
    LaneStarted,
    QuestionWithdrawn,
    RefuseDelegation,
    SteerEnded,
    SteerTurn,
)
from laneway.doors.chat.conversation_state import ConversationData
from laneway.doors.chat.delegation_calls import DelegationCalls
from laneway.doors.chat.engine_end_reports import EngineEnds
from laneway.doors.chat.engine_words import failure_of, sentence
from laneway.doors.chat.hand_back import TurnDigest, compose, report, secrets_of
from laneway.doors.chat.hosts import ConversationHost
from laneway.doors.chat.lane_slots import LaneSlots
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.ordered_store import OrderedStore
from laneway.doors.chat.outputs import AnyOutput, Told
from laneway.doors.chat.ports import LaneFactory, PartialText
from laneway.doors.chat.silence import SilenceWatch
from laneway.doors.chat.turn_outputs import TurnOutputs, told_of
from laneway.doors.chat.turn_rules import own_ticket
from laneway.lanes.contract import LaneTurn

log = logging.getLogger(__name__)

NOT_DELEGATED_TO = frozenset({"rehearse"})
"""Lanes that other lanes' models are not told of."""

TurnEffect: TypeAlias = (
    BeginTurn | SteerTurn | InterruptLane | AbandonLane | AnswerLane | HandBackTurn | RefuseDelegation
)


class ConversationParts(msgspec.Struct, frozen=True):
    """What all conversations of a process share."""

    factory: LaneFactory
    store: OrderedStore
    options: ChatOptions
    clock: Clock
    wall: Callable[[], float]


class TurnsOwner(Protocol):
    """The conversation."""

    record: ConversationRecord

    def post(self, letter: ChatLetter) -> None: ...
    def hear(self, lane: str, event: Event) -> None: ...
    def keep(self, record: ConversationRecord) -> None: ...
    def tell(self, output: AnyOutput) -> None: ...


class LaneUse(msgspec.Struct, frozen=True):
    """What a lane's own conversation has used so far."""

    tokens: int = 0
    window: int | None = None
    model: str = ""


class ConversationTurns:
    def __init__(self, owner: TurnsOwner, parts: ConversationParts, tasks: TaskSet) -> None:
        self._owner = owner
        self._parts = parts
        self._store = parts.store
        self._tasks = tasks
        self.lanes = LaneSlots(parts.factory, Path(owner.record.cwd), self._make_host, tasks)
        self._running: dict[str, TurnOutputs] = {}
        """By ticket."""
        self._tickets: dict[tuple[str, str], str] = {}
        """By lane and the lane's own id of the turn."""
        self._starting: dict[str, asyncio.Task[None]] = {}
        self._watches: dict[str, SilenceWatch] = {}
        self._steering = asyncio.Lock()
        self._calls = DelegationCalls(owner.post)
        self._secrets: set[str] = set()
        self._uses: dict[str, LaneUse] = {}
        self._engine_ends = EngineEnds()

    # ── effects ────────────────────────────────────────────────────────────

    def carry_out(self, effect: TurnEffect) -> None:
        match effect:
            case BeginTurn():
                self._begin(effect)
            case SteerTurn():
                self._tasks.spawn(self._steer(effect), f"words for {effect.lane}")
            case InterruptLane(lane=lane, ticket=ticket):
                self._interrupt(lane, ticket)
            case AbandonLane(lane=lane):
                self._abandon(lane)
            case AnswerLane():
                self._answer(effect)
            case HandBackTurn():
                self._hand_back(effect)
            case RefuseDelegation(call_id=call_id, text=text):
                self._calls.settle(call_id, UsageError(text))
            case _:
                assert_never(effect)

    def _begin(self, effect: BeginTurn) -> None:
        digest = TurnDigest(self._owner.record.cwd, self._secrets)
        self._engine_ends.begin(effect.lane)
        self._running[effect.ticket] = TurnOutputs(
            effect.lane, effect.ticket, effect.task, digest, self._parts.wall()
        )
        self._watches[effect.ticket] = SilenceWatch(
            effect.ticket, self._parts.options, self._parts.clock, self._owner.post
        )
        task = self._starting[effect.ticket] = self._tasks.spawn(
            self._start(effect), f"beginning a turn of {effect.lane}"
        )
        task.add_done_callback(lambda done: self._on_start_over(effect, done))

    async def _start(self, effect: BeginTurn) -> None:
        port, record = self._store.port, self._owner.record
        for input_id in effect.input_ids:
            await self._store.call(self._mark_begun, input_id, effect.lane, effect.ticket)
        lane = await self.lanes.open(effect.lane, record.lane_threads.get(effect.lane))
        abilities = lane.abilities
        self._owner.post(
            LaneSeen(lane=effect.lane, steers=abilities.steers, takes_images=abilities.takes_images)
        )
        if effect.images and not abilities.takes_images:
            raise UsageError(f"{effect.lane} takes no images: nothing was sent to it.")
        # A command need not be a prompt, which is what carries them: they wait for the next one.
        told = (
            []
            if effect.command
            else await self._store.call(port.hand_backs, record.conversation_id, effect.lane)
        )
        if told:
            ids = [each.hand_back_id for each in told]
            await self._store.call(port.carry_hand_backs, ids, effect.ticket)
        lane.begin(
            LaneTurn(
                ticket=effect.ticket,
                text=effect.text,
                images=effect.images,
                context=compose([each.block for each in told]),
                command=effect.command,
            )
        )

    def _mark_begun(self, input_id: int, lane: str, ticket: str) -> None:
        self._store.port.mark_input(input_id, "begun", lane=lane, ticket=ticket)

    def _on_start_over(self, effect: BeginTurn, task: asyncio.Task[None]) -> None:
        """A turn that never began has ended, too."""
        self._starting.pop(effect.ticket, None)
        if task.cancelled():
            self._owner.post(LaneEnded(lane=effect.lane, ticket=effect.ticket, status="interrupted"))
            return
        error = task.exception()
        if error is not None:
            failure = _start_failure(effect.lane, error)
            self._owner.post(
                LaneEnded(lane=effect.lane, ticket=effect.ticket, status="failed", failure=failure)
            )

    async def _steer(self, effect: SteerTurn) -> None:
        """One after the other, so that words keep their order."""
        is_taken = False
        try:
            async with self._steering:
                starting = self._starting.get(effect.turn_ticket)
                if starting is not None:
                    await asyncio.wait((starting,))
                lane = self.lanes.opened(effect.lane)
                if lane is not None and effect.turn_ticket in self._running:
                    await self._store.call(self._mark_begun, effect.input_id, effect.lane, effect.turn_ticket)
                    turn = LaneTurn(ticket=effect.ticket, text=effect.text, images=effect.images)
                    is_taken = await lane.steer(turn)
        except LanewayError as problem:
            log.info("words for %s were not taken: %s", effect.lane, problem)
        finally:
            self._owner.post(SteerEnded(effect.input_id, is_taken))

    def _interrupt(self, name: str, ticket: str) -> None:
        starting, lane = self._starting.get(ticket), self.lanes.opened(name)
        if starting is not None:
            starting.cancel()
        elif lane is not None:
            self._tasks.spawn(lane.interrupt(), f"interrupting {name}")

    def _abandon(self, name: str) -> None:
        for ticket, turn in list(self._running.items()):
            starting = self._starting.get(ticket)
            if turn.lane == name and starting is not None:
                starting.cancel()
        self._keep_thread(name)
        self.lanes.abandon(name)

    def _answer(self, effect: AnswerLane) -> None:
        secrets = secrets_of(effect.question, effect.answer)
        self._secrets |= secrets
        for turn in self._running.values():
            turn.digest.hide(secrets)
        lane = self.lanes.opened(effect.lane)
        if lane is not None:
            lane.answer(effect.question.question_id, effect.answer)

    def _hand_back(self, effect: HandBackTurn) -> None:
        turn, ended = self._running.pop(effect.ticket, None), effect.ended
        self._tickets = {key: ticket for key, ticket in self._tickets.items() if ticket != effect.ticket}
        watch = self._watches.pop(effect.ticket, None)
        if watch is not None:
            watch.end()
        for output in () if turn is None else turn.close_texts():
            self._owner.tell(output)  # of a lane that was given up: it has told no end
        digest = TurnDigest(self._owner.record.cwd, self._secrets) if turn is None else turn.digest
        done = TurnDone(turn_id=ended.turn_id, status=ended.status, text=ended.text, failure=ended.failure)
        block = digest.block(effect.lane, effect.task, done)
        self._store.soon(
            self._store.port.add_hand_back,
            self._owner.record.conversation_id,
            effect.for_lanes,
            self._parts.wall(),
            block,
        )
        if effect.call_id:
            self._calls.settle(effect.call_id, report(block))

    # ── what lanes tell ────────────────────────────────────────────────────

    def ticket_of(self, lane: str, turn_id: str | None) -> str:
        """Of a turn that runs; empty if that is not known."""
        return self._tickets.get((lane, turn_id or ""), "")

    def outputs_of(self, lane: str, event: Event) -> Iterable[AnyOutput]:
        """What is shown of an event, before the conversation decides anything about it."""
        turn = self._turn_of(lane, event)
        match event:
            case TurnStarted() | Withdrawn() | ThreadKnown():
                return ()
            case SettingsChanged(settings=settings):
                self._note_model(lane, settings)
                return ()
            case EngineGone(how=how):
                is_working = any(each.lane == lane for each in self._running.values())
                if self._engine_ends.is_told_by_turn(lane, is_working=is_working):
                    return ()
                text = f"{lane} ended unexpectedly: {sentence(how)} The next /{lane} starts it again."
                return (Told(text=text, level="warning", lane=lane),)
            case TurnDone():
                return () if turn is None else turn.close(event)
            case Asked():
                return () if turn is None else turn.close_texts()
            case _ if turn is None:
                return told_of(lane, event)
        outputs = turn.hear(event)
        watch = self._watches.get(turn.ticket)
        if watch is not None:
            watch.hear(has_command=bool(turn.running_commands))
        use = self.use_of(lane)
        self._uses[lane] = LaneUse(
            turn.thread_tokens or use.tokens, turn.window or use.window, turn.model or use.model
        )
        return outputs

    def _note_model(self, lane: str, settings: object) -> None:
        model = settings.get("model") if isinstance(settings, dict) else None
        if isinstance(model, str) and model:
            self._uses[lane] = replace(self.use_of(lane), model=model)

    def letters_of(self, lane: str, event: Event) -> Iterable[ChatLetter]:
        """What the conversation decides about; nothing for most events."""
        match event:
            case TurnStarted(turn_id=turn_id, ticket=ticket):
                self._note_start(lane, turn_id, ticket)
                return (LaneStarted(lane, turn_id, ticket),)
            case Accepted(turn_id=turn_id, client_id=client_id):
                self._keep_thread(lane)
                ticket = client_id or self.ticket_of(lane, turn_id)
                return (InputAccepted(lane, ticket),) if ticket else ()
            case Withdrawn(question_id=question_id, is_declined=is_declined):
                return (QuestionWithdrawn(lane, question_id, is_declined),)
            case TurnDone(failure=failure):
                self._engine_ends.turn_ended(lane, failure)
                return (self._ended(lane, event),)
            case ThreadKnown():
                self._keep_thread(lane)
                return ()
            case _:
                return ()

    def _note_start(self, lane: str, turn_id: str, ticket: str | None) -> None:
        ticket = ticket or own_ticket(lane, turn_id)
        self._tickets[lane, turn_id] = ticket
        if ticket not in self._running:
            digest = TurnDigest(self._owner.record.cwd, self._secrets)
            self._running[ticket] = TurnOutputs(lane, ticket, "", digest, self._parts.wall())
        if ticket not in self._watches:
            self._watches[ticket] = SilenceWatch(
                ticket, self._parts.options, self._parts.clock, self._owner.post
            )

    def _ended(self, lane: str, done: TurnDone) -> LaneEnded:
        self._keep_thread(lane)
        turn = self._running.get(self.ticket_of(lane, done.turn_id))
        return LaneEnded(
            lane=lane,
            turn_id=done.turn_id,
            status=done.status,
            text=done.text,
            failure=done.failure,
            diff="" if turn is None else turn.diff,
            tokens=None if turn is None else turn.tokens,
            seconds=0.0 if turn is None else max(0.0, self._parts.wall() - turn.began_at),
        )

    def _turn_of(self, lane: str, event: Event) -> TurnOutputs | None:
        """The turn that an event is part of; one of a subagent is part of the lane's latest."""
        turn_id = getattr(event, "turn_id", None)
        if turn_id is None and isinstance(event, Asked):
            turn_id = event.question.turn_id
        ticket = self._tickets.get((lane, turn_id or ""))
        if ticket is not None:
            return self._running.get(ticket)
        if hasattr(event, "inner"):
            return next((each for each in reversed(self._running.values()) if each.lane == lane), None)
        return None

    def _keep_thread(self, name: str) -> None:
        lane, record = self.lanes.opened(name), self._owner.record
        thread_id = None if lane is None else lane.thread_id
        if thread_id is not None and record.lane_threads.get(name) != thread_id:
            threads = {**record.lane_threads, name: thread_id}
            self._owner.keep(replace(record, lane_threads=threads))

    # ── what holds now ─────────────────────────────────────────────────────

    def watch(self, state: ConversationData) -> None:
        """Silence does not count while a question is open, or while a lane works for the turn."""
        for ticket, watch in self._watches.items():
            is_asking = any(each.ticket == ticket for each in state.open_questions)
            is_waiting = any(each.caller == ticket for each in state.turns)
            watch.pause(is_paused=is_asking or is_waiting)

    def use_of(self, lane: str) -> LaneUse:
        return self._uses.get(lane, LaneUse())

    def began_at(self, ticket: str) -> float:
        turn = self._running.get(ticket)
        return 0.0 if turn is None else turn.began_at

    def partial_texts(self) -> tuple[PartialText, ...]:
        return tuple(text for turn in self._running.values() for text in turn.partial_texts)

    async def close(self) -> None:
        for task in self._starting.values():
            task.cancel()
        await self.lanes.close()
        self._calls.close()

    # ── delegation ─────────────────────────────────────────────────────────

    def _make_host(self, lane: str) -> ConversationHost:
        return ConversationHost(lane, self._owner.hear, self._delegates, self._calls.call)

    def _delegates(self, lane: str) -> Mapping[str, str]:
        others = [name for name in self.lanes.names if name != lane and name not in NOT_DELEGATED_TO]
        return {name: self.lanes.get(name).description for name in others}


def _start_failure(lane: str, error: BaseException) -> Failure:
    if isinstance(error, LanewayError):
        return failure_of(error, lane, str(error))
    return Failure(kind="other", message=f"{lane} could not be started. The log says why.")
