"""Follows one turn from its first event to its end, and has its questions answered at the terminal."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Protocol

from laneway.core.model import DECLINE, Accepted, Answer, Event, Question, Text, TurnDone
from laneway.core.session import Session
from laneway.core.turn import Turn, TurnResult
from laneway.terminal.prompting.asking import Prompter
from laneway.terminal.prompting.drawing import draw_question, field_rows
from laneway.terminal.prompting.questions import Canvas, TerminalQuestions
from laneway.terminal.style import Style, width

NOBODY = "declined: nobody is at a terminal to ask"
LEFT = "declined: the input has ended"


class TurnView(Canvas, Protocol):
    """Shows the events of one turn."""

    def on_event(self, event: Event) -> None:
        """Takes every event at once; `show` gets those that are no questions when the screen is free."""
        ...

    async def wait_drawable(self) -> None: ...


class Follower:
    """Shows one turn in a view. `is_stopped` says afterwards whether an answer of the person ended it."""

    def __init__(self, session: Session, view: TurnView, prompter: Prompter | None) -> None:
        self.is_stopped = False
        self.on_accepted: Callable[[], None] = lambda: None
        """Called when Codex has the prompt: from then on the thread can be continued."""
        self._session = session
        self._view = view
        self._prompter = prompter
        self._questions = TerminalQuestions(view, prompter, self._deliver)

    async def follow(self, turn: Turn) -> TurnResult:
        try:
            async for event in turn.events:
                self._view.on_event(event)
                if isinstance(event, Accepted):
                    self.on_accepted()
                elif isinstance(event, Text):
                    await self._view.wait_drawable()
                elif isinstance(event, TurnDone):
                    await self._questions.aclose()
                self._questions.on_event(event)
                if isinstance(event, TurnDone):
                    break
        finally:
            await self._questions.aclose()
        return await turn.result()

    async def _deliver(self, question: Question, answer: Answer | None) -> None:
        if answer is None:
            answer = DECLINE
            self._tell_declined(question)
        choice = next((each for each in question.choices if each.choice_id == answer.choice_id), None)
        self.is_stopped = self.is_stopped or (choice is not None and choice.grants == "stop")
        await self._session.answer(question.question_id, answer)

    def _tell_declined(self, question: Question) -> None:
        style = Style(sys.stderr)
        if self._prompter is None:
            drawn = draw_question(question, style, width(sys.stderr))
            fields = [
                row
                for field in question.fields
                for row in field_rows(
                    field.text or field.header,
                    [option.label for option in field.options],
                    width(sys.stderr),
                    [option.description for option in field.options],
                )
            ]
            for row in (drawn.title, *drawn.subject, *drawn.about, *fields):
                print(row, file=sys.stderr)
        print(style.yellow(f"  {NOBODY if self._prompter is None else LEFT}"), file=sys.stderr, flush=True)


class Interrupts:
    """Handles Ctrl-C: the first stops the turn, the second ends the process."""

    def __init__(self, turn: Turn, on_leaving: Callable[[], None] = lambda: None) -> None:
        self._turn = turn
        self._on_leaving = on_leaving
        self._count = 0

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal)

    def __exit__(self, *exc: object) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        self._count += 1
        if self._count == 1:
            self._turn.cancel()
        else:
            # At once, whatever hangs: the guardian ends Codex when our pipe to it closes.
            self._on_leaving()
            sys.stdout.flush()
            os._exit(130)
