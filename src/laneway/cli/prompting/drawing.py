"""A question as rows of a terminal: what is asked, all that a person needs to judge it, the menu.

Pure. Texts of others are fenced; only what Laneway itself says stands at the margin.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from laneway.base.plain import code_label, plain_code
from laneway.cli.prompting.menu import ALL, MenuItem
from laneway.cli.terminal.changes import change_rows
from laneway.cli.terminal.foreign import GOES_ON, fenced, label
from laneway.cli.terminal.style import Style
from laneway.core.model import Question

MAX_REASON_ROWS = 4
"""The model's own words: they must not push what is asked off the screen."""
MIN_BODY_ROWS = 5
"""Shown of a subject however small the terminal is."""
SPARE_ROWS = 2
"""Left free on the first screen: for the line before the question and the answer."""


class Drawn(msgspec.Struct, frozen=True):
    """A question on paper. `subject` is what may be too long for a screen."""

    title: str
    subject: list[str]
    about: list[str]


def draw_question(question: Question, style: Style, columns: int | None, cwd: str | None = None) -> Drawn:
    """`cwd` is where the work is done, for a question that does not say so itself."""
    return Drawn(
        title=style.bold(f"? {_title(question, columns)}"),
        subject=_subject(question, style, columns, question.cwd or cwd),
        about=_about(question, style, columns),
    )


def first_screen(drawn: Drawn, menu_rows: int, rows: int, style: Style) -> tuple[list[str], bool]:
    """As much of a question as fits a screen together with its menu; whether something is left out."""
    used = 1 + len(drawn.about) + menu_rows + SPARE_ROWS
    room = max(rows - used, MIN_BODY_ROWS)
    if len(drawn.subject) <= room:
        return [drawn.title, *drawn.subject, *drawn.about], False
    shown = drawn.subject[: room - 1]
    hidden = len(drawn.subject) - len(shown)
    cut = style.yellow(f"  … {hidden} more lines: {ALL} shows all of it")
    return [drawn.title, *shown, cut, *drawn.about], True


def menu_rows(items: tuple[MenuItem, ...], columns: int | None) -> list[str]:
    return [
        row
        for item in items
        for row in fenced(item.choice.label, columns, mark=f"  {item.key}  ", goes_on=f"   {GOES_ON}")
    ]


def field_rows(text: str, options: Sequence[str], columns: int | None) -> list[str]:
    """One thing that is asked for in free words, or of several options."""
    rows = fenced(text, columns)
    for number, option in enumerate(options, 1):
        rows += fenced(option, columns, mark=f"  {number}  ", goes_on=f"   {GOES_ON}")
    return rows


# ── the parts ──────────────────────────────────────────────────────────────


def _title(question: Question, columns: int | None) -> str:
    """Our own words. What others ask in theirs stands below, fenced."""
    match question.kind:
        case "input":
            return "Codex asks you" if len(question.fields) == 1 else "Codex asks you several things"
        case "elicitation":
            server = question.params.get("serverName") if isinstance(question.params, dict) else None
            name = label(str(server), 40) if server else ""
            return f"The MCP server {name} asks" if name else "An MCP server asks"
        case _:
            return label(question.message, None if columns is None else columns - 2)


def _subject(question: Question, style: Style, columns: int | None, cwd: str | None) -> list[str]:
    match question.kind:
        case "input":
            return []  # each of its fields is drawn when it is asked for
        case "elicitation":
            rows = fenced(question.message, columns)
            return rows + (fenced(question.url, columns, visible=plain_code) if question.url else [])
        case "permissions":
            asked = msgspec.json.format(msgspec.json.encode(question.schema), indent=2).decode()
            return fenced(asked, columns)
        case _:
            # A title that was cut, such as one with the name of a host, is shown whole below itself.
            is_cut = _title(question, columns) != _title(question, None)
            rows = fenced(question.message, columns) if is_cut else []
            rows += fenced(question.command, columns, visible=plain_code) if question.command else []
            return rows + change_rows(question.changes, cwd, style, columns)


def _about(question: Question, style: Style, columns: int | None) -> list[str]:
    rows: list[str] = []
    if question.cwd:
        cwd = code_label(_short(question.cwd))
        where = fenced(cwd, columns, mark="  in ", goes_on=f"  {GOES_ON}")
        rows += map(style.dim, where)
    if question.reason:
        reason = fenced(question.reason, columns, mark="  because │ ", goes_on="          │ ")
        rows += [style.dim(row) for row in reason[:MAX_REASON_ROWS]]
        rows += [style.dim("          …")] if len(reason) > MAX_REASON_ROWS else []
    return rows


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if home != "/" and (path + "/").startswith(home + "/") else path
