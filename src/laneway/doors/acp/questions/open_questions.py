"""Open questions of one session: asks the client, delivers the answer, cancels on withdrawal.

Questions that can only be asked as text in the conversation are asked one at a time. The running prompt
must end then (`wait_text_question`), because the next prompt has the answer; the queue holds prompts
that were sent before the question.
"""

from __future__ import annotations

import asyncio
import logging

from laneway.base.errors import EngineError, QuestionGone, SessionClosed
from laneway.base.log import bound
from laneway.core.background import TaskSet
from laneway.core.model import Answer, Question, Withdrawn
from laneway.core.prompt_queue import PromptQueue
from laneway.core.question_tasks import QuestionTasks
from laneway.core.session import Session
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.questions import ask_client
from laneway.doors.acp.updates.update_sink import UpdateSink
from laneway.rendering import questions_in_text
from laneway.rendering.questions_in_text import InText

log = logging.getLogger(__name__)


class OpenQuestions:
    def __init__(
        self,
        session: Session,
        sink: UpdateSink,
        channel: ClientChannel,
        client: EditorClient,
        queue: PromptQueue,
        *,
        session_id: str,
        cwd: str,
    ) -> None:
        self._session = session
        self._session_id = session_id
        self._sink = sink
        self._channel = channel
        self._client = client
        self._queue = queue
        self._cwd = cwd
        self._asking = QuestionTasks()
        self._tasks = TaskSet()
        self._in_text: list[InText] = []
        """Questions that the next prompts answer; only the first has been sent."""
        self._has_text_question = asyncio.Event()
        self._urls: list[str] = []

    @property
    def waits_for_text(self) -> bool:
        return bool(self._in_text)

    async def wait_text_question(self) -> None:
        """Wait until there is a question that only the next prompt can answer."""
        await self._has_text_question.wait()

    # ── called on the engine's reader ──────────────────────────────────────

    def on_question(self, question: Question) -> None:
        self._asking.add(question.question_id, self._tasks.spawn(self._ask(question), "question"))

    def on_withdrawn(self, gone: Withdrawn) -> None:
        was_asking = self._asking.withdraw(gone.question_id)
        text_ids = [in_text.question.question_id for in_text in self._in_text]
        if gone.is_declined and not self._session.is_closing and (was_asking or gone.question_id in text_ids):
            self._sink.send_notice("warning", "Declined, because nobody answered in time.")
        self._in_text = [
            in_text for in_text in self._in_text if in_text.question.question_id != gone.question_id
        ]
        if gone.question_id in text_ids:
            self._update_text_question(is_new=text_ids[0] == gone.question_id)

    def on_gone(self) -> None:
        """Cancel all questions: Codex has ended."""
        self._asking.withdraw_all()
        self.drop_text_questions()

    def drop_text_questions(self) -> None:
        """Forget the questions in text: the next prompt is not an answer."""
        self._in_text.clear()
        self._update_text_question()

    def repeat(self) -> None:
        """Send the question that waits for the next prompt once more, if there is one."""
        if self._in_text:
            self._sink.send_message(self._in_text[0].text)

    def _update_text_question(self, *, is_new: bool = False) -> None:
        """Update the event and the queue; `is_new`: send the first question in text, which has changed."""
        if self._in_text:
            if is_new:
                self._sink.send_message(self._in_text[0].text)
                self._queue.hold()
            self._has_text_question.set()
        else:
            self._has_text_question.clear()
            self._queue.release()

    # ── asking ─────────────────────────────────────────────────────────────

    async def _ask(self, question: Question) -> None:
        thread_id = self._session.thread_id
        with bound(session=self._session_id, turn=question.turn_id, item=question.item_id):
            self._sink.flush()
            call_id = self._sink.call_id_of(question)
            outcome = await ask_client.ask(
                question,
                self._channel,
                self._client,
                self._session_id,
                thread_id,
                cwd=self._cwd,
                call_id=call_id,
                permission=self._sink.permission_request(call_id),
            )
            if call_id is not None:
                self._sink.restore_call(call_id)
            self._asking.release(question.question_id)
            if isinstance(outcome, InText):
                self._ask_in_text(outcome)
                return
            log.info("question %s: %s", question.kind, outcome.answer.choice_id)
            if outcome.note and not self._queue.is_cancelling:
                self._sink.send_notice("warning", outcome.note)
            if outcome.url_id:
                self._urls.append(outcome.url_id)
            if outcome.is_client_gone:
                self._session.cancel_all()  # before the answer, with which the turn would go on
            await self._answer(question, outcome.answer)

    async def _answer(self, question: Question, answer: Answer) -> None:
        try:
            await self._session.answer(question.question_id, answer)
        except (QuestionGone, SessionClosed, EngineError) as gone:
            log.debug("question %s was gone before its answer: %s", question.question_id, gone)

    def _ask_in_text(self, in_text: InText) -> None:
        self._in_text.append(in_text)
        self._update_text_question(is_new=len(self._in_text) == 1)

    async def answer_by_text(self, text: str) -> bool:
        """Read a prompt's text as the answer to the question in text; true if no other one is open."""
        in_text = self._in_text[0]
        answer = questions_in_text.from_text(in_text, text)
        self._in_text[:1] = [answer] if isinstance(answer, InText) else []
        self._update_text_question(is_new=True)
        if isinstance(answer, Answer):
            await self._answer(in_text.question, answer)
        return not self._in_text

    def complete_urls(self) -> None:
        """Send `elicitation/complete` for the pages that the client opened: the turn is over."""
        for url_id in self._urls:
            self._channel.notify("elicitation/complete", {"elicitationId": url_id})
        self._urls.clear()
