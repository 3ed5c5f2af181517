"""Shows the events of a turn to a person: the answer on standard output, the work on standard error.

Draws events in their order and never redraws: only the status line is erased.
"""

from __future__ import annotations

import sys
from typing import Literal, TextIO

import msgspec

from laneway.base.counting import counted
from laneway.base.engines import CODEX
from laneway.core.model import Activity, Diff, Event, Notice, Output, Plan, Text, Thought, TurnDone, Usage
from laneway.rendering.activities import end_note
from laneway.rendering.titles import CUT, look_title
from laneway.terminal.answer import AnswerWriter, PlainAnswer, RawAnswer
from laneway.terminal.changes import diff_rows
from laneway.terminal.foreign import fenced, label
from laneway.terminal.output import LiveOutput, excerpt
from laneway.terminal.status import StatusLine
from laneway.terminal.style import Style, width

MARKS = {"pending": "○", "running": "◐", "completed": "●"}
MAX_DIFF_ROWS = 60
"""Of the diff of a whole turn, shown at its end. Each edit was shown when it was made."""
THOUGHT = "  ┄ "
"""Before each line of the model's reasoning."""
DOING = {
    "command": "Running",
    "edit": "Editing",
    "read": "Looking:",
    "search": "Searching",
    "mcp": "Calling",
    "tool": "Calling",
    "agent": "Working with",
    "image": "Looking at",
}


class Detail(msgspec.Struct, frozen=True):
    """How much is shown. `hint` names the flag that shows what is left out, if there is one."""

    is_full: bool = False
    with_thoughts: bool = False
    hint: str = ""


