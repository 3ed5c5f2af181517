"""One conversation as an actor: hears messages, lanes and timers, and carries out what `step` decides.

The only writer of its state. Everything that it hears is handled in order of arrival; what takes time (a
lane's start, the store) runs beside it and comes back as a letter. Made and closed by the service.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeAlias, assert_never

import msgspec
from msgspec.structs import replace

from laneway.base.plain import label
from laneway.core.background import TaskSet
from laneway.core.conversations import ConversationRecord
from laneway.core.model import Asked, Event
from laneway.doors.chat import control_texts
from laneway.doors.chat.conversation_letters import (
    AbandonLane,
    AnswerLane,
    BeginTurn,
    ChatEffect,
    ChatLetter,
    CloseQuestion,
    DropHandBacks,
    DropTimer,
    HandBackTurn,
    InputTaken,
    InterruptLane,
    KeepDefault,
    LaneAsked,
    LaneEnded,
    LeadChosen,
    MarkInput,
    QuitAsked,
    RefuseDelegation,
    RunControl,
    SetTimer,
    ShowOutput,
    SteerTurn,
    TellPlace,
)
from laneway.doors.chat.conversation_restore import restore
from laneway.doors.chat.conversation_state import ConversationData
from laneway.doors.chat.conversation_turns import ConversationParts, ConversationTurns
from laneway.doors.chat.default_lane import choose_lead
from laneway.doors.chat.output_log import OutputLog
from laneway.doors.chat.outputs import (
    AnyOutput,
    QuestionShown,
    Shown,
    StatusNow,
    Told,
)
from laneway.doors.chat.ports import ChatCommand, ChatState
from laneway.doors.chat.question_words import question_buttons
from laneway.doors.chat.routing import CONTROLS, command_of, engine_lane
from laneway.doors.chat.step import step

log = logging.getLogger(__name__)

RunControlHandler: TypeAlias = Callable[["Conversation", RunControl], Coroutine[Any, Any, None]]
MAX_TITLE = 80


class LaneHeard(msgspec.Struct, frozen=True):
    """An event of a lane, before it is translated."""

    lane: str
    event: Event


class Conversation:
    def __init__(
        self,
        record: ConversationRecord,
        last_number: int,
        parts: ConversationParts,
        deliver: Callable[[Shown], None],
        run_control: RunControlHandler,
    ) -> None:
        self.record = record
        self._parts = parts
        self._run_control_outside = run_control
        self._store = parts.store
        self.tasks = TaskSet()
        self.outputs = OutputLog(
            record.conversation_id, parts.store, last_number, parts.wall, deliver, self.tasks
        )
        self.state = ConversationData(
            options=parts.options,
            lanes=parts.factory.names,
            default_lane=record.default_lane,
            declines=parts.options.declines,
        )
        self.turns = ConversationTurns(self, parts, self.tasks)
        self._inbox: deque[ChatLetter | LaneHeard] = deque()
        self._has_letters = asyncio.Event()
        self._timers: dict[str, Callable[[], None]] = {}
        self._controls: set[asyncio.Task[None]] = set()
        self._settled: asyncio.Condition = asyncio.Condition()
        self._status: StatusNow | None = None
        self._commands: dict[str, tuple[str, ...]] | None = None
        self._lead: asyncio.Task[None] | None = None
        self._is_closed = False
        self.answering: set[int] = set()

    @property
    def conversation_id(self) -> str:
        return self.record.conversation_id

    @property
    def cwd(self) -> Path:
        return Path(self.record.cwd)

    # ── life ───────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Go on where the last process has left it."""
        await restore(self, self._parts)
        if not self.record.title:
            self._lead = self.tasks.spawn(self._choose_lead(), "choosing the lane that leads")
        self.tasks.spawn(self._run(), f"the conversation {self.conversation_id}")

    def post(self, letter: ChatLetter) -> None:
        self._inbox.append(letter)
        self._has_letters.set()

    def hear(self, lane: str, event: Event) -> None:
        self._inbox.append(LaneHeard(lane, event))
        self._has_letters.set()

    async def aclose(self, by: str) -> None:
        """Close the lanes, hear their last words, store everything."""
        self.post(QuitAsked(by))
        await self.wait_until(lambda: self.state.is_quitting)
        await self.turns.close()
        for turn in self.state.turns:  # whose lane has not told its end
            self.post(LaneEnded(lane=turn.lane, ticket=turn.ticket, status="interrupted"))
        await self.wait_until(lambda: not self.state.turns)
        for cancel in self._timers.values():
            cancel()
        while not self.outputs.is_idle or self._inbox:
            await self._settle()
        self._is_closed = True
        await self.tasks.cancel()
        async with self._settled:
            self._settled.notify_all()

    async def _run(self) -> None:
        while True:
            await self._has_letters.wait()
            self._has_letters.clear()
            while self._inbox:
                try:
                    await self._handle(self._inbox[0])
                except Exception:  # the actor's loop: one bad letter must not end the conversation
                    log.exception("a letter of %s was not handled", self.conversation_id)
                self._inbox.popleft()
            async with self._settled:
                self._settled.notify_all()

    async def _handle(self, letter: ChatLetter | LaneHeard) -> None:
        if isinstance(letter, LaneHeard):
            for output in self.turns.outputs_of(letter.lane, letter.event):
                self.outputs.put(output)
            if isinstance(letter.event, Asked):
                self._decide(await self._numbered(letter.lane, letter.event))
            else:
                for translated in self.turns.letters_of(letter.lane, letter.event):
                    self._decide(translated)
        else:
            if isinstance(letter, InputTaken) and self._lead is not None:
                await asyncio.wait((self._lead,))
                self._lead = None
            self._decide(letter)
        self._show_status()

    def _decide(self, letter: ChatLetter) -> None:
        self.state, effects = step(self.state, letter)
        for effect in effects:
            self._carry_out(effect)
        self.turns.watch(self.state)
        if self.answering:
            self.answering &= {each.number for each in self.state.open_questions}

    async def _choose_lead(self) -> None:
        lane, notice = await choose_lead(self.record.default_lane, self.state.lanes, self.turns.lanes.get)
        if notice:
            self.keep(replace(self.record, default_lane=lane))
            self._decide(LeadChosen(lane))
            self._show_status()
            self.outputs.put(Told(text=notice, level="warning"))

    async def _numbered(self, lane: str, asked: Asked) -> LaneAsked:
        ticket = self.turns.ticket_of(lane, asked.question.turn_id)
        number = await self._store.call(self._store.port.open_question, self.conversation_id, lane, ticket)
        return LaneAsked(lane=lane, number=number, question=asked.question, at=self._parts.wall())

    def _carry_out(self, effect: ChatEffect) -> None:
        store, port = self._store, self._store.port
        match effect:
            case ShowOutput(output=output):
                self.outputs.put(output)
            case MarkInput():
                self.mark(effect)
            case CloseQuestion(number=number):
                store.soon(port.close_question, self.conversation_id, number)
            case DropHandBacks(ticket=ticket):
                store.soon(port.drop_hand_backs, self.conversation_id, ticket)
            case KeepDefault(lane=lane):
                self.keep(replace(self.record, default_lane=lane))
            case SetTimer(name=name, seconds=seconds, letter=letter):
                self._drop_timer(name)
                self._timers[name] = self._parts.clock.after(seconds, lambda: self.post(letter))
            case DropTimer(name=name):
                self._drop_timer(name)
            case RunControl():
                self._run_control(effect)
            case TellPlace():
                self._tell_place(effect)
            case (
                BeginTurn()
                | SteerTurn()
                | InterruptLane()
                | AbandonLane()
                | AnswerLane()
                | HandBackTurn()
                | RefuseDelegation()
            ):
                self.turns.carry_out(effect)
            case _:
                assert_never(effect)

    def mark(self, mark: MarkInput) -> None:
        """What has become of an input; that it is over only once all that was told of it is stored."""

        def write() -> None:
            self._store.port.mark_input(mark.input_id, mark.state, lane=mark.lane, ticket=mark.ticket)

        if mark.state in ("done", "void"):
            self.outputs.then(write)
        else:
            self._store.soon(write)

    def keep(self, record: ConversationRecord) -> None:
        self.record = record
        self._store.soon(self._store.port.put, record)

    def note_use(self, text: str) -> None:
        """Somebody speaks: the conversation is used, and gets its first words as a title."""
        command = command_of(text)
        is_control = command is not None and command[0] in CONTROLS
        title = self.record.title or ("" if is_control else label(" ".join(text.split()), MAX_TITLE))
        self.keep(replace(self.record, used_at=self._parts.wall(), title=title))

    def _drop_timer(self, name: str) -> None:
        cancel = self._timers.pop(name, None)
        if cancel is not None:
            cancel()

    # ── commands ───────────────────────────────────────────────────────────

    def engine_commands(self) -> Mapping[str, tuple[str, ...]]:
        """By lane. The lanes are made for that, not opened."""
        if self._commands is None:
            self._commands = {
                name: tuple(command.name for command in self.turns.lanes.get(name).abilities.commands)
                for name in self.state.lanes
            }
        return self._commands

    def _run_control(self, effect: RunControl) -> None:
        task = self.tasks.spawn(self._run_control_outside(self, effect), f"/{effect.name}")
        self._controls.add(task)
        task.add_done_callback(self._control_done)

    def _control_done(self, task: asyncio.Task[None]) -> None:
        self._controls.discard(task)
        self._has_letters.set()  # whoever waits until nothing is left to do looks again

    def _tell_place(self, effect: TellPlace) -> None:
        text = control_texts.text_for(effect, self.state, self.turns.lanes.get, self._parts.factory.problems)
        self.outputs.put(Told(text=text, only=effect.place))

    # ── what holds now ─────────────────────────────────────────────────────

    def _show_status(self) -> None:
        status = self.status
        if status != self._status:
            self._status = status
            self.outputs.put(status)

    @property
    def status(self) -> StatusNow:
        state, active = self.state, self.state.active
        use = self.turns.use_of(active.lane if active is not None else state.default_lane)
        return StatusNow(
            default_lane=state.default_lane,
            active_lane=None if active is None else active.lane,
            is_waiting=bool(state.open_questions),
            queued=len(state.queue) + len(state.steering),
            model=use.model,
            tokens=use.tokens,
            window=use.window,
            working_since=0.0 if active is None else self.turns.began_at(active.ticket),
        )

    def now(self) -> ChatState:
        return ChatState(
            record=self.record,
            last_number=self.outputs.shown_number,
            status=self.status,
            questions=tuple(
                QuestionShown(
                    number=each.number,
                    lane=each.lane,
                    ticket=each.ticket,
                    question=replace(each.question, params=None),
                    buttons=question_buttons(each.number, each.question),
                    for_owners=each.for_owners,
                    asked_by=each.asked_by,
                )
                for each in self.state.open_questions
            ),
            texts=self.turns.partial_texts(),
        )

    def tell(self, output: AnyOutput) -> None:
        self.outputs.put(output)

    async def wait_ready(self) -> bool:
        """As `Chat.wait_ready`; everything so far has been shown."""
        await self.wait_until(lambda: self._is_quiet() or self._asks())
        await self._wait_stored()
        return bool(self.state.open_questions)

    async def wait_shown(self) -> None:
        """Until everything so far has been heard, and what came of it was shown."""
        await self.wait_until(lambda: True)
        await self._wait_stored()

    async def _wait_stored(self) -> None:
        while not self.outputs.is_idle:
            await self._settle()

    def lane_commands(self) -> list[ChatCommand]:
        """Lanes, and the commands of their engines that go somewhere now."""
        lanes = [self.turns.lanes.get(name) for name in self.state.lanes]
        listed = [ChatCommand(each.name, each.description, each.usage, "lane", each.name) for each in lanes]
        facts = self.state.facts(self.engine_commands())
        taken = {*CONTROLS, *self.state.lanes}
        for lane in lanes:
            for command in lane.abilities.commands:
                if command.name not in taken and engine_lane(command.name, facts) == lane.name:
                    taken.add(command.name)
                    listed.append(
                        ChatCommand(command.name, command.description, kind="engine", lane=lane.name)
                    )
        return listed

    def _is_quiet(self) -> bool:
        state = self.state
        return not (state.turns or state.queue or state.steering or self._controls)

    def _asks(self) -> bool:
        return bool(self.state.open_questions)

    async def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Until it holds and nothing is waiting to be heard."""
        async with self._settled:
            await self._settled.wait_for(lambda: self._is_closed or (not self._inbox and is_so()))

    async def _settle(self) -> None:
        """Let the store and the actor go on."""
        await self._store.call(lambda: None)
        await asyncio.sleep(0)
