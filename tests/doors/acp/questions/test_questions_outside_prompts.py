"""Questions in a turn that no prompt asked for: asked all the same, and in no later prompt's way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import WireBroken
from laneway.core.model import Asked, Question, TurnDone, TurnStarted, Withdrawn
from laneway.core.ports import TextPart
from laneway.core.prompt_queue import PromptQueue as Queue
from laneway.core.session import Session
from laneway.doors.acp.client import client_of
from laneway.doors.acp.questions.open_questions import OpenQuestions
from laneway.doors.acp.sessions.prompt_service import PromptService
from laneway.doors.acp.updates.updates_v1 import UpdatesV1
from laneway.testing.engine import HandThread
from tests.commands.hand_session import HandSession
from tests.core.support import stage, until
from tests.doors.acp.asking import PERMISSION, WHY, user_input
from tests.doors.acp.hand import SESSION
from tests.doors.acp.reader import Reader

ENDED = {"stopReason": "end_turn"}


class Listener:
    """What `SessionEvents` does with events, as far as questions go."""

    def __init__(self, questions: OpenQuestions) -> None:
        self._questions = questions

    def on_question(self, question: Question) -> None:
        self._questions.on_question(question)

    def on_withdrawn(self, gone: Withdrawn) -> None:
        self._questions.on_withdrawn(gone)

    def on_turn(self, event: TurnStarted | TurnDone) -> None:
        if isinstance(event, TurnDone):
            self._questions.drop_text_questions()

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: None


class Editor:
    """A session with a client in the test's hand that shows no forms."""

    def __init__(self, session: Session, thread: HandThread, hand: Reader, service: PromptService) -> None:
        self.session = session
        self.thread = thread
        self.hand = hand
        self._service = service

    def begin_own(self) -> None:
        """Codex starts a turn that nobody asked it for."""
        self.thread.turn_id = "codex-own"
        self.thread.emit(TurnStarted(turn_id="codex-own"))

    def ask_in_words(self) -> str:
        """Codex asks what can only be answered in words."""
        question = msgspec.structs.replace(user_input(WHY), question_id="q", turn_id=self.thread.turn_id)
        self.thread.open_questions.add("q")
        self.thread.emit(Asked(question=question))
        return "q"

    def prompt(self, text: str) -> asyncio.Task[dict[str, Any]]:
        return asyncio.get_running_loop().create_task(self._service.prompt((TextPart(text),)))

    def said(self) -> str:
        chunks = [each for each in self.hand.updates if each["sessionUpdate"] == "agent_message_chunk"]
        return "\n".join(each["content"]["text"] for each in chunks)


@asynccontextmanager
async def editor(tmp_path: Path) -> AsyncIterator[Editor]:
    async with stage() as here:
        session, thread = await here.session()
        hand, client, queue = Reader(), client_of({"clientCapabilities": {}}), Queue()
        sink = UpdatesV1(hand, client, here.clock)
        questions = OpenQuestions(session, sink, hand, client, queue, session_id=SESSION, cwd="/work")
        commands: Any = HandSession(tmp_path)
        service = PromptService(
            session, sink, questions, queue, commands, lambda spec: spec, steers=False, is_titled=True
        )
        session.attach(sink)
        sink.open(SESSION, thread.info.thread_id, "/work", Listener(questions))
        async with asyncio.timeout(30):
            yield Editor(session, thread, hand, service)


async def test_an_approval_in_a_turn_that_no_prompt_asked_for_is_asked_of_the_client(tmp_path: Path) -> None:
    """As in any other turn."""
    async with editor(tmp_path) as here:
        here.begin_own()
        here.thread.ask("q")
        call = await here.hand.asked()
        assert call.method == PERMISSION
        yes = next(option for option in call.params["options"] if option["kind"] == "allow_once")
        call.reply.set_result({"outcome": {"outcome": "selected", "optionId": yes["optionId"]}})
        await until(lambda: "q" in here.thread.answers)
        assert here.thread.answers["q"].choice_id == "accept"
        here.thread.end()


async def test_a_turn_does_not_go_on_with_the_no_of_a_client_that_went_away(tmp_path: Path) -> None:
    """Such a no is no decision: the turn is interrupted with it."""
    async with editor(tmp_path) as here:
        here.begin_own()
        here.thread.is_obedient = False
        here.thread.ask("q")
        call = await here.hand.asked()
        call.reply.set_exception(WireBroken("gone"))
        await until(lambda: "q" in here.thread.answers and here.thread.interrupted == ["codex-own"])
        here.thread.end("interrupted")


async def test_what_such_a_turn_asks_in_words_is_answered_by_the_next_prompt(tmp_path: Path) -> None:
    """That prompt is over with it, and does not wait behind the turn that it has just answered."""
    async with editor(tmp_path) as here:
        here.begin_own()
        here.ask_in_words()
        await until(lambda: "Why that one?" in here.said())
        assert await here.prompt("because it is blue") == ENDED
        await until(lambda: "q" in here.thread.answers)
        assert here.thread.answers["q"].values == {"why": "because it is blue"}
        assert here.thread.started == []
        here.thread.end()
        reply = here.prompt("go on")
        await until(lambda: here.thread.started)
        here.thread.end(text="done")
        assert await reply == ENDED


async def test_a_prompt_from_before_the_question_is_no_answer_to_it(tmp_path: Path) -> None:
    """It waits its turn behind the one that Codex started; the next prompt answers, and both go on."""
    async with editor(tmp_path) as here:
        here.begin_own()
        first = here.prompt("do this")
        await until(lambda: here.session.status == "busy" and not first.done())
        await asyncio.sleep(0)
        here.ask_in_words()
        await until(lambda: "Why that one?" in here.said())
        assert await first == ENDED  # what it waits for can only be said by another prompt
        answer = here.prompt("because it is blue")
        await until(lambda: "q" in here.thread.answers)
        assert here.thread.answers["q"].values == {"why": "because it is blue"}
        here.thread.end()
        await until(lambda: here.thread.started)
        assert [part.text for part in here.thread.started[0][1].parts if isinstance(part, TextPart)] == [
            "do this"
        ]
        here.thread.end(text="done")
        assert await answer == ENDED


async def test_a_question_whose_turn_is_over_is_not_answered_by_the_next_prompt(tmp_path: Path) -> None:
    """It was declined with the turn; what comes next is a prompt as any other."""
    async with editor(tmp_path) as here:
        here.begin_own()
        here.ask_in_words()
        await until(lambda: "Why that one?" in here.said())
        here.thread.end()
        await until(lambda: "q" in here.thread.answers)
        reply = here.prompt("something else")
        await until(lambda: here.thread.started)
        here.thread.end(text="done")
        assert await reply == ENDED