class Screen:
    """Draws each event by `show`. The caller starts and closes the status line, if there is one."""

    def __init__(
        self,
        out: TextIO | None = None,
        side: TextIO | None = None,
        *,
        answer: AnswerWriter | None = None,
        status: StatusLine | None = None,
        detail: Detail = Detail(),  # noqa: B008  frozen
    ) -> None:
        out = out or sys.stdout
        self._side = side or sys.stderr
        self._answer = answer or (PlainAnswer(out) if out.isatty() else RawAnswer(out))
        self._status = status
        self._detail = detail
        self._style = Style(self._side)
        self._has_gaps = out.isatty() and self._side.isatty()
        """Whether both streams are terminals: then an empty line separates work and answer."""
        self._drawn_last: Literal["", "work", "answer"] = ""
        self._message_id = ""
        """Id of the message that is being written."""
        self._thought = ""
        self._thought_id = ""
        self._newest_id = ""
        """Id of the activity that began last."""
        self._outputs: dict[str, LiveOutput] = {}
        self._diff = ""
        self._tokens_before: int | None = None
        """Tokens that the thread had used before this turn."""
        self.tokens = 0
        self.engine = CODEX
        """The name of the engine that works."""
        self.cwd = ""
        """The session's folder: paths below it are shown short."""

    # ── questions, notes and the status line ───────────────────────────────

    @property
    def is_free(self) -> bool:
        """Whether the cursor is on an empty line."""
        return self._answer.is_at_line_start

    def answer_with(self, answer: AnswerWriter) -> None:
        """Use another writer for the answer from now on."""
        self._answer = answer

    def pause(self) -> None:
        """Stop drawing while a question is on the screen."""
        self._end_thought()
        self._answer.interrupt()
        if self._status is not None:
            self._status.pause()

    def resume(self) -> None:
        if self._status is not None:
            self._status.resume()

    def say(self, text: str) -> None:
        self.note(self._style.dim(f"  {text}"))

    def note(self, *rows: str) -> None:
        """Print rows on standard error."""
        if not rows:
            return
        self._erase_status()
        self._answer.interrupt()
        self._separate("work")
        print("\n".join(rows), file=self._side, flush=True)

    def end_message(self) -> None:
        self._erase_status()
        self._answer.end_message()
        self._message_id = ""

    def _separate(self, what: Literal["work", "answer"]) -> None:
        """Print an empty line between the work and the answer."""
        if self._has_gaps and self._drawn_last not in ("", what):
            print(file=self._side, flush=True)
        self._drawn_last = what

    def _erase_status(self) -> None:
        if self._status is not None:
            self._status.erase()

    def _update_status(self, what: str) -> None:
        if self._status is not None:
            self._status.update(what)

    # ── events ─────────────────────────────────────────────────────────────

    def show(self, event: Event) -> None:
        if not isinstance(event, (Thought, Usage)):
            self._end_thought()
        match event:
            case Text():
                self._show_text(event)
            case Thought():
                self._show_thought(event)
            case Output():
                self._show_output(event)
            case Activity(status="running"):
                self._show_start(event)
            case Activity():
                self._show_end(event)
            case Plan():
                self._show_plan(event)
            case Diff():
                self._diff = event.diff
            case Notice():
                self._show_notice(event)
            case Usage():
                self._count(event)
            case TurnDone():
                self._show_done()
            case _:
                pass

    def _show_text(self, event: Text) -> None:
        if self._message_id and event.item_id != self._message_id:
            self.end_message()
        self._message_id = event.item_id
        self._erase_status()
        self._separate("answer")
        self._answer.write(event.text)
        self._update_status("Answering")

    def _show_thought(self, event: Thought) -> None:
        if self._thought_id and event.item_id != self._thought_id:
            self._end_thought()
        self._thought_id = event.item_id
        self._thought += event.text
        self._update_status("Thinking")
        if self._detail.with_thoughts:
            *lines, self._thought = self._thought.split("\n")
            self._note_thought("\n".join(lines) if lines else None)

    def _end_thought(self) -> None:
        """Print the reasoning as one line; or its rest, if all of it is shown."""
        thought, self._thought, self._thought_id = self._thought.strip("\n"), "", ""
        if not thought.strip():
            return
        if self._detail.with_thoughts:
            self._note_thought(thought)
            return
        columns = width(self._side)
        lines = [line for line in thought.split("\n") if line.strip()]
        first = label(lines[0].replace("**", ""), None if columns is None else columns - 8)
        self.note(self._style.dim(f"{THOUGHT}{first}{' …' if len(lines) > 1 else ''}"))

    def _note_thought(self, text: str | None) -> None:
        if text is not None:
            rows = fenced(text, width(self._side), mark=THOUGHT, goes_on=THOUGHT)
            self.note(*map(self._style.dim, rows))

    def _show_start(self, event: Activity) -> None:
        title = self._title(event)
        self._update_status(f"{DOING.get(event.kind, 'Working:')} {title}")
        if event.item_id != self._newest_id:  # else it is an update of the same activity
            self._newest_id = event.item_id
            self.note(self._style.cyan(f"▸ {title}"))

    def _show_output(self, event: Output) -> None:
        """Show live output; the end of the activity shows it complete and in order."""
        if self._status is not None:
            output = self._outputs.setdefault(event.item_id, LiveOutput())
            output.feed(event.text)
            self._status.update(live=output.lines)

    def _note_output(self, lines: list[str]) -> None:
        columns = width(self._side)
        self.note(*(self._style.dim(row) for line in lines for row in fenced(line, columns)))

    def _show_end(self, event: Activity) -> None:
        self._outputs.pop(event.item_id, None)
        if self._status is not None:
            self._status.update("Thinking", live=())
        if event.kind == "command":
            first, hidden, last = excerpt(event.output or "", is_full=self._detail.is_full)
            self._note_output(first)
            if hidden:
                self._note_hidden(hidden)
            self._note_output(last)
        if event.is_cut:
            self.note(self._style.yellow(f"  {CUT}"))
        status = end_note(event)
        if status:
            title = "" if event.item_id == self._newest_id else f": {self._title(event)}"
            self.note(self._style.yellow(f"  {status}{title}"))

    def _note_hidden(self, lines: int) -> None:
        hint = f" (run with {self._detail.hint} to see them)" if self._detail.hint else ""
        self.note(self._style.yellow(f"  … {counted(lines, 'line')} hidden{hint}"))

    def _show_plan(self, event: Plan) -> None:
        columns = width(self._side)
        max_cells = None if columns is None else columns - 6
        self.note(*(f"  {MARKS[step.status]} {label(step.text, max_cells)}" for step in event.steps))

    def _show_notice(self, event: Notice) -> None:
        if event.level == "error" and not event.will_retry:
            return  # the end of the turn says it
        if event.level == "info":
            self.note(*fenced(event.message, width(self._side), mark="  · "))
            return
        again = f" ({self.engine} tries again)" if event.will_retry else ""
        self.note(*map(self._style.yellow, fenced(event.message + again, width(self._side), mark="  ! ")))

    def _count(self, event: Usage) -> None:
        if self._tokens_before is None:
            self._tokens_before = event.total.total - event.last.total
        self.tokens = event.total.total - self._tokens_before
        if self._status is not None:
            self._status.update(tokens=self.tokens)

    def _show_done(self) -> None:
        self.end_message()
        self._outputs.clear()
        diff, self._diff, self._tokens_before = self._diff, "", None
        rows = diff_rows(diff, self._style, width(self._side)) if diff else []
        if self._detail.is_full or len(rows) <= MAX_DIFF_ROWS:
            self.note(*rows)
            return
        self.note(*rows[:MAX_DIFF_ROWS])
        self._note_hidden(len(rows) - MAX_DIFF_ROWS)

    def _title(self, event: Activity) -> str:
        """The first line of its title; a question shows the whole command."""
        columns = width(self._side)
        text = look_title(event.look, self.cwd) if event.look is not None else event.title
        first, _, more = text.partition("\n")
        return label(first, None if columns is None else columns - 8) + (" …" if more else "")
