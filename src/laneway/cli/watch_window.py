"""Draws a watched session: the answers on standard output, everything else on standard error."""

from __future__ import annotations

import sys

from laneway.base.counting import counted
from laneway.base.engines import BACKENDS
from laneway.base.plain import MAX_QUOTED_CHARS, code_label, label
from laneway.core.model import (
    Asked,
    Closed,
    EngineBack,
    EngineGone,
    Event,
    Notice,
    Question,
    TurnDone,
    TurnStarted,
    UserSaid,
    Withdrawn,
)
from laneway.doors.local.shapes import LiveSessionInfo
from laneway.terminal import Style
from laneway.terminal.foreign import fenced
from laneway.terminal.prompting.drawing import draw_question
from laneway.terminal.screen import Screen
from laneway.terminal.style import width

NOTICE_CHARS = 1000
"""Of the reason why a turn failed: a provider's error may be a page of JSON."""


class Window:
    """Draws the events of any number of turns; a `Canvas` for `TerminalQuestions`."""

    def __init__(self) -> None:
        self._screen = Screen()
        self._style = Style(sys.stderr)
        self._asked: set[str] = set()

    def begin(self, session: LiveSessionInfo) -> None:
        self._screen.engine = BACKENDS.get(session.backend, session.backend)
        self._screen.cwd = session.cwd or ""
        where = " ".join(part for part in (session.cwd, session.branch and f"({session.branch})") if part)
        name = session.identity or session.agent_id
        head = code_label(
            f"{name}  {session.state}  {counted(session.turns, 'turn')}  {where}",
            MAX_QUOTED_CHARS,
        )
        about = (
            f"  {session.agent_id}  thread {session.thread_id}  team {session.team}  process {session.pid}"
        )
        self._screen.note(self._style.bold(head), self._style.dim(code_label(about, MAX_QUOTED_CHARS)))

    def miss(self, count: int) -> None:
        lost = counted(count, "event was", "events were")
        self._screen.note(self._style.yellow(f"  {lost} lost: this terminal was too slow"))

    def end(self, session: LiveSessionInfo) -> None:
        self._screen.note(self._style.dim(f"session {code_label(session.agent_id)} was closed"))

    def pause(self) -> None:
        self._screen.pause()

    def resume(self) -> None:
        self._screen.resume()

    def say(self, text: str) -> None:
        self._screen.say(text)

    def show(self, event: Event) -> None:
        style, note = self._style, self._screen.note
        match event:
            case TurnStarted():
                note(style.dim("── a turn begins"))
            case UserSaid():
                note(*fenced(event.text, width(sys.stderr), mark=style.bold("» "), goes_on="  "))
            case Asked(question=question):
                self._show_question(question)
            case Withdrawn() if event.question_id in self._asked:
                self._asked.discard(event.question_id)
                outcome = "declined, because nobody decided in time" if event.is_declined else "settled"
                note(style.dim(f"  the question is {outcome}"))
            case TurnDone():
                self._screen.show(event)
                reason = f": {label(event.failure.message, NOTICE_CHARS)}" if event.failure else ""
                note(style.dim(f"── the turn is {event.status}{reason}"))
            case Notice(level="error", will_retry=False):
                note(*map(style.red, fenced(event.message, width(sys.stderr), mark="  ! ")))
            case EngineGone():
                note(style.red(f"  Codex ended: {label(event.how)}"))
            case EngineBack():
                note(style.dim("  Codex is back"))
            case Closed():
                pass  # said at the end
            case _:
                self._screen.show(event)

    def _show_question(self, question: Question) -> None:
        """Show a question that cannot be answered at this terminal."""
        self._asked.add(question.question_id)
        drawn = draw_question(question, self._style, width(sys.stderr))
        waits = self._style.dim("  waits for an answer where the session was started")
        self._screen.note(drawn.title, *drawn.subject, *drawn.about, waits)
