"""One session: an actor that owns the state of one thread of an engine and runs its turns.

Carries out what `laneway.core.step` decides: starts and stops turns, runs the timers, settles
tickets. Events go straight from the engine's reader to the subscribers' buffers; only events that
change state also become letters. Knows no JSON-RPC, no front end, no disk. Only `Hub` creates one.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from laneway.base.counting import counted
from laneway.base.errors import (
    EngineError,
    EngineLost,
    LanewayError,
    LimitReached,
    NoTurn,
    QuestionGone,
    SessionClosed,
    SessionStuck,
)
from laneway.base.ids import new_id
from laneway.base.log import bound
from laneway.core import letters
from laneway.core.answers import stop_answer
from laneway.core.audience import Audience, Observer, Reader
from laneway.core.model import (
    DECLINE,
    DELTAS,
    Accepted,
    Answer,
    Asked,
    Closed,
    EngineBack,
    EngineGone,
    Event,
    Notice,
    Question,
    ThreadKnown,
    TurnDone,
    TurnStarted,
    Usage,
    Withdrawn,
)
from laneway.core.ports import Clock, Engine, Page, Part, Thread, ThreadInfo, ThreadSpec, TurnSpec
from laneway.core.retries import RetryWatch
from laneway.core.step import MAX_WAITING, step
from laneway.core.subscription import Subscription
from laneway.core.thread_handle import ThreadHandle
from laneway.core.timers import Timers
from laneway.core.tools import Caller, ToolBox, ToolResult
from laneway.core.turn import Request, Turn, TurnResult

log = logging.getLogger(__name__)

NEVER_S = math.inf
"""As the time of a question: it stays open until it is answered or withdrawn."""
LAST_TEXT_CHARS = 400
"""Kept of a last message: enough for a list of sessions to show what each has come to."""
MAX_INBOX = 4096
"""Letters that a session may fall behind by. More than that is a bug, not load."""


class Timing(msgspec.Struct, frozen=True):
    """Time limits of turns and questions, in seconds."""

    turn_s: float | None = None
    question_s: float = 300.0
    retry_s: float = 0.0
    """How long the engine may retry to reach its model without any progress; 0: for ever."""
    stop_s: float = 10.0
    """After an interrupt, until the turn counts as stuck."""


def _with_question_s(timing: Timing, question_s: float) -> Timing:
    return msgspec.structs.replace(timing, question_s=question_s)


Compose = Callable[["Session"], str]
"""Makes the context that the model gets with a turn: identity, team, repository."""


def no_context(session: Session) -> str:
    return ""


class Session:
    """One thread and its turns, questions and subscribers."""

    def __init__(
        self,
        *,
        agent_id: str,
        principal: str,
        spec: ThreadSpec,
        engine: Engine,
        clock: Clock,
        identity: str | None = None,
        compose: Compose = no_context,
        timing: Timing = Timing(),  # noqa: B008  frozen
        revive: bool = True,
        has_history: bool = True,
        release_slots: asyncio.Semaphore | None = None,
    ) -> None:
        """`release_slots` are shared by all sessions of the engine."""
        self.agent_id = agent_id
        self.principal = principal
        self.identity = identity
        self.spec = spec
        self.engine = engine
        self.timing = timing if spec.question_s is None else _with_question_s(timing, spec.question_s)
        self.turns = 0
        self.observer: Observer | None = None
        self.usage: Usage | None = None
        self.last_text = ""
        """The beginning of what the model said at the end of its last turn."""
        self._handle = ThreadHandle(engine, spec, has_history=has_history)
        self._tools = ToolBox(spec.tools)
        self._compose = compose
        self._revive = revive
        self._state = letters.State()
        self._inbox: deque[letters.Letter] = deque()
        self._wake = asyncio.Event()
        self._requests: dict[str, Request] = {}
        self._closers: dict[str, asyncio.Future[None]] = {}
        self._questions: dict[str, Question] = {}
        self._audience = Audience()
        self._timers = Timers(clock, self.post)
        self._group: asyncio.TaskGroup | None = None
        self._engine_calls: set[asyncio.Task[None]] = set()
        """Calls that the engine has not answered yet."""
        self._waking = asyncio.Lock()
        self._is_over = False
        self._retries = RetryWatch(self.timing.retry_s, self._timers)
        self._releases = True
        self._release_slots = release_slots or asyncio.Semaphore()

    # ── for front ends ─────────────────────────────────────────────────────

    @property
    def status(self) -> Literal["idle", "busy", "closed"]:
        if self._state.is_closed:
            return "closed"
        waiting = self._state.clients or self._state.mail or self._inbox
        return "busy" if waiting else self._state.status

    @property
    def is_closing(self) -> bool:
        """Whether it is being closed, or is closed."""
        return bool(self._closers) or self._state.closing is not None or self._state.is_closed

    @property
    def info(self) -> ThreadInfo:
        """The engine's facts about the thread, as of its opening."""
        return self._handle.info

    @property
    def thread_id(self) -> str:
        return self._handle.thread_id

    @property
    def has_history(self) -> bool:
        """Whether the thread has had input, so that the engine has written it to disk."""
        return self._handle.has_history

    @property
    def is_engine_lost(self) -> bool:
        return self._handle.is_lost

    @property
    def lost_how(self) -> str | None:
        """How the engine's process ended, if it did."""
        return self._handle.lost_how

    @property
    def last_words(self) -> str:
        """The last lines of that process's standard error."""
        return self._handle.last_words

    @property
    def questions(self) -> list[Question]:
        """Open questions."""
        return [self._questions[q] for q in self._state.questions if q in self._questions]

    @property
    def lost_events(self) -> int:
        """Events that readers of this session were too slow for."""
        return self._audience.lost

    def subscribe(self, *, merge: bool = True) -> Subscription:
        """All events of this session from now on. Close it when done."""
        subscription = Subscription(merge=merge)
        self._audience.join(subscription)
        if self._state.is_closed:
            subscription.close()
        return subscription

    def attach(self, reader: Reader) -> None:
        """Hand every event to a reader as it comes, from now on."""
        self._audience.join(reader)

    def has_reader(self, reader: Reader) -> bool:
        return self._audience.has(reader)

    def unsubscribe(self, reader: Reader) -> None:
        self._audience.leave(reader)

    def say(
        self,
        spec: TurnSpec,
        *,
        kind: Literal["client", "mail"] = "client",
        timeout_s: float | None = None,
        merge: bool = True,
        events: bool = True,
        ticket: str | None = None,
    ) -> Turn:
        """Queue a turn. Its events and its result come through the returned handle.

        Without `events` only the result does, for a caller that reads the session's events anyway.
        `ticket` is the caller's own name for the turn, unique in this session.
        """
        turn_s = self.timing.turn_s if timeout_s is None else timeout_s
        turn = self._new_turn(spec, turn_s, merge=merge, ticket=ticket)
        if not events:
            turn.events.close()
        self.post(letters.Say(turn.ticket, kind))
        return turn

    def _new_turn(
        self, spec: TurnSpec, timeout_s: float | None, *, merge: bool = True, ticket: str | None = None
    ) -> Turn:
        name = ticket or new_id("turn")
        turn = Turn(name, lambda why: self.post(letters.Cancel(name, why)), merge=merge)
        self._requests[name] = Request(turn, spec)
        self._timers.give(name, timeout_s)
        return turn

    async def steer(self, parts: tuple[Part, ...], *, ticket: str | None = None) -> None:
        """Add to the running turn; raise `NoTurn` if there is none.

        `Accepted` names the ticket once the engine has recorded the parts.
        """
        await self._ask(letters.Steer(ticket or new_id("steer")), parts=parts)

    def cancel_all(self) -> None:
        self.post(letters.CancelAll())

    async def answer(self, question_id: str, answer: Answer) -> None:
        """Answer a question. The first valid answer wins; `QuestionGone` for every later one."""
        question = self._questions.get(question_id)
        if question is None or not any(c.choice_id == answer.choice_id for c in question.choices):
            raise QuestionGone(f"{question_id} does not take {answer.choice_id}")
        await self._ask(letters.Answered(new_id("answer"), question_id), answer=answer)

    async def close(
        self, last: TurnSpec | None = None, last_s: float = 10.0, *, release: bool = True
    ) -> TurnResult | None:
        """End the session: decline questions, cancel turns, run an optional last turn. Safe to call again.

        Without `release` the thread stays loaded in the engine: right when the engine itself ends next.
        """
        if not release:
            self.skip_release()
        if self._state.is_closed:
            return None
        closer = new_id("close")
        turn = self._new_turn(last, last_s) if last is not None else None
        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closers[closer] = closed
        self.post(letters.Close(closer, turn.ticket if turn else None))
        await asyncio.shield(closed)
        try:
            return await turn.result() if turn else None
        except LanewayError as error:
            log.info("session %s closed without its last turn: %s", self.agent_id, error)
            return None

    def skip_release(self) -> None:
        """Do not release the thread, because the engine ends next. No effect on a release that runs."""
        self._releases = False

    async def wake(self) -> None:
        """Resume the thread if the engine's process died, for a turn or for any other call."""
        async with self._waking:
            if not self._handle.is_lost:
                return
            if not self._revive or self.is_closing:
                raise self._handle.loss()
            if await self._handle.bring_back(self):
                self._audience.tell(ThreadKnown(thread_id=self.thread_id))
            self._audience.tell(EngineBack())

    async def history(self, older: str | None = None, limit: int = 50, *, oldest_first: bool = False) -> Page:
        return await self._handle.thread.history(older, limit, oldest_first=oldest_first)

    # ── called by the engine (the Host port) ───────────────────────────────

    def on_event(self, event: Event) -> None:
        """On the engine's reader: hand the event to all readers, and post a letter if it changes state."""
        kind = type(event)
        if kind is TurnStarted:
            self._on_started(event)  # type: ignore[arg-type]
        self._audience.tell(event)
        if self._retries.is_retrying:
            self._retries.on_event(kind)
        if kind in DELTAS:
            return
        match event:
            case TurnStarted():
                self.post(letters.Begun(event.turn_id, event.ticket))
            case TurnDone():
                self.last_text = event.text[:LAST_TEXT_CHARS] or self.last_text
                turn = self._audience.end_turn()
                request = self._requests.get(turn.ticket) if turn else None
                if request is not None:  # else the turn was stuck, and its caller has had an answer
                    request.done = event
                self.post(letters.Ended(event.turn_id))
            case Notice(will_retry=True, message=message):
                if self._audience.turn is not None:
                    self._retries.on_retry(self._audience.turn.ticket, message)
            case Accepted():
                self._handle.has_history = True
            case Asked(question=question) if self.spec.declines_escalations and question.is_escalation:
                # At once, before a reader that has just received the question can show it to a person.
                self._send_answer(question.question_id, DECLINE, by_rule=True)
            case Asked(question=question):
                self._questions[question.question_id] = question
                self.post(letters.Opened(question.question_id))
            case Withdrawn():
                self._questions.pop(event.question_id, None)
                self.post(letters.Gone(event.question_id))
            case Usage():
                self.usage = event
                if self.observer is not None:
                    self.observer.on_usage(event)
            case ThreadKnown(thread_id=thread_id):
                self._handle.rename(thread_id)
            case EngineGone():
                self._handle.lose(event.how, event.last_words)
                self.post(letters.Lost())
            case _:
                pass

    def _on_started(self, event: TurnStarted) -> None:
        request = self._requests.get(event.ticket) if event.ticket else None
        self._audience.turn = request.turn if request else None
        if request:
            request.is_begun = True
            self._handle.has_begun()
            self.turns += 1

    async def on_tool(self, name: str, arguments: Any, turn_id: str) -> ToolResult:
        caller = Caller(
            agent_id=self.agent_id,
            identity=self.identity,
            thread_id=self.thread_id,
            turn_id=turn_id,
            principal=self.principal,
        )
        return await self._tools.call(caller, name, arguments)

    # ── the actor ──────────────────────────────────────────────────────────

    def bind(self, thread: Thread) -> None:
        self._handle.take(thread)

    def post(self, letter: letters.Letter) -> None:
        if self._is_over:
            # Nobody reads the inbox any more; the rules of a closed session answer at once.
            self._handle_letter(letter)
            return
        if len(self._inbox) >= MAX_INBOX:
            raise RuntimeError(f"the inbox of {self.agent_id} is full")
        self._inbox.append(letter)
        self._wake.set()

    async def run(self) -> None:
        """Handle letters until the session is closed. Cancelled only by the hub, if that takes too long."""
        with bound(agent=self.agent_id, thread=self.thread_id):
            log.info("session started")
            await self._run_actor()
            log.info("session closed after %s", counted(self.turns, "turn"))

    async def _run_actor(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                while not self._state.is_closed:
                    if not self._inbox:
                        self._handle_letter(letters.Tick())
                    if not self._inbox and not self._state.is_closed:
                        self._report_status()
                        self._wake.clear()
                        await self._wake.wait()
                    while self._inbox:
                        self._handle_letter(self._inbox.popleft())
                self._is_over = True
                for call in self._engine_calls:
                    call.cancel()  # nobody waits for its result any more
        finally:
            self._end()

    def _report_status(self) -> None:
        if self.observer is not None:
            self.observer.on_status(self.status)

    def _handle_letter(self, letter: letters.Letter) -> None:
        self._state, effects = step(self._state, letter)
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: letters.Effect) -> None:
        match effect:
            case letters.Start(ticket):
                self._spawn(self._start(ticket))
            case letters.Interrupt(turn_id):
                self._spawn(self._interrupt(turn_id))
            case letters.SteerNow(ticket, turn_id):
                self._spawn(self._steer(ticket, turn_id))
            case letters.Settle(ticket, outcome, stop):
                self._settle(ticket, outcome, stop)
            case letters.Decline(question_id, ends_turn):
                question = self._questions.get(question_id) if ends_turn else None
                answer = stop_answer(question) if question else DECLINE
                self._send_answer(question_id, answer, by_rule=True)
            case letters.Deliver(question_id, ticket):
                self._send_answer(question_id, self._requests[ticket].answer)
            case letters.RunClock(ticket):
                self._timers.run(ticket)
            case letters.WatchQuestion(question_id):
                if self.timing.question_s != NEVER_S:
                    self._timers.after(question_id, self.timing.question_s, letters.Expired(question_id))
            case letters.ForgetQuestion(question_id):
                self._timers.drop(question_id)
            case letters.StartGrace():
                self._timers.after("grace", self.timing.stop_s, letters.GraceOver())
            case letters.StopGrace():
                self._timers.drop("grace")
            case letters.Release():
                self._spawn(self._release())

    def _spawn(self, work: Any) -> None:
        assert self._group is not None
        call = self._group.create_task(work)
        self._engine_calls.add(call)
        call.add_done_callback(self._engine_calls.discard)

    async def _start(self, ticket: str) -> None:
        request = self._requests[ticket]
        try:
            log.debug("starting %s", ticket)
            await self._begin(request)
        except LanewayError as error:
            request.error = error
            self.post(letters.Refused(ticket))
        except Exception:
            log.exception("starting a turn of %s failed", self.agent_id)
            request.error = EngineError("The turn could not be started")
            self.post(letters.Refused(ticket))

    async def _begin(self, request: Request) -> None:
        if not self._handle.is_lost:
            try:
                await self._begin_now(request)
                return
            except EngineLost:
                # The engine died before it reported the turn, so nothing of the turn has happened.
                if request.is_begun or not self._is_wanted(request):
                    raise
        await self.wake()
        if not self._is_wanted(request):
            raise EngineError("The turn was taken back before it began")
        await self._begin_now(request)

    def _is_wanted(self, request: Request) -> bool:
        """Whether this turn should still begin: it may be cancelled while an engine starts."""
        live = self._state.live
        return live is not None and live.ticket == request.turn.ticket and not live.stop

    async def _begin_now(self, request: Request) -> None:
        assert request.spec is not None
        context = "\n\n".join(filter(None, (self._compose(self), request.spec.context)))
        await self._handle.start_turn(request.turn.ticket, request.spec, context)

    async def _interrupt(self, turn_id: str) -> None:
        again_s = await self._handle.interrupt(turn_id, self.timing.stop_s)
        if again_s is not None:
            self._timers.after("interrupt", again_s, letters.Unheard(turn_id))

    async def _steer(self, ticket: str, turn_id: str) -> None:
        request = self._requests[ticket]
        try:
            await self._handle.thread.steer(ticket, turn_id, request.parts)
        except LanewayError as error:
            request.error = error
        self._settle(ticket, "refused" if request.error else "ok", None)

    async def _release(self) -> None:
        async with self._release_slots:
            if self._releases:  # may have changed while this waited for its slot
                await self._handle.release()
        self.post(letters.Released())

    def _send_answer(self, question_id: str, answer: Answer, *, by_rule: bool = False) -> None:
        self._questions.pop(question_id, None)
        try:
            self._handle.thread.answer(question_id, answer)
        except LanewayError:
            log.debug("question %s was gone before its answer", question_id)
        # Other front ends that show the same question can stop.
        self._audience.tell(Withdrawn(question_id=question_id, is_declined=by_rule))

    async def _ask(
        self,
        letter: letters.Steer | letters.Answered,
        *,
        answer: Answer = DECLINE,
        parts: tuple[Part, ...] = (),
    ) -> None:
        """Post a letter that settles its own ticket, and wait for that."""
        request = Request(Turn(letter.ticket, lambda why: None))
        request.answer, request.parts = answer, parts
        self._requests[letter.ticket] = request
        self.post(letter)
        await request.turn.result()

    # ── settling ───────────────────────────────────────────────────────────

    def _settle(self, ticket: str, outcome: letters.Outcome, stop: letters.Stop | None) -> None:
        closer = self._closers.pop(ticket, None)
        if closer is not None:
            closer.set_result(None)
            return
        request = self._requests.pop(ticket)
        self._timers.forget(ticket)
        if outcome == "stuck" or stop == "timeout":
            log.warning("%s ran out of time%s", ticket, " and did not stop" if outcome == "stuck" else "")
        request.turn.settle(self._error_of(outcome, request) or self._result_of(request, stop))

    def _result_of(self, request: Request, stop: letters.Stop | None) -> TurnResult:
        result = request.result(stop)
        if stop == "unreachable" and result.status == "interrupted":
            return self._retries.as_failure(result, self.engine.name)
        return result

    def _error_of(self, outcome: letters.Outcome, request: Request) -> LanewayError | None:
        match outcome:
            case "done" | "cancelled" | "ok":
                return None
            case "closed":
                return SessionClosed(f"Session {self.agent_id} is closed")
            case "full":
                return LimitReached("waiting turns", MAX_WAITING)
            case "stuck":
                return SessionStuck(
                    f"{self.engine.name} did not stop the turn of {self.agent_id}"
                    f" within {self.timing.stop_s:g} s"
                )
            case "lost":
                return self._handle.loss()
            case "no_turn":
                return NoTurn(f"Session {self.agent_id} runs no turn")
            case "question_gone":
                return QuestionGone("The question is answered or withdrawn")
            case "refused":
                return request.error or EngineError("The turn could not be started")

    def _end(self) -> None:
        """Settle everything that still waits for this session."""
        self._is_over = True
        self._state = letters.State(is_closed=True)
        self._timers.drop_all()
        for ticket in [*self._requests]:
            self._settle(ticket, "closed", None)
        for closer in self._closers.values():
            if not closer.done():
                closer.set_result(None)
        self._closers.clear()
        self._audience.dismiss(Closed())
        self._report_status()
