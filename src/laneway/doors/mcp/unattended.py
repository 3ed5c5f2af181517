"""Questions of one session in turns that no call waits for: those that mail started, or the engine itself.

Asks the session's client while it is connected and can answer. Where it cannot be asked, the setting
decides: the question is declined at once, or parked until `agent_answer` or the next call of the
session, which takes it over (`release`). In the stateless era nothing can be asked outside of a call.
Called by the session's `EventForwarder` on the engine's reader; its own work is done in tasks, which
end with the question.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from laneway.base.errors import QuestionGone, RemoteError, WireError
from laneway.base.plain import label
from laneway.core.background import TaskSet
from laneway.core.model import DECLINE, Answer, Question, Withdrawn
from laneway.core.question_tasks import QuestionTasks
from laneway.core.session import Session
from laneway.doors.mcp import elicitation
from laneway.doors.mcp.eras import McpClient
from laneway.doors.mcp.server import Call, CallerChannel

log = logging.getLogger(__name__)

REFUSAL_CHARS = 100
"""Of a client's own reason why it could not ask."""

Unattended: TypeAlias = Literal["decline", "park"]
"""What happens to a question that no client can be asked."""
OnDecision: TypeAlias = Callable[[Question, str], None]


async def ask_client(
    channel: CallerChannel,
    question: Question,
    client: McpClient,
    *,
    request_id: str,
    id_fields: dict[str, Any],
) -> Answer | str:
    """The client's answer, or why there is none; `WireError` if the client cannot be reached."""
    request = elicitation.params(question, request_id=request_id, id_fields=id_fields, client=client)
    try:
        reply = await channel.call("elicitation/create", request)
    except RemoteError as refused:
        return f"the client could not ask ({label(refused.message, REFUSAL_CHARS)})"
    return read_reply(question, reply)


def read_reply(question: Question, reply: Any) -> Answer | str:
    """The answer in a client's reply, or why there is none."""
    return elicitation.answer(question, reply) or "the client dismissed the question without an answer"


class UnattendedQuestions:
    """Asks, declines or parks the questions of one session that belong to no waiting call."""

    def __init__(self, call: Call, policy: Unattended = "decline", *, asks_everybody: bool = False) -> None:
        """`asks_everybody`: ask clients, too, that do not declare that they can answer."""
        self.on_parked: Callable[[], None] = lambda: None
        """Called when a question is parked."""
        self._channel = call.channel
        self._client = call.client
        self._policy: Unattended = policy
        self._asks_everybody = asks_everybody
        self._session: Session | None = None
        self._id_fields: dict[str, Any] = {}
        self._on_decision: OnDecision = lambda question, how: None
        self._open: dict[str, Question] = {}
        self._working = QuestionTasks()
        """Of the open questions, those that are being asked or declined; the others are parked."""
        self._tasks = TaskSet()

    def bind(self, session: Session, id_fields: dict[str, Any], on_decision: OnDecision) -> None:
        """The session whose questions these are, and the fields that name it. Before its first question."""
        self._session, self._id_fields, self._on_decision = session, id_fields, on_decision

    def attend(self, call: Call) -> None:
        """The client's latest call: its client is asked from now on, on its channel."""
        self._channel, self._client = call.channel, call.client

    @property
    def parked(self) -> list[Question]:
        return [question for key, question in self._open.items() if key not in self._working]

    def release(self) -> list[Question]:
        """Hand over the parked questions: the caller takes care of them from now on."""
        released = self.parked
        for question in released:
            del self._open[question.question_id]
        return released

    async def decide(self, question_id: str, answer: Answer) -> None:
        """Answer a parked question; `QuestionGone` if there is no such question."""
        question = next((each for each in self.parked if each.question_id == question_id), None)
        if question is None:
            raise QuestionGone(question_id)
        await self._answer(question, answer)

    # ── called by the forwarder, on the engine's reader ────────────────────

    def on_question(self, question: Question) -> None:
        self._open[question.question_id] = question
        can_ask = not self._client.is_stateless and elicitation.can_ask(
            question, self._client, presumed=self._asks_everybody
        )
        if can_ask:
            self._work(question, self._ask(question))
        else:
            self._cannot_ask(question, "no call waits for it, and this client cannot be asked otherwise")

    def on_withdrawn(self, gone: Withdrawn) -> None:
        question = self._open.pop(gone.question_id, None)
        self._working.withdraw(gone.question_id)
        if question is not None and gone.is_declined:
            is_closed = self._session is not None and self._session.is_closing
            self._on_decision(question, "session closed" if is_closed else "timed out")

    def close(self) -> None:
        """The session is over."""
        self._working.withdraw_all()
        self._open.clear()

    # ── asking ─────────────────────────────────────────────────────────────

    def _work(self, question: Question, work: Any) -> None:
        self._working.add(question.question_id, self._tasks.spawn(work, "question"))

    async def _ask(self, question: Question) -> None:
        try:
            answer = await ask_client(
                self._channel, question, self._client, request_id="", id_fields=self._id_fields
            )
        except WireError:
            answer = "its client is not connected"
        if isinstance(answer, Answer):
            await self._answer(question, answer)
        else:
            self._cannot_ask(question, answer)

    def _cannot_ask(self, question: Question, why: str) -> None:
        """Park or decline it, as the policy says."""
        if self._policy == "park":
            self._working.release(question.question_id)
            self.on_parked()
            return
        log.warning("Declined, because %s: %s", why, elicitation.wording(question))
        self._work(question, self._answer(question, DECLINE))

    async def _answer(self, question: Question, answer: Answer) -> None:
        assert self._session is not None, "a session has questions only once it is open"
        if self._open.pop(question.question_id, None) is None:
            return  # it was withdrawn, or a call took it over
        self._working.release(question.question_id)
        try:
            await self._session.answer(question.question_id, answer)
        except QuestionGone:
            log.debug("question %s was gone before its answer", question.question_id)
            return
        self._on_decision(question, answer.choice_id)
