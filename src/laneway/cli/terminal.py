"""Events for a person at a terminal: the answer on standard output, the work on standard error.

What a model, a command or a repository says never reaches a terminal raw: an escape sequence in a
command could hide that very command from whoever is asked to approve it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TextIO

from laneway.base.plain import plain
from laneway.core.model import (
    DECLINE,
    Activity,
    Answer,
    Diff,
    Event,
    Notice,
    Output,
    Plan,
    Question,
    Text,
    Thought,
    TurnDone,
)

MARKS = {"pending": "○", "running": "◐", "completed": "●"}


class Style:
    """Colours where they are wanted: on a terminal, unless NO_COLOR is set."""

    def __init__(self, stream: TextIO) -> None:
        self.is_on = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def __call__(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.is_on else text

    def dim(self, text: str) -> str:
        return self("2", text)

    def bold(self, text: str) -> str:
        return self("1", text)

    def green(self, text: str) -> str:
        return self("32", text)

    def red(self, text: str) -> str:
        return self("31", text)

    def yellow(self, text: str) -> str:
        return self("33", text)

    def cyan(self, text: str) -> str:
        return self("36", text)


class Screen:
    """Draws the events of one turn as they come."""

    def __init__(self, out: TextIO | None = None, side: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        self._side = side or sys.stderr
        self._style = Style(self._side)
        self._is_terminal = self._out.isatty()
        self._mid_line = False
        self._last_item = ""
        self._diff = ""

    def show(self, event: Event) -> None:
        style = self._style
        match event:
            case Text():
                if self._mid_line and event.item_id != self._last_item:
                    self.end_line()
                self._last_item = event.item_id
                self._out.write(plain(event.text) if self._is_terminal else event.text)
                self._out.flush()
                self._mid_line = not event.text.endswith("\n")
            case Thought():
                pass  # shown as a whole would drown the answer; `--json` has it
            case Activity(status="running"):
                self._note(style.cyan("▸ " + _first_line(plain(event.title))))
            case Output():
                pass  # the end of the activity shows it complete and in order
            case Activity():
                self._show_end(event)
            case Plan():
                self._note("\n".join(f"  {MARKS[step.status]} {plain(step.text)}" for step in event.steps))
            case Diff():
                self._diff = event.diff
            case Notice(level="error", will_retry=True):
                self._note(style.yellow(f"  {plain(event.message)} (Codex tries again)"))
            case Notice(level="warning"):
                self._note(style.yellow(f"  {plain(event.message)}"))
            case TurnDone():
                self.end_line()
                if self._diff:
                    self._note(_coloured_diff(self._diff, style))
                    self._diff = ""
            case _:
                pass

    def _show_end(self, event: Activity) -> None:
        style = self._style
        if event.kind == "command":
            for line in (event.output or "").splitlines()[-10:]:
                self._note(style.dim("  │ " + plain(line)))
        if event.status != "completed" or event.exit_code:
            why = f"exit code {event.exit_code}" if event.exit_code else event.status
            self._note(style.yellow(f"  {why}: {_first_line(plain(event.title))}"))

    def _note(self, text: str) -> None:
        self.end_line()
        print(text, file=self._side, flush=True)

    def end_line(self) -> None:
        if self._mid_line:
            self._out.write("\n")
            self._out.flush()
            self._mid_line = False


def show_question(question: Question, side: TextIO, style: Style) -> None:
    lines = [style.bold("? " + plain(question.message))]
    if question.command:
        lines.append(f"    {plain(question.command)}")
    if question.cwd:
        lines.append(style.dim(f"    in {plain(question.cwd)}"))
    lines += [f"    {change.kind} {plain(change.path)}" for change in question.changes]
    if question.reason:
        lines.append(style.dim(f"    because: {plain(question.reason)}"))
    print("\n".join(lines), file=side, flush=True)


async def ask_person(question: Question, side: TextIO) -> Answer:
    """Ask at the terminal. Anything but a clear choice is a decline."""
    style = Style(side)
    show_question(question, side, style)
    if question.kind == "input":
        values = {}
        for field in question.fields:
            for number, option in enumerate(field.options, 1):
                print(f"    {number}) {plain(option)}", file=side)
            typed = await _read_line(f"  {plain(field.text)} ", side)
            chosen = int(typed) - 1 if typed.isdigit() else -1
            values[field.field_id] = [field.options[chosen] if 0 <= chosen < len(field.options) else typed]
        return Answer(choice_id="accept", values=values)
    for number, choice in enumerate(question.choices, 1):
        print(f"    {number}) {plain(choice.label)}", file=side)
    typed = await _read_line(f"  1–{len(question.choices)}, or Enter to decline: ", side)
    if typed.isdigit() and 1 <= int(typed) <= len(question.choices):
        return Answer(choice_id=question.choices[int(typed) - 1].choice_id)
    return DECLINE


async def _read_line(prompt: str, side: TextIO) -> str:
    """A line from the terminal without a thread that nobody could stop."""
    side.write(prompt)
    side.flush()
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()
    fd = sys.stdin.fileno()

    def ready() -> None:
        if not line.done():
            line.set_result(os.read(fd, 4096).decode("utf-8", "replace"))

    loop.add_reader(fd, ready)
    try:
        return (await line).strip()
    finally:
        loop.remove_reader(fd)


def _first_line(text: str) -> str:
    head, _, rest = text.partition("\n")
    return head + (" …" if rest else "")


def _coloured_diff(diff: str, style: Style) -> str:
    def colour(line: str) -> str:
        if line.startswith("+") and not line.startswith("+++"):
            return style.green(line)
        if line.startswith("-") and not line.startswith("---"):
            return style.red(line)
        return style.dim(line)

    shown = (plain(line) for line in diff.split("\n") if line and not line.startswith("index "))
    return "\n".join("  " + colour(line) for line in shown)
