"""A turn on behalf of a client, over one call or several.

Clients that shook hands are asked while their call waits. In the stateless era a call ends with
`input_required` and the next one goes on where it left: the run is found again by a state that
cannot be guessed and that only its owner may use. A question that nobody can be asked is
declined, and said so; or, by setting, parked until `agent_answer`. A run that waits behind a turn
that nobody waits for takes care of that turn's questions, too.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any

import msgspec

from laneway.base.errors import LanewayError, QuestionGone, RemoteError, WireError
from laneway.core.model import DECLINE, Answer, Question, Withdrawn
from laneway.core.ports import Clock
from laneway.core.session import Session
from laneway.core.turn import Turn, TurnResult
from laneway.doors.mcp import elicitation
from laneway.doors.mcp.events import Teller
from laneway.doors.mcp.server import INVALID_PARAMS, Call, Line
from laneway.doors.mcp.unattended import OnDecision, Unattended, meant, put_to

log = logging.getLogger(__name__)

HEARTBEAT_S = 10.0
"""Between two signs of life: clients give up on a call that is silent for one to thirty minutes."""
KEEP_S = 900.0
"""For a client to come back for what it left waiting; the question itself expires sooner."""
MAX_PARKED = 1000
"""Runs that wait for their client: more is a client that never comes back."""


class InputRequired(msgspec.Struct, frozen=True):
    """Somebody must decide before the turn can go on."""

    questions: tuple[Question, ...]
    is_parked: bool
    """Whether the client cannot ask, so that `agent_answer` must bring the answer."""


class Run:
    """A `Listener` of its session's `Teller`, from before the turn starts until it is done."""

    def __init__(
        self,
        call: Call,
        session: Session,
        turn: Turn,
        teller: Teller,
        clock: Clock,
        *,
        unattended: Unattended = "decline",
        asks_everybody: bool = False,
        marks: dict[str, Any] | None = None,
        on_decision: OnDecision | None = None,
    ) -> None:
        self.principal = call.principal
        self.session = session
        self.turn = turn
        self.notes: list[str] = []
        """What the caller should know besides the answer."""
        self.call: Call
        self.request_id: bytes
        self.progress_token: Any
        self.line: Line
        self.is_attended: bool
        self._teller = teller
        self._clock = clock
        self._unattended: Unattended = unattended
        self._asks_everybody = asks_everybody
        self._marks = marks or {}
        self._on_decision = on_decision
        self._open: dict[str, Question] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._parked: set[str] = set()
        self._handed_out: set[str] = set()
        self._changed = asyncio.Event()
        self._outcome: TurnResult | LanewayError | None = None
        turn.on_settled(self._on_settled)
        self.attend(call)
        teller.follow(turn.ticket, self)

    def _on_settled(self, outcome: TurnResult | LanewayError) -> None:
        self._outcome = outcome
        self._teller.unfollow(self.turn.ticket)
        self._changed.set()

    def attend(self, call: Call) -> None:
        """Who waits for this run from now on."""
        self.call, self.request_id, self.line = call, call.request_id, call.line
        self.progress_token = call.meta.get("progressToken")
        self.is_attended = True
        self._teller.attend(call)

    # ── told by the teller, on the engine's reader ─────────────────────────

    def on_question(self, question: Question) -> None:
        self._open[question.question_id] = question
        self._changed.set()

    def on_withdrawn(self, gone: Withdrawn) -> None:
        question = self._open.pop(gone.question_id, None)
        if question is None:
            return  # we have just answered it ourselves
        self._parked.discard(gone.question_id)
        asking = self._asking.pop(gone.question_id, None)
        if asking is not None:
            asking.cancel()
        if gone.is_declined:
            why, how = self._rule(question)
            self.notes.append(f"Declined, because {why}: {elicitation.wording(question)}")
            self._decided(question, how)
        self._changed.set()

    def _rule(self, question: Question) -> tuple[str, str]:
        """Why a question was declined in the place of somebody: in words, and for the audit log."""
        if self.session.spec.declines_escalations and question.is_escalation:
            return "this server was started with --readonly", "read-only"
        if self.session.is_closing:
            return "the session was closed", "session closed"
        return "nobody answered in time", "timed out"

    def _decided(self, question: Question, how: str) -> None:
        log.info("question %s: %s", question.question_id, how)
        if self._on_decision is not None:
            self._on_decision(question, how)

    # ── waiting ────────────────────────────────────────────────────────────

    async def wait(self) -> TurnResult | InputRequired:
        """How the turn went, or what must be decided first. Cancelled, it takes the turn back."""
        stop_beating = self._beat()
        try:
            async with asyncio.TaskGroup() as group:
                try:
                    required = await self._attended(group)
                finally:
                    for asking in self._asking.values():
                        asking.cancel()
                    self._asking.clear()
        except asyncio.CancelledError:
            self.turn.cancel()
            raise
        finally:
            self.is_attended = False
            stop_beating()
        outcome = required or self._outcome
        if isinstance(outcome, LanewayError):
            raise outcome
        assert outcome is not None
        return outcome

    async def _attended(self, group: asyncio.TaskGroup) -> InputRequired | None:
        while self._outcome is None:
            waiting = [q for q in self._open.values() if q.question_id not in self._asking]
            required = self._required(waiting)
            if required is not None:
                return required
            for question in waiting:
                work = self._ask(question) if self._can_request(question) else self._nobody(question)
                self._asking[question.question_id] = group.create_task(work)
            self._changed.clear()
            await self._changed.wait()
        return None

    def _required(self, waiting: list[Question]) -> InputRequired | None:
        """What this call must end with, because its client is asked by a result or not at all."""
        parked = tuple(q for q in waiting if q.question_id in self._parked)
        if parked:
            return InputRequired(parked, is_parked=True)
        if self.call.client.is_stateless:
            asked = tuple(q for q in waiting if elicitation.can_ask(q, self.call.client))
            return InputRequired(asked, is_parked=False) if asked else None
        return None

    def _can_request(self, question: Question) -> bool:
        if self.call.client.is_stateless:
            return False
        return elicitation.can_ask(question, self.call.client, presumed=self._asks_everybody)

    async def _ask(self, question: Question) -> None:
        answer: Answer | str
        try:
            answer = await put_to(self.line, question, request_id=self.call.id_text, marks=self._marks)
        except WireError:
            answer = DECLINE
        await self._settle(question, answer)

    async def _settle(self, question: Question, answer: Answer | str) -> None:
        """With what was answered, or for the reason why nothing was."""
        if isinstance(answer, Answer):
            await self._answer(question, answer)
        else:
            await self._nobody(question, answer)

    async def _nobody(self, question: Question, why: str = "this client can ask nobody") -> None:
        if self._unattended == "park":
            self._parked.add(question.question_id)
            self._handed_out.add(question.question_id)
            self._asking.pop(question.question_id, None)
            self._changed.set()
            return
        self.notes.append(f"Declined, because {why}: {elicitation.wording(question)}")
        await self._answer(question, DECLINE)

    async def _answer(self, question: Question, answer: Answer) -> None:
        try:
            await self.decide(question.question_id, answer)
        except QuestionGone:
            log.debug("question %s was gone before its answer", question.question_id)

    def inputs(self, required: InputRequired) -> dict[str, Any]:
        """What a stateless client is asked, by key."""
        return {
            question.question_id: {
                "method": "elicitation/create",
                "params": {
                    "mode": "form",
                    **elicitation.params(question, request_id=self.call.id_text, marks=self._marks),
                },
            }
            for question in required.questions
        }

    async def take(self, replies: dict[str, Any]) -> None:
        """The client's replies, by key; a question that none came for is declined."""
        for question in list(self._open.values()):
            await self._settle(question, meant(question, replies.get(question.question_id, {})))

    async def decide(self, question_id: str, answer: Answer) -> None:
        """An answer from elsewhere; `QuestionGone` if there is no such question."""
        question = self._open.pop(question_id, None)
        if question is None:
            raise QuestionGone(question_id)
        self._parked.discard(question_id)
        await self.session.answer(question_id, answer)
        self._decided(question, answer.choice_id)

    def question(self, question_id: str) -> Question | None:
        """The question, while it is open."""
        return self._open.get(question_id)

    def has_parked(self, question_id: str) -> bool:
        """Whether this was handed out to be answered later, open or not."""
        return question_id in self._handed_out

    @property
    def partial(self) -> str:
        return self._teller.partial

    def _beat(self) -> Callable[[], None]:
        """Signs of life while nothing else is told."""
        if self.progress_token is None:
            return lambda: None
        cancel: list[Callable[[], None]] = []

        def beat() -> None:
            self._teller.progress(self, "Codex is working.")
            cancel[:] = [self._clock.after(HEARTBEAT_S, beat)]

        cancel.append(self._clock.after(HEARTBEAT_S, beat))
        return lambda: cancel[0]()


class Parking:
    """Runs that wait for their client, by the state that it must bring back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._runs: dict[str, Run] = {}

    def park(self, run: Run) -> str:
        """The state to come back with."""
        if len(self._runs) >= MAX_PARKED:
            self._runs.pop(next(iter(self._runs)))
        state = os.urandom(24).hex()  # `secrets` costs three milliseconds of start-up
        self._runs[state] = run
        self._clock.after(KEEP_S, lambda: self._forget(state))
        return state

    def _forget(self, state: str) -> None:
        self._runs.pop(state, None)

    def take(self, principal: str, state: Any) -> Run:
        run = self._runs.get(state) if isinstance(state, str) else None
        if run is None or run.principal != principal:
            raise RemoteError(INVALID_PARAMS, "There is no call with this requestState")
        del self._runs[state]
        return run

    def by_question(self, principal: str, question_id: str) -> Run | None:
        """The parked run that this question keeps waiting; it is taken out."""
        for state, run in self._runs.items():
            if run.principal == principal and run.has_parked(question_id):
                return self._runs.pop(state)
        return None
