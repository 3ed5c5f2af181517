"""Formats sessions as a table that fits the terminal, one row each. Pure.

Columns that a narrow terminal has no room for are left out, the least important first; prompts and
folders are cut. Control characters in foreign text are made visible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePath

from laneway.base.plain import plain_code
from laneway.cli.local_time import when
from laneway.cli.session_list import KnownSession
from laneway.cli.session_names import SHORT_ID_CHARS, short_id
from laneway.terminal.foreign import cells, label, wrapped
from laneway.terminal.style import Style

GAP = "  "
NAME_CELLS = 32
"""Of a name: longer ones are cut, so that the other columns have room."""
PROMPT_CELLS = 60
"""Of a prompt, even where there is room for more: it need only be recognized."""
FLEXIBLE = (("folder", 12), ("asked first", 16), ("name", 14))
"""Columns that shrink, in this order, and the cells that they keep: with less they are useless."""
EXPENDABLE = ("tokens", "turns", "folder", "from", "asked first", "last active")
"""Columns that are left out, in this order, if not all of them fit."""
ELLIPSIS = "…"

Cells = dict[str, str]


def table(
    sessions: Sequence[KnownSession], *, now: datetime, columns: int | None, style: Style, home: str = ""
) -> list[str]:
    """A header, and a row for each session; `columns` is None if there is no limit."""
    namesakes = Counter(each.name for each in sessions)
    rows = [cells_of(each, now, home, is_unique=namesakes[each.name] == 1) for each in sessions]
    titles = list(rows[0]) if rows else []
    widths = {title: max(_width(title), *(_width(row[title]) for row in rows)) for title in titles}
    if columns is not None:
        widths = fitted(widths, columns)
    head = style.dim(_line({title: title.upper() for title in widths}, widths))
    return [head, *(_line(row, widths, style) for row in rows)]


def cells_of(session: KnownSession, now: datetime, home: str, *, is_unique: bool) -> Cells:
    """The cells of a row; only name and prompt are cut."""
    name = session.name if is_unique else f"{session.name} {short_id(session.whole_id)}"
    return {
        "name": _cut_name(plain_code(_one_line(name)), NAME_CELLS),
        "from": session.source,
        "state": session.state,
        "asked first": label(session.first_prompt or "", PROMPT_CELLS),
        "turns": "" if session.turns is None else str(session.turns),
        "tokens": tokens(session.tokens),
        "last active": when(session.active_at, now) if session.last_active or session.started_at else "",
        "folder": folder(session, home),
    }


def tokens(count: int | None) -> str:
    if not count:
        return ""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def folder(session: KnownSession, home: str) -> str:
    path = session.cwd or ""
    if home and PurePath(path).is_relative_to(home):
        path = str("~" / PurePath(path).relative_to(home))
    branch = f" ({session.branch})" if session.branch else ""
    return plain_code(_one_line(path + branch))


def fitted(widths: dict[str, int], columns: int) -> dict[str, int]:
    """Widths that fit: some columns shrink, then others are left out."""
    column_widths, surplus = _shrunk(widths, columns)
    for expendable in EXPENDABLE:
        if surplus <= 0:
            break
        widths = {title: width for title, width in widths.items() if title != expendable}
        column_widths, surplus = _shrunk(widths, columns)
    return {**column_widths, "name": max(1, column_widths["name"] - max(0, surplus))}


def _shrunk(widths: dict[str, int], columns: int) -> tuple[dict[str, int], int]:
    """The widths with all flexible columns shrunk as needed, and the surplus that is left."""
    column_widths = dict(widths)
    surplus = _total(column_widths) - columns
    for title, min_cells in FLEXIBLE:
        cut = max(0, min(surplus, column_widths.get(title, 0) - min_cells))
        if cut:
            column_widths[title] -= cut
            surplus -= cut
    return column_widths, surplus


def _total(widths: dict[str, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _line(row: Cells, widths: dict[str, int], style: Style | None = None) -> str:
    parts = []
    for title, width in widths.items():
        text = _CUTS.get(title, _cut)(row[title], width)
        space = " " * (width - _width(text))
        if title in ("turns", "tokens"):
            text, space = f"{space}{text}", ""
        if style is not None:
            text = _coloured(title, text, style)
        parts.append(text + space)
    return GAP.join(parts).rstrip()


def _coloured(title: str, text: str, style: Style) -> str:
    if title == "name":
        return style.bold(text)
    if title == "state" and text == "waits for you":
        return style.yellow(text)
    if title == "state" and text in ("idle", "working", "open"):
        return style.green(text)
    return text


def _one_line(text: str) -> str:
    return " ".join(text.split("\n"))


def _width(text: str) -> int:
    return cells(text) - text.count(ELLIPSIS)


def _cut(text: str, columns: int) -> str:
    if _width(text) <= columns:
        return text
    return (wrapped(text, columns - 1, 0)[0] if columns > 2 else "") + ELLIPSIS


def _cut_name(text: str, columns: int) -> str:
    """Cut the end of the name; an id after it stays whole, so that it can be typed."""
    name, _, suffix = text.rpartition(" ")
    if not name or len(suffix) != SHORT_ID_CHARS or columns <= SHORT_ID_CHARS + 2:
        return _cut(text, columns)
    return f"{_cut(name, columns - SHORT_ID_CHARS - 1)} {suffix}"


def _cut_front(text: str, columns: int) -> str:
    """Cut the beginning: the end of a path says more."""
    if _width(text) <= columns:
        return text
    while text and _width(text) > columns - 1:
        text = text[1:]
    return ELLIPSIS + text


_CUTS = {"name": _cut_name, "folder": _cut_front}
