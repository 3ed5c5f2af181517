"""One thread as an actor: the only writer of that thread's state.

Carries out what `laneway.core.step` decides: starts and stops turns, keeps the clocks,
settles tickets. Events go to the subscribers' buffers straight from the engine's reader;
only what changes state becomes a letter. Knows no JSON-RPC, no door, no disk. Only `Hub`
creates one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec

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
from laneway.core import step as rules
from laneway.core.model import (
    DECLINE,
    DELTAS,
    Answer,
    Asked,
    Closed,
    EngineBack,
    EngineGone,
    Event,
    Failure,
    Question,
    Status,
    TurnDone,
    TurnStarted,
    Usage,
    Withdrawn,
)
from laneway.core.ports import Clock, Engine, Part, Thread, ThreadSpec, TurnSpec
from laneway.core.subscription import Subscription
from laneway.core.tools import Caller, ToolBox, ToolResult

log = logging.getLogger(__name__)

MAX_INBOX = 4096
"""Letters a session may fall behind by. Past it the oldest rule is broken: that is a bug, not load."""
RELEASE_S = 5.0
"""For the engine to let go of a thread; a session closes all the same."""


class Timing(msgspec.Struct, frozen=True):
    """How long things may take, in seconds."""

    turn_s: float | None = None
    question_s: float = 300.0
    stop_s: float = 10.0
    """From an interrupt to calling the turn stuck."""


class TurnResult(msgspec.Struct, frozen=True):
    """How a turn went. `stopped_by` tells who ended it early, if anybody did."""

    status: Status
    text: str = ""
    failure: Failure | None = None
    stopped_by: Literal["cancel", "timeout", "close"] | None = None
    turn_id: str | None = None


class Turn:
    """A caller's end of one turn: its events, its result, and the way to cancel it."""

    def __init__(self, ticket: str, session: Session, events: Subscription) -> None:
        self.ticket = ticket
        self.events = events
        self._session = session
        self._settled: asyncio.Future[TurnResult] = asyncio.get_running_loop().create_future()
        # A caller may only read the events and never ask for the result.
        self._settled.add_done_callback(lambda settled: settled.cancelled() or settled.exception())

    async def result(self) -> TurnResult:
        """How it went. Raises only if the turn was never run."""
        return await asyncio.shield(self._settled)

    def cancel(self) -> None:
        """Take the turn back: out of the queue, or by an interrupt. The result still comes."""
        self._session.post(rules.Cancel(self.ticket))


class _Request:
    """What the shell knows about a ticket and the rules need not."""

    __slots__ = ("answer", "done", "error", "left_s", "parts", "spec", "turn")

    def __init__(
        self, *, turn: Turn | None = None, spec: TurnSpec | None = None, left_s: float | None = None
    ) -> None:
        self.turn = turn
        self.spec = spec
        self.left_s = left_s
        self.answer: Answer = DECLINE
        self.parts: tuple[Part, ...] = ()
        self.done: TurnDone | None = None
        self.error: LanewayError | None = None


Compose = Callable[["Session"], str]
"""What the model should know in this turn: identity, team, repository."""


def no_context(session: Session) -> str:
    return ""


