"""Draws a question as rows of a terminal: its title, what a person needs to decide, and the menu.

Pure. Foreign text is fenced; only Laneway's own text starts at the margin.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from laneway.base.plain import code_label, plain_code
from laneway.core.model import Question
from laneway.terminal.changes import change_rows
from laneway.terminal.foreign import GOES_ON, fenced, label
from laneway.terminal.prompting.menu import ALL, MenuItem
from laneway.terminal.style import Style

MAX_REASON_ROWS = 4
"""Of the model's reason, which must not push the question off the screen."""
MIN_BODY_ROWS = 5
"""Rows of the subject that are shown, however small the terminal is."""
SPARE_ROWS = 2
"""Left free on the first screen: for the line before the question and the answer."""


class Drawn(msgspec.Struct, frozen=True):
    """A question as rows. Only `subject` may be too long for a screen."""

    title: str
    subject: list[str]
    about: list[str]


def draw_question(question: Question, style: Style, columns: int | None, cwd: str | None = None) -> Drawn:
    """`cwd` is the session's folder, for a question that does not name one itself."""
    return Drawn(
        title=style.bold(f"? {_title(question, columns)}"),
        subject=_subject(question, style, columns, question.cwd or cwd),
        about=_about(question, style, columns),
    )


def first_screen(drawn: Drawn, menu_rows: int, rows: int, style: Style) -> tuple[list[str], bool]:
    """As much of a question as fits on a screen with its menu, and whether something is left out."""
    used = 1 + len(drawn.about) + menu_rows + SPARE_ROWS
    max_rows = max(rows - used, MIN_BODY_ROWS)
    if len(drawn.subject) <= max_rows:
        return [drawn.title, *drawn.subject, *drawn.about], False
    visible = drawn.subject[: max_rows - 1]
    hidden = len(drawn.subject) - len(visible)
    cut = style.yellow(f"  … {hidden} more lines: {ALL} shows all of it")
    return [drawn.title, *visible, cut, *drawn.about], True


def menu_rows(items: tuple[MenuItem, ...], columns: int | None) -> list[str]:
    return [
        row
        for item in items
        for row in fenced(item.choice.label, columns, mark=f"  {item.key}  ", goes_on=f"   {GOES_ON}")
    ]


def field_rows(
    text: str, options: Sequence[str], columns: int | None, about: Sequence[str] = ()
) -> list[str]:
    """A form field: its text and its options, each with what it means."""
    rows = fenced(text, columns)
    for number, option in enumerate(options, 1):
        rows += fenced(option, columns, mark=f"  {number}  ", goes_on=f"   {GOES_ON}")
        meaning = about[number - 1] if number <= len(about) else ""
        rows += fenced(meaning, columns, mark=f"   {GOES_ON}", goes_on=f"   {GOES_ON}") if meaning else []
    return rows


# ── the parts ──────────────────────────────────────────────────────────────


def _title(question: Question, columns: int | None) -> str:
    """In our own words. A question in foreign words is shown below, fenced."""
    match question.kind:
        case "input":
            what = "you" if len(question.fields) == 1 else "you several things"
            return f"{question.engine} asks {what}"
        case "elicitation":
            server = question.params.get("serverName") if isinstance(question.params, dict) else None
            name = label(str(server), 40) if server else ""
            return f"The MCP server {name} asks" if name else "An MCP server asks"
        case "tool":
            name = code_label(question.tool or "a tool", 80)
            return f"Allow {question.engine} to use {name}?"
        case "plan":
            return f"Allow {question.engine} to carry out its plan?"
        case _:
            return label(question.message, None if columns is None else columns - 2)


def _subject(question: Question, style: Style, columns: int | None, cwd: str | None) -> list[str]:
    match question.kind:
        case "input":
            return []  # each field is drawn when it is asked for
        case "elicitation":
            rows = fenced(question.message, columns)
            return rows + (fenced(question.url, columns, visible=plain_code) if question.url else [])
        case "tool":
            return _json_rows(question.arguments, columns) if question.arguments else []
        case "plan":
            return fenced(question.plan.strip(), columns) if question.plan else []
        case "permissions":
            return _json_rows(question.schema, columns)
        case _:
            # A title that was cut, such as one with a long host name, is repeated in full below.
            is_cut = _title(question, columns) != _title(question, None)
            rows = fenced(question.message, columns) if is_cut else []
            rows += fenced(question.command, columns, visible=plain_code) if question.command else []
            return rows + change_rows(question.changes, cwd, style, columns)


def _json_rows(value: object, columns: int | None) -> list[str]:
    return fenced(msgspec.json.format(msgspec.json.encode(value), indent=2).decode(), columns)


def _about(question: Question, style: Style, columns: int | None) -> list[str]:
    rows: list[str] = []
    if question.cwd:
        cwd = code_label(_short(question.cwd))
        cwd_rows = fenced(cwd, columns, mark="  in ", goes_on=f"  {GOES_ON}")
        rows += map(style.dim, cwd_rows)
    if question.reason:
        reason = fenced(question.reason, columns, mark="  because │ ", goes_on="          │ ")
        rows += [style.dim(row) for row in reason[:MAX_REASON_ROWS]]
        rows += [style.dim("          …")] if len(reason) > MAX_REASON_ROWS else []
    return rows


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if home != "/" and (path + "/").startswith(home + "/") else path
