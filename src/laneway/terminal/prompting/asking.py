"""Asks a person at a terminal one question at a time, and reads the answers.

After an unclear line it asks again; an empty line declines; at the end of input there is no
answer, and the caller decides what that means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from laneway.core.answers import no_with_words
from laneway.core.model import DECLINE, Answer, Question
from laneway.terminal.foreign import label
from laneway.terminal.prompting.drawing import draw_question, field_rows, first_screen, menu_rows
from laneway.terminal.prompting.forms import CannotFill, FormField, fields_of, hint, value_of
from laneway.terminal.prompting.keyboard import Keyboard
from laneway.terminal.prompting.menu import MenuItem, menu, pick
from laneway.terminal.style import Style, size

SETTLE_S = 0.4
"""From a question on the screen to the first key that counts: nobody reads faster than that, but
a person who was typing something else may go on for that long."""
SETTLED = "No answer is needed any more."
GONE = {"declined": "Declined: no answer came in time."}
"""What is printed when a question is withdrawn, by the message that its task was cancelled with."""
SHOWN_CELLS = 40
"""Of a line that is not an answer."""


class EndOfInput(Exception):
    """There is no more input: Ctrl-D, or the terminal is gone."""


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


class Prompter:
    """Asks at one terminal. `ask` is cancelled when its question is withdrawn."""

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
            except asyncio.CancelledError as withdrawn:
                self._keyboard.discard_typed()  # half an answer must not reach the shell
                self._keyboard.write("\n")
                self._say(GONE.get(next(iter(withdrawn.args), ""), SETTLED))
                raise

    def restore(self) -> None:
        """Restore the terminal's modes, for a process that exits at once."""
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
            values = None if values is None else {name: _listed(value) for name, value in values.items()}
        else:
            item = await self._choose(question)
            if isinstance(item, Answer):
                return item
            if item is None or item.choice.grants != "once" or not fields:
                return DECLINE if item is None else Answer(choice_id=item.choice.choice_id)
            values, granted = await self._fill(fields), item.choice.choice_id
        if values is None:
            self._say("Declined.")
            return DECLINE
        return Answer(choice_id=granted, values=values)

    async def _choose(self, question: Question) -> MenuItem | Answer | None:
        """The chosen item, or a no with words; `None` for an empty line where no item declines."""
        items = menu(question)
        columns, rows = size(self._keyboard.screen)
        drawn = draw_question(question, self._style, columns, self._cwd)
        choices = menu_rows(items, columns)
        body, is_cut = first_screen(drawn, len(choices), rows, self._style)
        self._write([*body, *choices])
        await asyncio.sleep(self._settle_s)
        while True:
            why = ", w to say why not" if question.words_choice is not None else ""
            more = ", d for all of it" if is_cut else ""
            typed = await self._read(f"  y, n or a number{why}{more}; Enter declines: ")
            picked = pick(items, typed)
            if isinstance(picked, MenuItem) or not typed:
                if not typed and question.kind not in ("command", "patch"):
                    self._say("Declined.")  # for those two the end of the activity says so
                return picked if isinstance(picked, MenuItem) else None
            if picked == "why":
                words = await self._read(f"  why, or what should {question.engine} do instead: ")
                return no_with_words(question, words)
            if picked == "all" and is_cut:
                is_cut = False
                self._write([drawn.title, *drawn.subject, *drawn.about, *choices])
            else:
                self._say(f"“{label(typed, SHOWN_CELLS)}” is none of these.")

    async def _fill(self, fields: Sequence[FormField]) -> dict[str, Any] | None:
        """A value for each field; `None` if a required one was not given."""
        values: dict[str, Any] = {}
        for field in fields:
            columns, _ = size(self._keyboard.screen)
            self._write(field_rows(field.text, field.options, columns, field.about))
            await asyncio.sleep(self._settle_s)
            value = await self._value(field)
            if value is None and field.is_required:
                return None
            if value is not None:
                values[field.field_id] = value
        return values

    async def _value(self, field: FormField) -> Any:
        """The typed value; `None` for an empty line."""
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
