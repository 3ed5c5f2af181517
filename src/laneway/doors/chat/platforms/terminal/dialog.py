"""One open question as a dialog of typed lines: what is shown, what may be typed, and the answer at the end.

Pure. Nothing is answered by an empty line where that could be an accident: an approval needs a key. A
line that begins with a slash is a command and never gets here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from laneway.core.model import Choice, Question
from laneway.doors.chat.outputs import QuestionShown
from laneway.doors.chat.platforms.terminal.drawing import RowCanvas
from laneway.rendering.choices import offered
from laneway.rendering.lane_titles import lane_name
from laneway.terminal.foreign import label
from laneway.terminal.prompting.drawing import draw_question, field_rows, first_screen, menu_rows
from laneway.terminal.prompting.forms import CannotFill, FormField, fields_of, hint, value_of
from laneway.terminal.prompting.menu import ALL, WHY, MenuItem, menu, pick

SKIP = "skip"
"""Typed to give no answer to a question that words answer."""
SHOWN_CELLS = 40
"""Of a line that is no answer."""


class Picked(msgspec.Struct, frozen=True):
    """One of the choices that the question shows as buttons, by its index."""

    index: int
    words: str = ""


class Filled(msgspec.Struct, frozen=True):
    """What was filled in, by field."""

    values: dict[str, Any]


class Skipped(msgspec.Struct, frozen=True):
    """No answer is given."""


class Again(msgspec.Struct, frozen=True):
    """Not answered yet: rows to show, and the dialog goes on."""

    rows: Sequence[str] = ()


Typed: TypeAlias = Picked | Filled | Skipped | Again


class QuestionDialog:
    """Takes the lines that are typed while its question is in front."""

    def __init__(self, shown: QuestionShown, cwd: str) -> None:
        self.shown = shown
        self._cwd = cwd
        self._items: tuple[MenuItem, ...] = ()
        self._fields: list[FormField] = []
        self._values: dict[str, Any] = {}
        self._offered = offered(shown.question)
        self._is_why = False
        self._is_cut = False
        self.problem = ""
        """Why it cannot be answered here at all."""
        try:
            self._all_fields = fields_of(shown.question)
        except CannotFill as field:
            self._all_fields = []
            self.problem = f"“{label(str(field), SHOWN_CELLS)}” cannot be filled in at a terminal."

    @property
    def question(self) -> Question:
        return self.shown.question

    @property
    def is_secret(self) -> bool:
        """Whether what is typed next must not be seen."""
        return bool(self._fields) and self._fields[0].is_secret

    @property
    def hint(self) -> str:
        """What may be typed next."""
        if self._is_why:
            return f"why, or what should {lane_name(self.shown.lane)} do instead"
        if self._fields:
            field = self._fields[0]
            nothing = f"{SKIP} gives no answer" if field.is_required else f"{SKIP} leaves it out"
            return f"{hint(field) or 'your answer; '}{nothing}"
        why = f", {WHY} to say why not" if self.question.words_choice is not None else ""
        more = f", {ALL} for all of it" if self._is_cut else ""
        return f"y, n or a number{why}{more}"

    def opening(self, canvas: RowCanvas, rows: int) -> list[str]:
        """The question as it comes to the front; what is too long for the screen is cut, and `d` shows it."""
        style, columns = canvas.style, canvas.columns
        drawn = draw_question(self.question, style, columns, self._cwd)
        if self.question.kind == "input":
            self._fields = list(self._all_fields)
            return [drawn.title, *drawn.about, *self._field_rows(canvas)]
        self._items = tuple(item for item in menu(self.question) if item.choice in self._offered)
        choices = menu_rows(self._items, columns)
        body, self._is_cut = first_screen(drawn, len(choices), rows, style)
        return [*body, *choices]

    def type(self, line: str, canvas: RowCanvas) -> Typed:
        line = line.strip()
        if self._is_why:
            choice = self.question.words_choice
            return Skipped() if choice not in self._offered else self._chosen(choice, line)
        return self._fill(line, canvas) if self._fields else self._choose(line, canvas)

    # ── choices ────────────────────────────────────────────────────────────

    def _choose(self, line: str, canvas: RowCanvas) -> Typed:
        picked = pick(self._items, line) if line else "unclear"
        if picked == "why":
            self._is_why = True
            return Again()
        if picked == "all" and self._is_cut:
            self._is_cut = False
            drawn = draw_question(self.question, canvas.style, canvas.columns, self._cwd)
            choices = menu_rows(self._items, canvas.columns)
            return Again([drawn.title, *drawn.subject, *drawn.about, *choices])
        if isinstance(picked, MenuItem):
            if picked.choice.grants == "once" and self._all_fields:
                self._fields = list(self._all_fields)
                return Again(self._field_rows(canvas))
            return Skipped() if self._all_fields else self._chosen(picked.choice)
        return self._unclear(line, canvas) if line else Again()

    def _chosen(self, choice: Choice, words: str = "") -> Picked:
        return Picked(self._offered.index(choice), words)

    # ── fields ─────────────────────────────────────────────────────────────

    def _fill(self, line: str, canvas: RowCanvas) -> Typed:
        field = self._fields[0]
        if not line:
            return Again()
        if line.casefold() == SKIP:
            if field.is_required:
                return Skipped()
        else:
            value = value_of(field, line)
            if value is None:
                return self._unclear("" if field.is_secret else line, canvas)
            self._values[field.field_id] = value
        del self._fields[0]
        if self._fields:
            return Again(self._field_rows(canvas))
        return Filled(self._values) if self._values else Skipped()

    def _field_rows(self, canvas: RowCanvas) -> list[str]:
        field = self._fields[0]
        return field_rows(field.text, field.options, canvas.columns, field.about)

    def _unclear(self, line: str, canvas: RowCanvas) -> Again:
        shown = f"“{label(line, SHOWN_CELLS)}” is none of these: {self.hint}" if line else f"type {self.hint}"
        return Again([canvas.style.dim(f"  {shown}")])
