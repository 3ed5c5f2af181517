"""`laneway sessions watch`: shows a live session of another process; the user can answer its questions."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

import msgspec

from laneway.base.errors import LanewayError, QuestionGone, RemoteError, WireBroken
from laneway.cli.live_sessions import add_who, find
from laneway.cli.stores import open_store
from laneway.cli.watch_window import Window
from laneway.core.model import Answer, Asked, Event, Question
from laneway.doors.local.client import LocalClient, connect
from laneway.doors.local.event_decoding import event_of
from laneway.doors.local.scan import ANSWER_S, LiveSession
from laneway.doors.local.shapes import (
    ANSWER,
    EVENT,
    FROM_AGENT,
    NOT_A_PERSON,
    NOT_HERE,
    QUESTION_SETTLED,
    SNAPSHOT,
    TOO_MANY,
    WATCH,
    Decided,
    LiveSessionInfo,
    SessionSnapshot,
    Watched,
    WatchedEvent,
)
from laneway.terminal.prompting.asking import Prompter
from laneway.terminal.prompting.keyboard import find_keyboard
from laneway.terminal.prompting.questions import TerminalQuestions
from laneway.wire.messages import METHOD_NOT_FOUND, Raw

EPILOG = """\
Shows what happens from now on: questions to the model, its work, its answers. At a terminal you can
answer its questions; the first answer counts. Leaving with Ctrl-C, Ctrl-D at a question, or a
slow terminal does not touch the session.

exit codes: 0 the session was closed, 1 its process ended or does not answer,
            2 there is no such live session, 130 you left

  laneway sessions watch reviewer
  laneway sessions watch reviewer --json | grep turn_done
"""
ELSEWHERE = "waits for an answer where the session was started"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Watch a live session of another process."
    parser.epilog = EPILOG
    add_who(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    try:
        return asyncio.run(watch(options))
    except KeyboardInterrupt:
        print("\nlaneway: you have left; the session goes on", file=sys.stderr)
        return 130


async def watch(options: argparse.Namespace) -> int:
    session = await find(open_store(options.team), options.who)
    view = JsonLinesView() if options.json else PersonView(session.info)
    try:
        async with asyncio.timeout(ANSWER_S) as deadline:
            listener = WatchListener(view, deadline)
            async with connect(session.socket.path, listener.on_notification) as client:
                view.connect(client)
                await client.call(WATCH, {"agent_id": session.info.agent_id}, reply=Watched)
    except TimeoutError:
        raise WireBroken(f"Process {session.socket.pid} did not answer within {ANSWER_S:g} s.") from None
    except RemoteError as refused:
        if refused.code == NOT_HERE:  # closed since we found it
            await view.end(session.info)
            return 0
        if refused.code in (TOO_MANY, FROM_AGENT):
            raise LanewayError(refused.message) from None
        raise process_gone(session) from None
    except WireBroken:
        raise process_gone(session) from None
    finally:
        await view.aclose()
    await view.end(session.info)
    return 0


class WatchListener:
    """Passes the notifications of the process to a view. Only the first one has a deadline."""

    def __init__(self, view: PersonView | JsonLinesView, deadline: asyncio.Timeout) -> None:
        self._view = view
        self._deadline = deadline
        self._lost = 0

    def on_notification(self, method: str, params: Raw) -> None:
        if method == SNAPSHOT:
            self._deadline.reschedule(None)
            self._view.begin(msgspec.json.decode(params, type=SessionSnapshot))
        elif method == EVENT:
            watched = msgspec.json.decode(params, type=WatchedEvent)
            if watched.lost > self._lost:
                self._view.miss(watched.lost - self._lost)
                self._lost = watched.lost
            self._view.show(watched.event)


def process_gone(session: LiveSession) -> WireBroken:
    return WireBroken(
        f"The process of {session.info.identity} ({session.socket.pid}) has ended. "
        "`laneway sessions` shows what became of its sessions."
    )


class JsonLinesView:
    """Prints one JSON object per event and line."""

    def connect(self, client: LocalClient) -> None:
        pass

    def begin(self, snapshot: SessionSnapshot) -> None:
        self._print({"event": "session", **msgspec.to_builtins(snapshot.session)})
        for question in snapshot.questions:
            self.show({"event": "asked", "question": msgspec.to_builtins(question)})

    def miss(self, count: int) -> None:
        self._print({"event": "lost", "count": count})

    def show(self, event: dict[str, Any]) -> None:
        self._print(event)

    async def end(self, session: LiveSessionInfo) -> None:
        pass  # the `closed` event has said so

    async def aclose(self) -> None:
        pass

    def _print(self, data: dict[str, Any]) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(data) + b"\n")
        sys.stdout.buffer.flush()


class PersonView:
    """Shows the session to a person, who can answer its questions if there is a terminal."""

    def __init__(self, session: LiveSessionInfo) -> None:
        self._session = session
        self._window = Window()
        self._client: LocalClient | None = None
        keyboard = find_keyboard()
        self._questions: TerminalQuestions | None = None
        if keyboard is not None and sys.stderr.isatty():
            self._questions = TerminalQuestions(
                self._window, Prompter(keyboard, cwd=session.cwd), self._deliver
            )

    def connect(self, client: LocalClient) -> None:
        self._client = client

    def begin(self, snapshot: SessionSnapshot) -> None:
        self._window.begin(snapshot.session)
        for question in snapshot.questions:
            self._take(Asked(question=question))

    def miss(self, count: int) -> None:
        self._window.miss(count)

    def show(self, data: dict[str, Any]) -> None:
        event = event_of(data)
        if event is not None:  # else it is of a newer Laneway, and unknown here
            self._take(event)

    def _take(self, event: Event) -> None:
        if self._questions is not None:
            self._questions.on_event(event)
        else:
            self._window.show(event)

    async def _deliver(self, question: Question, answer: Answer | None) -> None:
        if answer is None or self._client is None:
            self._window.say(f"The question {ELSEWHERE}.")
            return
        params = {
            "agent_id": self._session.agent_id,
            "question_id": question.question_id,
            "choice_id": answer.choice_id,
            "values": answer.values,
            "words": answer.words,
        }
        try:
            await self._client.call(ANSWER, params, reply=Decided)
        except RemoteError as refused:
            if refused.code == QUESTION_SETTLED:
                raise QuestionGone(question.question_id) from None
            if refused.code in (METHOD_NOT_FOUND, NOT_A_PERSON):
                reason = (
                    "an older Laneway" if refused.code == METHOD_NOT_FOUND else "you are not at its terminal"
                )
                self._window.say(f"It takes no answer from here ({reason}): the question {ELSEWHERE}.")
                return
            self._window.say(f"The answer was refused: {refused.message}")

    async def aclose(self) -> None:
        if self._questions is not None:
            await self._questions.aclose()

    async def end(self, session: LiveSessionInfo) -> None:
        self._window.end(session)
