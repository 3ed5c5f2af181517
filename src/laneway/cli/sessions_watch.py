"""`laneway sessions watch`: see a live session of another process at work, and answer what it asks."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

import msgspec

from laneway.base.errors import LanewayError, QuestionGone, RemoteError, WireBroken
from laneway.cli.kept import open_store
from laneway.cli.live_sessions import ANSWER_S, Found, add_who, find
from laneway.cli.prompting.asking import Prompter
from laneway.cli.prompting.keyboard import find_keyboard
from laneway.cli.prompting.questions import TerminalQuestions
from laneway.cli.watch_window import Window
from laneway.core.model import Answer, Asked, Event, Question
from laneway.doors.local.call import Visit, visit
from laneway.doors.local.retold import event_of
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
    Seen,
    Snapshot,
    Told,
    Watched,
)
from laneway.wire.messages import METHOD_NOT_FOUND, Raw

EPILOG = """\
Shows what happens from now on: questions to the model, its work, its answers. At a terminal you can
answer what it asks; whoever answers first decides. Leaving with Ctrl-C, Ctrl-D at a question, or a
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
    found = await find(open_store(options.team), options.who)
    view = Lines() if options.json else PersonView(found.seen)
    try:
        async with asyncio.timeout(ANSWER_S) as deadline:
            ears = Ears(view, deadline)
            async with visit(found.spot.path, ears.hear) as visitor:
                view.connect(visitor)
                await visitor.call(WATCH, {"agent_id": found.seen.agent_id}, reply=Watched)
    except TimeoutError:
        raise WireBroken(f"Process {found.spot.pid} did not answer within {ANSWER_S:g} s.") from None
    except RemoteError as refused:
        if refused.code == NOT_HERE:  # closed since we found it
            await view.end(found.seen)
            return 0
        if refused.code in (TOO_MANY, FROM_AGENT):
            raise LanewayError(refused.message) from None
        raise gone(found) from None
    except WireBroken:
        raise gone(found) from None
    finally:
        await view.aclose()
    await view.end(found.seen)
    return 0


class Ears:
    """What the process tells, until it answers. Only the first word has a deadline."""

    def __init__(self, view: PersonView | Lines, deadline: asyncio.Timeout) -> None:
        self._view = view
        self._deadline = deadline
        self._lost = 0

    def hear(self, method: str, params: Raw) -> None:
        if method == SNAPSHOT:
            self._deadline.reschedule(None)
            self._view.begin(msgspec.json.decode(params, type=Snapshot))
        elif method == EVENT:
            told = msgspec.json.decode(params, type=Told)
            if told.lost > self._lost:
                self._view.miss(told.lost - self._lost)
                self._lost = told.lost
            self._view.show(told.event)


def gone(found: Found) -> WireBroken:
    return WireBroken(
        f"The process of {found.seen.identity} ({found.spot.pid}) has ended. "
        "`laneway sessions` shows what became of its sessions."
    )


class Lines:
    """One JSON object a line, as the events come."""

    def connect(self, visitor: Visit) -> None:
        pass

    def begin(self, snapshot: Snapshot) -> None:
        self._print({"event": "session", **msgspec.to_builtins(snapshot.session)})
        for question in snapshot.questions:
            self.show({"event": "asked", "question": msgspec.to_builtins(question)})

    def miss(self, count: int) -> None:
        self._print({"event": "lost", "count": count})

    def show(self, event: dict[str, Any]) -> None:
        self._print(event)

    async def end(self, seen: Seen) -> None:
        pass  # the `closed` event has said so

    async def aclose(self) -> None:
        pass

    def _print(self, data: dict[str, Any]) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(data) + b"\n")
        sys.stdout.buffer.flush()


class PersonView:
    """For a person: a window, and questions that can be answered where there is a terminal."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._window = Window()
        self._visitor: Visit | None = None
        keyboard = find_keyboard()
        self._questions: TerminalQuestions | None = None
        if keyboard is not None and sys.stderr.isatty():
            self._questions = TerminalQuestions(self._window, Prompter(keyboard, cwd=seen.cwd), self._deliver)

    def connect(self, visitor: Visit) -> None:
        self._visitor = visitor

    def begin(self, snapshot: Snapshot) -> None:
        self._window.begin(snapshot.session)
        for question in snapshot.questions:
            self._take(Asked(question=question))

    def miss(self, count: int) -> None:
        self._window.miss(count)

    def show(self, told: dict[str, Any]) -> None:
        event = event_of(told)
        if event is not None:  # else a newer Laneway's, which this one cannot draw
            self._take(event)

    def _take(self, event: Event) -> None:
        if self._questions is not None:
            self._questions.on_event(event)
        else:
            self._window.show(event)

    async def _deliver(self, question: Question, answer: Answer | None) -> None:
        if answer is None or self._visitor is None:
            self._window.say(f"The question {ELSEWHERE}.")
            return
        given = {
            "agent_id": self._seen.agent_id,
            "question_id": question.question_id,
            "choice_id": answer.choice_id,
            "values": answer.values,
        }
        try:
            await self._visitor.call(ANSWER, given, reply=Decided)
        except RemoteError as refused:
            if refused.code == QUESTION_SETTLED:
                raise QuestionGone(question.question_id) from None
            if refused.code in (METHOD_NOT_FOUND, NOT_A_PERSON):
                why = (
                    "an older Laneway" if refused.code == METHOD_NOT_FOUND else "you are not at its terminal"
                )
                self._window.say(f"It takes no answer from here ({why}): the question {ELSEWHERE}.")
                return
            self._window.say(f"The answer was refused: {refused.message}")

    async def aclose(self) -> None:
        if self._questions is not None:
            await self._questions.aclose()

    async def end(self, seen: Seen) -> None:
        self._window.end(seen)
