"""A turn that one MCP client waits for, over one tool call or several, with the questions it asks.

A client of the handshake eras is asked while its call waits. In the stateless era a call ends with
`input_required`, and the next call continues the run: it is found by a `requestState` that cannot be
guessed and that only its owner may use. A question that the client cannot be asked is declined, with
a note in the answer; or, by setting, parked until `agent_answer`. A run that is queued behind a turn
that no call waits for also takes that turn's questions.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any

import msgspec

from laneway.base.errors import LanewayError, QuestionGone, RemoteError, WireError
from laneway.core.answers import stop_answer
from laneway.core.model import DECLINE, Answer, Question, Withdrawn
from laneway.core.ports import Clock
from laneway.core.question_tasks import QuestionTasks
from laneway.core.session import Session
from laneway.core.turn import Turn, TurnResult
from laneway.doors.mcp import elicitation
from laneway.doors.mcp.events import EventForwarder
from laneway.doors.mcp.progress import HEARTBEAT_S, every
from laneway.doors.mcp.server import Call, CallerChannel
from laneway.doors.mcp.unattended import OnDecision, Unattended, ask_client, read_reply
from laneway.wire.messages import INVALID_PARAMS

log = logging.getLogger(__name__)

KEEP_S = 900.0
"""For a client to continue a parked run; the question itself expires sooner."""
MAX_PARKED = 1000
"""Parked runs; if there are more, a client never comes back for them."""


class InputRequired(msgspec.Struct, frozen=True):
    """Questions that must be decided before the turn can continue."""

    questions: tuple[Question, ...]
    is_parked: bool
    """Whether the client cannot ask its user, so that `agent_answer` must bring the answer."""


class ClientRun:
    """One turn and its open questions: a `TurnListener` of the session's `EventForwarder` until it ends."""

    def __init__(
        self,
        call: Call,
        session: Session,
        turn: Turn,
        forwarder: EventForwarder,
        clock: Clock,
        *,
        unattended: Unattended = "decline",
        asks_everybody: bool = False,
        id_fields: dict[str, Any] | None = None,
        on_decision: OnDecision | None = None,
    ) -> None:
        self.principal = call.principal
        self.session = session
        self.turn = turn
        self.notes: list[str] = []
        """Sentences to add to the answer."""
        self.call: Call
        self.request_id: bytes
        self.progress_token: Any
        self.channel: CallerChannel
        self.is_attended: bool
        self._forwarder = forwarder
        self._clock = clock
        self._unattended: Unattended = unattended
        self._asks_everybody = asks_everybody
        self._id_fields = id_fields or {}
        self._on_decision = on_decision
        self._open: dict[str, Question] = {}
        self._asking = QuestionTasks()
        self._parked: set[str] = set()
        self._handed_out: set[str] = set()
        self._changed = asyncio.Event()
        self._outcome: TurnResult | LanewayError | None = None
        turn.on_settled(self._on_settled)
        self.attend(call)
        forwarder.follow(turn.ticket, self)

    def _on_settled(self, outcome: TurnResult | LanewayError) -> None:
        self._outcome = outcome
        self._forwarder.unfollow(self.turn.ticket)
        self._changed.set()

    def attend(self, call: Call) -> None:
        """This call waits for the run from now on."""
        self.call, self.request_id, self.channel = call, call.request_id, call.channel
        self.progress_token = call.meta.get("progressToken")
        self.is_attended = True
        self._forwarder.attend(call)

    # ── called by the forwarder, on the engine's reader ────────────────────

    def on_question(self, question: Question) -> None:
        self._open[question.question_id] = question
        self._changed.set()

    def on_withdrawn(self, gone: Withdrawn) -> None:
        question = self._open.pop(gone.question_id, None)
        if question is None:
            return  # we have just answered it ourselves
        self._parked.discard(gone.question_id)
        self._asking.withdraw(gone.question_id)
        if gone.is_declined:
            why, how = self._why_declined(question)
            self.notes.append(f"Declined, because {why}: {elicitation.wording(question)}")
            self._decided(question, how)
        self._changed.set()

    def _why_declined(self, question: Question) -> tuple[str, str]:
        """Why a question was declined without asking: as a sentence, and for the audit log."""
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
        """The turn's result, or what must be decided first. Cancelling this cancels the turn."""
        stop_heartbeat = self._start_heartbeat()
        try:
            async with asyncio.TaskGroup() as group:
                try:
                    required = await self._attended(group)
                finally:
                    self._asking.withdraw_all()
                    self._asking = QuestionTasks()
        except asyncio.CancelledError:
            self.turn.cancel()
            raise
        finally:
            self.is_attended = False
            stop_heartbeat()
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
                work = self._ask(question) if self._can_request(question) else self._cannot_ask(question)
                self._asking.add(question.question_id, group.create_task(work))
            self._changed.clear()
            await self._changed.wait()
        return None

    def _required(self, waiting: list[Question]) -> InputRequired | None:
        """What this call must return with, because its client is asked by a result or not at all."""
        parked = tuple(q for q in waiting if q.question_id in self._parked)
        if parked:
            return InputRequired(parked, is_parked=True)
        if self.call.client.is_stateless:
            can_ask = tuple(q for q in waiting if elicitation.can_ask(q, self.call.client))
            return InputRequired(can_ask, is_parked=False) if can_ask else None
        return None

    def _can_request(self, question: Question) -> bool:
        if self.call.client.is_stateless:
            return False
        return elicitation.can_ask(question, self.call.client, presumed=self._asks_everybody)

    async def _ask(self, question: Question) -> None:
        answer: Answer | str
        try:
            answer = await ask_client(
                self.channel,
                question,
                self.call.client,
                request_id=self.call.id_text,
                id_fields=self._id_fields,
            )
        except WireError:  # the client has disconnected: nobody waits for the turn any more
            answer = stop_answer(question)
        await self._settle(question, answer)

    async def _settle(self, question: Question, answer: Answer | str) -> None:
        """`answer` is the client's answer, or the reason why there is none."""
        if isinstance(answer, Answer):
            await self._answer(question, answer)
        else:
            await self._cannot_ask(question, answer)

    async def _cannot_ask(self, question: Question, why: str = "this client can ask nobody") -> None:
        if self._unattended == "park":
            self._parked.add(question.question_id)
            self._handed_out.add(question.question_id)
            self._asking.release(question.question_id)
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
        """The `inputRequests` of a stateless client's result, by question."""
        return {
            question.question_id: {
                "method": "elicitation/create",
                "params": {
                    "mode": "form",
                    **elicitation.params(
                        question,
                        request_id=self.call.id_text,
                        id_fields=self._id_fields,
                        client=self.call.client,
                    ),
                },
            }
            for question in required.questions
        }

    async def take_replies(self, replies: dict[str, Any]) -> None:
        """The client's `inputResponses`, by question; a question without one is declined."""
        for question in list(self._open.values()):
            await self._settle(question, read_reply(question, replies.get(question.question_id, {})))

    async def decide(self, question_id: str, answer: Answer) -> None:
        """Answer an open question; `QuestionGone` if there is no such question."""
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
        """Whether this question was parked to be answered later, still open or not."""
        return question_id in self._handed_out

    @property
    def partial(self) -> str:
        return self._forwarder.partial

    def _start_heartbeat(self) -> Callable[[], None]:
        """Send progress at intervals, if the client wants any; the function returned stops it."""
        if self.progress_token is None:
            return lambda: None
        working = f"{self.session.engine.name} is working."
        return every(self._clock, HEARTBEAT_S, lambda: self._forwarder.progress(self, working))


class Parking:
    """Runs that wait for their client's next call, by the `requestState` that it must carry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._runs: dict[str, ClientRun] = {}

    def park(self, run: ClientRun) -> str:
        """Keep the run; returns the state by which a later call takes it."""
        if len(self._runs) >= MAX_PARKED:
            self._runs.pop(next(iter(self._runs)))
        state = os.urandom(24).hex()  # `secrets` costs three milliseconds of start-up
        self._runs[state] = run
        self._clock.after(KEEP_S, lambda: self._forget(state))
        return state

    def _forget(self, state: str) -> None:
        self._runs.pop(state, None)

    def take(self, principal: str, state: Any) -> ClientRun:
        run = self._runs.get(state) if isinstance(state, str) else None
        if run is None or run.principal != principal:
            raise RemoteError(INVALID_PARAMS, "There is no call with this requestState")
        del self._runs[state]
        return run

    def by_question(self, principal: str, question_id: str) -> ClientRun | None:
        """Take the parked run that waits for this question."""
        for state, run in self._runs.items():
            if run.principal == principal and run.has_parked(question_id):
                return self._runs.pop(state)
        return None
