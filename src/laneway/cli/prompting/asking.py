"""Puts questions to a person at a terminal, one at a time, and reads the answers.

A line that is no clear answer is asked again; an empty one declines; the end of input is nobody's
answer, and the caller decides what that means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from laneway.cli.prompting.drawing import draw_question, field_rows, first_screen, menu_rows
from laneway.cli.prompting.forms import CannotFill, FormField, fields_of, hint, value_of
from laneway.cli.prompting.keyboard import Keyboard
from laneway.cli.prompting.menu import MenuItem, menu, pick
from laneway.cli.terminal.foreign import label
from laneway.cli.terminal.style import Style, size
from laneway.core.model import DECLINE, Answer, Question

SETTLE_S = 0.4
"""From a question on the screen to the first key that counts: nobody reads faster than that, but
whoever was typing something else may go on that long."""
SETTLED = "No answer is needed any more."
GONE = {"declined": "Declined: no answer came in time."}
"""What is said of a question that leaves the screen, by the word that its task was cancelled with."""
SHOWN_CELLS = 40
"""Of a line that was no answer."""


class EndOfInput(Exception):
    """Nobody types any more: Ctrl-D, or the terminal is gone."""


class Prompter:
    """Asks at one terminal. Cancelled when a question is taken back."""

    def __init__(self, keyboard: Keyboard, *, cwd: str | None = None, settle_s: float = SETTLE_S) -> None:
        """`cwd` is where the work is done: paths below it are shown short."""
        self._keyboard = keyboard
        self._cwd = cwd
        self._settle_s = settle_s
        self._style = Style(keyboard.screen)
        self._turn = asyncio.Lock()
        """Two questions at once would read each other's answers."""

    async def ask(self, question: Question) -> Answer | None:
        """The answer; `None` at the end of input."""
        async with self._turn:
            try:
                return await self._ask(question)
            except EndOfInput:
                self._keyboard.write("\n")
                return None
            except asyncio.CancelledError as taken_back:
                self._keyboard.discard_typed()  # half an answer is not for the shell behind us
                self._keyboard.write("\n")
                self._say(GONE.get(next(iter(taken_back.args), ""), SETTLED))
                raise

    def restore(self) -> None:
        """Leave the terminal as it was found: for whoever must go at once."""
        self._keyboard.restore()

    async def _ask(self, question: Question) -> Answer:
        try:
            fields = fields_of(question)
        except CannotFill as field:
            self._say(f"Declined: “{label(str(field), SHOWN_CELLS)}” cannot be filled in at a terminal.")
            return DECLINE
        if question.kind == "input":
            columns, _ = size(self._keyboard.screen)
            drawn = draw_question(question, self._style, columns)
            self._write([drawn.title, *drawn.about])
            values = await self._fill(fields)
            granted = "accept"
            values = None if values is None else {name: [value] for name, value in values.items()}
        else:
            item = await self._choose(question)
            if item is None or item.choice.grants != "once" or not fields:
                return DECLINE if item is None else Answer(choice_id=item.choice.choice_id)
            values, granted = await self._fill(fields), item.choice.choice_id
        if values is None:
            self._say("Declined.")
            return DECLINE
        return Answer(choice_id=granted, values=values)

    async def _choose(self, question: Question) -> MenuItem | None:
        """What was chosen; `None` for an empty line where there is nothing to choose."""
        items = menu(question)
        columns, rows = size(self._keyboard.screen)
        drawn = draw_question(question, self._style, columns, self._cwd)
        choices = menu_rows(items, columns)
        body, is_cut = first_screen(drawn, len(choices), rows, self._style)
        self._write([*body, *choices])
        await asyncio.sleep(self._settle_s)
        while True:
            more = ", d for all of it" if is_cut else ""
            typed = await self._read(f"  y, n or a number{more}; Enter declines: ")
            picked = pick(items, typed)
            if isinstance(picked, MenuItem) or not typed:
                if not typed and question.kind not in ("command", "patch"):
                    self._say("Declined.")  # of those two the end of the activity says so
                return picked if isinstance(picked, MenuItem) else None
            if picked == "all" and is_cut:
                is_cut = False
                self._write([drawn.title, *drawn.subject, *drawn.about, *choices])
            else:
                self._say(f"“{label(typed, SHOWN_CELLS)}” is none of these.")

    async def _fill(self, fields: Sequence[FormField]) -> dict[str, Any] | None:
        """A value for each field; `None` if one that must be given was not."""
        values: dict[str, Any] = {}
        for field in fields:
            columns, _ = size(self._keyboard.screen)
            self._write(field_rows(field.text, field.options, columns))
            await asyncio.sleep(self._settle_s)
            value = await self._value(field)
            if value is None and field.is_required:
                return None
            if value is not None:
                values[field.field_id] = value
        return values

    async def _value(self, field: FormField) -> Any:
        """What was typed; `None` for nothing."""
        nothing = "declines" if field.is_required else "leaves it out"
        while True:
            typed = await self._read(f"  {hint(field)}Enter {nothing}: ", is_hidden=field.is_secret)
            value = value_of(field, typed) if typed else None
            if value is not None or not typed:
                return value
            self._say(f"“{label(typed, SHOWN_CELLS)}” is no answer to this.")

    # ── the terminal ───────────────────────────────────────────────────────

    async def _read(self, prompt: str, *, is_hidden: bool = False) -> str:
        typed = await self._keyboard.read_line(prompt, is_hidden=is_hidden)
        if typed is None:
            raise EndOfInput
        return typed

    def _write(self, rows: Sequence[str]) -> None:
        self._keyboard.write("".join(f"{row}\n" for row in rows))

    def _say(self, text: str) -> None:
        self._write([self._style.dim(f"  {text}")])
