"""Questions of one session in turns that no call waits for: those that mail started, or Codex itself.

Asks the session's client while it is connected and can answer. Where nobody can be asked, the setting
decides: the question is declined at once, or parked until `agent_answer` or the next call of the
session, which takes it over (`release`). In the stateless era nothing can be asked outside of a call.
Told by the session's `Teller` on the engine's reader; its own work is done in tasks, which end with
the question.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from laneway.base.errors import QuestionGone, RemoteError, WireError
from laneway.base.plain import label
from laneway.core.background import Chores
from laneway.core.model import DECLINE, Answer, Question, Withdrawn
from laneway.core.session import Session
from laneway.doors.mcp import elicitation
from laneway.doors.mcp.server import Call, Line

log = logging.getLogger(__name__)

REFUSAL_CHARS = 100
"""Of a client's own words for why it could not ask."""

Unattended: TypeAlias = Literal["decline", "park"]
"""What becomes of a question that nobody can be asked."""
OnDecision: TypeAlias = Callable[[Question, str], None]


async def put_to(line: Line, question: Question, *, request_id: str, marks: dict[str, Any]) -> Answer | str:
    """What the client answers, or why nobody has answered; `WireError` if it cannot be reached."""
    asked = elicitation.params(question, request_id=request_id, marks=marks)
    try:
        reply = await line.call("elicitation/create", asked)
    except RemoteError as refused:
        return f"the client could not ask ({label(refused.message, REFUSAL_CHARS)})"
    return meant(question, reply)


def meant(question: Question, reply: Any) -> Answer | str:
    """The answer in a client's reply, or why it is none."""
    return elicitation.answer(question, reply) or "the client dismissed the question without an answer"


class UnattendedQuestions:
    def __init__(self, call: Call, policy: Unattended = "decline", *, asks_everybody: bool = False) -> None:
        """`asks_everybody`: also clients that do not say that they can answer."""
        self.on_parked: Callable[[], None] = lambda: None
        """Told when a question begins to wait for somebody."""
        self._line = call.line
        self._client = call.client
        self._policy: Unattended = policy
        self._asks_everybody = asks_everybody
        self._session: Session | None = None
        self._marks: dict[str, Any] = {}
        self._on_decision: OnDecision = lambda question, how: None
        self._open: dict[str, Question] = {}
        self._working: dict[str, asyncio.Task[None]] = {}
        """Of the open questions, those that are being asked or declined; the others are parked."""
        self._chores = Chores()

    def bind(self, session: Session, marks: dict[str, Any], on_decision: OnDecision) -> None:
        """Whose questions they are, and how the client knows the session. Before the first of them."""
        self._session, self._marks, self._on_decision = session, marks, on_decision

    def attend(self, call: Call) -> None:
        """The client's latest call: who can be asked from now on, and where."""
        self._line, self._client = call.line, call.client

    @property
    def parked(self) -> list[Question]:
        return [question for key, question in self._open.items() if key not in self._working]

    def release(self) -> list[Question]:
        """The parked ones, for somebody who takes care of them from now on."""
        released = self.parked
        for question in released:
            del self._open[question.question_id]
        return released

    async def decide(self, question_id: str, answer: Answer) -> None:
        """An answer to a parked question; `QuestionGone` if there is none such."""
        question = next((each for each in self.parked if each.question_id == question_id), None)
        if question is None:
            raise QuestionGone(question_id)
        await self._answer(question, answer)

    # ── told by the teller, on the engine's reader ─────────────────────────

    def on_question(self, question: Question) -> None:
        self._open[question.question_id] = question
        can_ask = not self._client.is_stateless and elicitation.can_ask(
            question, self._client, presumed=self._asks_everybody
        )
        if can_ask:
            self._work(question, self._ask(question))
        else:
            self._take_care(question, "no call waits for it, and this client cannot be asked otherwise")

    def on_withdrawn(self, gone: Withdrawn) -> None:
        question = self._open.pop(gone.question_id, None)
        working = self._working.pop(gone.question_id, None)
        if working is not None:
            working.cancel()
        if question is not None and gone.is_declined:
            is_closed = self._session is not None and self._session.is_closing
            self._on_decision(question, "session closed" if is_closed else "timed out")

    def close(self) -> None:
        """The session is over."""
        for working in self._working.values():
            working.cancel()
        self._working.clear()
        self._open.clear()

    # ── asking ─────────────────────────────────────────────────────────────

    def _work(self, question: Question, work: Any) -> None:
        self._working[question.question_id] = self._chores.spawn(work, "question")

    async def _ask(self, question: Question) -> None:
        try:
            answer = await put_to(self._line, question, request_id="", marks=self._marks)
        except WireError:
            answer = "its client is not connected"
        if isinstance(answer, Answer):
            await self._answer(question, answer)
        else:
            self._take_care(question, answer)

    def _take_care(self, question: Question, why: str) -> None:
        """Nobody can be asked."""
        if self._policy == "park":
            self._working.pop(question.question_id, None)
            self.on_parked()
            return
        log.warning("Declined, because %s: %s", why, elicitation.wording(question))
        self._work(question, self._answer(question, DECLINE))

    async def _answer(self, question: Question, answer: Answer) -> None:
        assert self._session is not None, "a session has questions only once it is there"
        if self._open.pop(question.question_id, None) is None:
            return  # it was withdrawn, or somebody else has it
        self._working.pop(question.question_id, None)
        try:
            await self._session.answer(question.question_id, answer)
        except QuestionGone:
            log.debug("question %s was gone before its answer", question.question_id)
            return
        self._on_decision(question, answer.choice_id)
