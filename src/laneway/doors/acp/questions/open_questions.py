"""The questions of one session while they are open: each is asked, answered, or taken back.

What can only be asked in the conversation is said there, one after the other. The prompt must end then
(`wait_words`), for another one to bring the answer; prompts that came before the question are held.
"""

from __future__ import annotations

import asyncio
import logging

from laneway.base.errors import EngineError, QuestionGone, SessionClosed
from laneway.base.log import bound
from laneway.core.model import Answer, Question, Withdrawn
from laneway.core.prompt_queue import PromptQueue
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
        voice: UpdateSink,
        line: ClientChannel,
        client: EditorClient,
        queue: PromptQueue,
        *,
        session_id: str,
        cwd: str,
    ) -> None:
        self._session = session
        self._session_id = session_id
        self._voice = voice
        self._line = line
        self._client = client
        self._queue = queue
        self._cwd = cwd
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._spoken: list[InText] = []
        """Those that wait for the next prompt: the first has been said."""
        self._has_words_to_wait_for = asyncio.Event()
        self._urls: list[str] = []

    @property
    def waits_for_words(self) -> bool:
        return bool(self._spoken)

    async def wait_words(self) -> None:
        """Until a question can only be answered by another prompt."""
        await self._has_words_to_wait_for.wait()

    # ── told on the engine's reader ────────────────────────────────────────

    def on_question(self, question: Question) -> None:
        asking = asyncio.get_running_loop().create_task(self._ask(question))
        self._asking[question.question_id] = asking
        asking.add_done_callback(lambda _: self._asking.pop(question.question_id, None))

    def on_withdrawn(self, gone: Withdrawn) -> None:
        asking = self._asking.pop(gone.question_id, None)
        if asking is not None:
            asking.cancel()
        in_words = [asked.question.question_id for asked in self._spoken]
        if gone.is_declined and not self._session.is_closing and (asking or gone.question_id in in_words):
            self._voice.notice("warning", "Declined, because nobody answered in time.")
        self._spoken = [asked for asked in self._spoken if asked.question.question_id != gone.question_id]
        if gone.question_id in in_words:
            self._look(is_new=in_words[0] == gone.question_id)

    def on_gone(self) -> None:
        """Codex has ended: nobody wants an answer."""
        for asking in self._asking.values():
            asking.cancel()
        self.forget_words()

    def forget_words(self) -> None:
        """The next prompt is no answer any more."""
        self._spoken.clear()
        self._look()

    def ask_again(self) -> None:
        """Say what waits for words, if anything does."""
        if self._spoken:
            self._voice.say(self._spoken[0].text)

    def _look(self, *, is_new: bool = False) -> None:
        """Keep everybody up to date who waits for words, or must wait; say what is now asked first."""
        if self._spoken:
            if is_new:
                self._voice.say(self._spoken[0].text)
                self._queue.hold()
            self._has_words_to_wait_for.set()
        else:
            self._has_words_to_wait_for.clear()
            self._queue.let_go()

    # ── asking ─────────────────────────────────────────────────────────────

    async def _ask(self, question: Question) -> None:
        thread_id = self._session.thread_id
        with bound(session=self._session_id, turn=question.turn_id, item=question.item_id):
            self._voice.flush()
            call_id = self._voice.call_of(question)
            settled = await ask_client.ask(
                question,
                self._line,
                self._client,
                self._session_id,
                thread_id,
                cwd=self._cwd,
                call_id=call_id,
                permits=self._voice.permits(call_id),
            )
            if call_id is not None:
                self._voice.retell(call_id)
            self._asking.pop(question.question_id, None)  # its own answer must not cancel it
            if isinstance(settled, InText):
                self._speak(settled)
                return
            log.info("question %s: %s", question.kind, settled.answer.choice_id)
            if settled.note and not self._queue.is_cancelling:
                self._voice.notice("warning", settled.note)
            if settled.url_id:
                self._urls.append(settled.url_id)
            await self._answer(question, settled.answer)

    async def _answer(self, question: Question, answer: Answer) -> None:
        try:
            await self._session.answer(question.question_id, answer)
        except (QuestionGone, SessionClosed, EngineError) as gone:
            log.debug("question %s was gone before its answer: %s", question.question_id, gone)

    def _speak(self, asked: InText) -> None:
        self._spoken.append(asked)
        self._look(is_new=len(self._spoken) == 1)

    async def hear(self, text: str) -> bool:
        """A prompt's words for the question that was said; whether the turn can go on."""
        asked = self._spoken[0]
        answer = questions_in_text.from_text(asked, text)
        self._spoken[:1] = [answer] if isinstance(answer, InText) else []
        self._look(is_new=True)
        if isinstance(answer, Answer):
            await self._answer(asked.question, answer)
        return not self._spoken

    def end_pages(self) -> None:
        """The turn is over: pages that the client opened for it have served their purpose."""
        for url_id in self._urls:
            self._line.notify("elicitation/complete", {"elicitationId": url_id})
        self._urls.clear()