class Session:
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
    ) -> None:
        self.agent_id = agent_id
        self.principal = principal
        self.identity = identity
        self.spec = spec
        self.timing = timing
        self.turns = 0
        self.usage: Usage | None = None
        self._engine = engine
        self._clock = clock
        self._tools = ToolBox(spec.tools)
        self._compose = compose
        self._revive = revive
        self._thread: Thread | None = None
        self._thread_id = ""
        self._lost_how: str | None = None
        self._state = rules.State()
        self._inbox: deque[rules.Letter] = deque()
        self._wake = asyncio.Event()
        self._requests: dict[str, _Request] = {}
        self._closers: dict[str, asyncio.Future[None]] = {}
        self._questions: dict[str, Question] = {}
        self._subscribers: list[Subscription] = []
        self._current: Turn | None = None
        self._clock_of: str | None = None
        self._clock_from = 0.0
        self._timers: dict[str, Callable[[], None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._is_over = False

    # ── what doors ask ─────────────────────────────────────────────────────

    @property
    def status(self) -> Literal["idle", "busy", "closed"]:
        if self._state.is_closed:
            return "closed"
        waiting = self._state.clients or self._state.mail or self._inbox
        return "busy" if waiting else self._state.status

    @property
    def thread_id(self) -> str:
        return self._thread_id

    @property
    def is_engine_lost(self) -> bool:
        return self._thread is None

    @property
    def questions(self) -> list[Question]:
        """What waits for somebody's decision."""
        return [self._questions[q] for q in self._state.questions if q in self._questions]

    def subscribe(self, *, merge: bool = True) -> Subscription:
        """All events of this session from now on. Close it when done."""
        subscription = Subscription(merge=merge)
        self._subscribers.append(subscription)
        if self._state.is_closed:
            subscription.close()
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        subscription.close()
        if subscription in self._subscribers:
            self._subscribers.remove(subscription)

    def say(
        self,
        spec: TurnSpec,
        *,
        kind: Literal["client", "mail"] = "client",
        timeout_s: float | None = None,
        merge: bool = True,
    ) -> Turn:
        """Ask for a turn. It waits its turn; its events and its result come through the handle."""
        turn = Turn(new_id("turn"), self, Subscription(merge=merge))
        left_s = self.timing.turn_s if timeout_s is None else timeout_s
        self._requests[turn.ticket] = _Request(turn=turn, spec=spec, left_s=left_s)
        self.post(rules.Say(turn.ticket, kind))
        return turn

    async def steer(self, parts: tuple[Part, ...]) -> None:
        """Add to the running turn; raise `NoTurn` if there is none."""

        request = _Request()
        request.parts = parts
        await self._ask(rules.Steer(new_id("steer")), request)

    def cancel_all(self) -> None:
        self.post(rules.CancelAll())

    async def answer(self, question_id: str, answer: Answer) -> None:
        """Decide. The first valid answer wins; `QuestionGone` for every later one."""
        question = self._questions.get(question_id)
        if question is None or not any(c.choice_id == answer.choice_id for c in question.choices):
            raise QuestionGone(f"{question_id} does not take {answer.choice_id}")
        request = _Request()
        request.answer = answer
        await self._ask(rules.Answered(new_id("answer"), question_id), request)

    async def close(self, last: TurnSpec | None = None, last_s: float = 10.0) -> TurnResult | None:
        """End the session: decline, cancel, then an optional last turn. Safe to call again."""
        if self._state.is_closed:
            return None
        closer = new_id("close")
        turn = None
        if last is not None:
            turn = Turn(new_id("turn"), self, Subscription())
            self._requests[turn.ticket] = _Request(turn=turn, spec=last, left_s=last_s)
        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closers[closer] = closed
        self.post(rules.Close(closer, turn.ticket if turn else None))
        await asyncio.shield(closed)
        try:
            return await turn.result() if turn else None
        except LanewayError as error:
            log.info("session %s closed without its last turn: %s", self.agent_id, error)
            return None

    async def history(self, older: str | None = None, limit: int = 50) -> Any:
        return await self._live_thread().history(older, limit)

    # ── what the engine tells (the Host port) ──────────────────────────────

    def on_event(self, event: Event) -> None:
        """On the engine's reader: hand the event to whoever reads, note what changes state."""
        kind = type(event)
        if kind is TurnStarted:
            self._on_started(event)  # type: ignore[arg-type]
        turn = self._current
        if turn is not None:
            turn.events.push(event)
        for subscriber in self._subscribers:
            subscriber.push(event)
        if kind in DELTAS:
            return
        match event:
            case TurnStarted():
                self.post(rules.Begun(event.turn_id, event.ticket))
            case TurnDone():
                if turn is not None:
                    self._requests[turn.ticket].done = event
                    turn.events.close()
                    self._current = None
                self.post(rules.Ended(event.turn_id))
            case Asked(question=question):
                self._questions[question.question_id] = question
                self.post(rules.Opened(question.question_id))
            case Withdrawn():
                self._questions.pop(event.question_id, None)
                self.post(rules.Gone(event.question_id))
            case Usage():
                self.usage = event
            case EngineGone():
                self._thread = None
                self._lost_how = event.how
                self.post(rules.Lost())
            case _:
                pass

    def _on_started(self, event: TurnStarted) -> None:
        request = self._requests.get(event.ticket) if event.ticket else None
        self._current = request.turn if request else None
        if request:
            self.turns += 1

    async def on_tool(self, name: str, arguments: Any, turn_id: str) -> ToolResult:
        caller = Caller(
            agent_id=self.agent_id, identity=self.identity, thread_id=self._thread_id, turn_id=turn_id
        )
        return await self._tools.call(caller, name, arguments)

    # ── the actor ──────────────────────────────────────────────────────────

    def bind(self, thread: Thread) -> None:
        self._thread = thread
        self._thread_id = thread.info.thread_id

    def post(self, letter: rules.Letter) -> None:
        if self._is_over:
            self._act(letter)  # nobody reads the inbox any more; the rules of a closed session answer at once
            return
        if len(self._inbox) >= MAX_INBOX:
            raise RuntimeError(f"the inbox of {self.agent_id} is full")
        self._inbox.append(letter)
        self._wake.set()

    async def run(self) -> None:
        """Until the session is closed. Cancelled only by the hub, when even closing took too long."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                while not self._state.is_closed:
                    if not self._inbox:
                        self._act(rules.Tick())
                    if not self._inbox and not self._state.is_closed:
                        self._wake.clear()
                        await self._wake.wait()
                    while self._inbox:
                        self._act(self._inbox.popleft())
        finally:
            self._end()

    def _act(self, letter: rules.Letter) -> None:
        self._state, effects = rules.step(self._state, letter)
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: rules.Effect) -> None:
        match effect:
            case rules.Start(ticket):
                self._spawn(self._start(ticket))
            case rules.Interrupt(turn_id):
                self._spawn(self._interrupt(turn_id))
            case rules.SteerNow(ticket, turn_id):
                self._spawn(self._steer(ticket, turn_id))
            case rules.Settle(ticket, outcome, stop):
                self._settle(ticket, outcome, stop)
            case rules.Decline(question_id):
                self._tell(question_id, DECLINE)
            case rules.Deliver(question_id, ticket):
                self._tell(question_id, self._requests[ticket].answer)
            case rules.RunClock(ticket):
                self._run_clock(ticket)
            case rules.WatchQuestion(question_id):
                self._after(question_id, self.timing.question_s, rules.Expired(question_id))
            case rules.ForgetQuestion(question_id):
                self._drop_timer(question_id)
            case rules.StartGrace():
                self._after("grace", self.timing.stop_s, rules.GraceOver())
            case rules.StopGrace():
                self._drop_timer("grace")
            case rules.Release():
                self._spawn(self._release())

    def _spawn(self, work: Any) -> None:
        assert self._group is not None
        self._group.create_task(work)

    async def _start(self, ticket: str) -> None:
        request = self._requests[ticket]
        assert request.spec is not None
        try:
            thread = self._thread or await self._bring_back()
            context = request.spec.context or self._compose(self)
            await thread.start_turn(ticket, msgspec.structs.replace(request.spec, context=context))
        except LanewayError as error:
            request.error = error
            self.post(rules.Refused(ticket))
        except Exception:
            log.exception("starting a turn of %s failed", self.agent_id)
            request.error = EngineError("The turn could not be started")
            self.post(rules.Refused(ticket))

    async def _bring_back(self) -> Thread:
        if not self._revive or self._state.closing:
            raise EngineLost(self._lost_how or "it is not running")
        self.bind(await self._engine.resume(self._thread_id, self.spec, self))
        for subscriber in self._subscribers:
            subscriber.push(EngineBack())
        return self._live_thread()

    async def _interrupt(self, turn_id: str) -> None:
        try:
            await self._live_thread().interrupt(turn_id)
        except LanewayError as error:
            # The turn may have ended in between; if not, the grace period sees to it.
            log.debug("interrupting %s: %s", turn_id, error)

    async def _steer(self, ticket: str, turn_id: str) -> None:
        request = self._requests[ticket]
        try:
            await self._live_thread().steer(ticket, turn_id, request.parts)
        except LanewayError as error:
            request.error = error
        self._settle(ticket, "refused" if request.error else "ok", None)

    async def _release(self) -> None:
        try:
            if self._thread is not None:
                async with asyncio.timeout(RELEASE_S):
                    await self._thread.release()
        except (LanewayError, TimeoutError) as error:
            log.info("thread %s was not released: %r", self._thread_id, error)
        self.post(rules.Released())

    def _live_thread(self) -> Thread:
        if self._thread is None:
            raise EngineLost(self._lost_how or "it is not running")
        return self._thread

    def _tell(self, question_id: str, answer: Answer) -> None:
        self._questions.pop(question_id, None)
        try:
            self._live_thread().answer(question_id, answer)
        except LanewayError:
            log.debug("question %s was gone before its answer", question_id)

    async def _ask(self, letter: Any, request: _Request) -> None:
        """Post a letter that settles its own ticket, and wait for that."""
        request.turn = turn = Turn(letter.ticket, self, Subscription())
        self._requests[letter.ticket] = request
        self.post(letter)
        await turn.result()

    # ── clocks ─────────────────────────────────────────────────────────────

    def _run_clock(self, ticket: str | None) -> None:
        if self._clock_of is not None:
            running = self._requests.get(self._clock_of)
            if running is not None and running.left_s is not None:
                running.left_s -= self._clock.now() - self._clock_from
            self._drop_timer("turn")
        self._clock_of = ticket
        self._clock_from = self._clock.now()
        request = self._requests.get(ticket) if ticket else None
        if request is not None and request.left_s is not None and ticket:
            self._after("turn", max(0.0, request.left_s), rules.TimedOut(ticket))

    def _after(self, name: str, seconds: float, letter: rules.Letter) -> None:
        self._drop_timer(name)
        self._timers[name] = self._clock.after(seconds, lambda: self.post(letter))

    def _drop_timer(self, name: str) -> None:
        cancel = self._timers.pop(name, None)
        if cancel is not None:
            cancel()

    # ── settling ───────────────────────────────────────────────────────────

    def _settle(self, ticket: str, outcome: rules.Outcome, stop: rules.Stop | None) -> None:
        closer = self._closers.pop(ticket, None)
        if closer is not None:
            closer.set_result(None)
            return
        request = self._requests.pop(ticket)
        assert request.turn is not None
        request.turn.events.close()
        settled = request.turn._settled
        if settled.done():
            return
        error = self._error_of(outcome, request)
        if error is not None:
            settled.set_exception(error)
        else:
            settled.set_result(_result(request, stop))

    def _error_of(self, outcome: rules.Outcome, request: _Request) -> LanewayError | None:
        match outcome:
            case "done" | "cancelled" | "ok":
                return None
            case "closed":
                return SessionClosed(f"Session {self.agent_id} is closed")
            case "full":
                return LimitReached("waiting turns", rules.MAX_WAITING)
            case "stuck":
                return SessionStuck(
                    f"Codex did not stop the turn of {self.agent_id} within {self.timing.stop_s:g} s"
                )
            case "lost":
                return EngineLost(self._lost_how or "it is not running")
            case "no_turn":
                return NoTurn(f"Session {self.agent_id} runs no turn")
            case "question_gone":
                return QuestionGone("The question is answered or withdrawn")
            case "refused":
                return request.error or EngineError("The turn could not be started")

    def _end(self) -> None:
        """Nothing of this session may wait for anything any more."""
        self._is_over = True
        self._state = rules.State(is_closed=True)
        for name in list(self._timers):
            self._drop_timer(name)
        for ticket in [*self._requests]:
            self._settle(ticket, "closed", None)
        for closer in self._closers.values():
            if not closer.done():
                closer.set_result(None)
        self._closers.clear()
        for subscriber in self._subscribers:
            subscriber.push(Closed())
            subscriber.close()


def _result(request: _Request, stop: rules.Stop | None) -> TurnResult:
    done = request.done
    if done is None:
        return TurnResult(status="interrupted", stopped_by=stop)
    return TurnResult(
        status=done.status,
        text=done.text,
        failure=done.failure,
        stopped_by=None if done.status == "completed" else stop,
        turn_id=done.turn_id,
    )
