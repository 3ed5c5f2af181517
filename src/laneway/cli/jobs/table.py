"""Formats jobs as a table that fits the terminal, one row each. Pure.

Takes what the tools answer about jobs. Columns that a narrow terminal has no room for are left out; titles
are cut. Nothing of a model or a prompt reaches the terminal raw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laneway.terminal.foreign import cells, label
from laneway.terminal.status import count, elapsed
from laneway.terminal.style import Style

Row = Mapping[str, Any]
"""A job as `codex_list` answers it."""
Cells = dict[str, str]

GAP = "  "
TITLE_CELLS = 60
NOTE_CELLS = 80
SHORT_ID_CHARS = 8
"""The end of an id, which is enough to name a job by: shown where whole ones would cost other columns."""
FLEXIBLE = (("note", 16), ("title", 16))
"""Columns that shrink, in this order, and the cells that they keep: with less they are useless."""
EXPENDABLE = ("tokens", "mode", "note", "time", "title")
"""Columns that are left out, in this order, if not all of them fit."""
RIGHT = ("tokens",)


def table(rows: Sequence[Row], *, columns: int | None, style: Style, has_head: bool = True) -> list[str]:
    """A header, and a row for each job; `columns` is None if there is no limit."""
    cut = [cells_of(row) for row in rows]
    titles = [title for title in cut[0] if any(row[title] for row in cut)] if cut else []
    widths = _widths(titles, cut)
    if columns is not None and _total(widths) > columns:
        cut = [{**row, "job": row["job"][-SHORT_ID_CHARS:]} for row in cut]
        widths = fitted(_widths(titles, cut), columns)
    head = [style.dim(_line({title: title.upper() for title in widths}, widths))] if has_head else []
    return [*head, *(_line(row, widths, style) for row in cut)]


def _widths(titles: Sequence[str], rows: Sequence[Cells]) -> dict[str, int]:
    return {title: max(cells(title), *(cells(row[title]) for row in rows)) for title in titles}


def cells_of(row: Row) -> Cells:
    seconds = row.get("elapsedMs", 0) / 1000
    return {
        "job": row["jobId"],
        "status": status_text(row),
        "mode": row.get("mode", ""),
        "time": elapsed(seconds) if "elapsedMs" in row else "",
        "tokens": count(row["tokens"]) if row.get("tokens") else "",
        "title": label(row.get("title", ""), TITLE_CELLS),
        "note": label(note_text(row), NOTE_CELLS),
    }


def status_text(row: Row) -> str:
    return str(row["status"]).replace("_", " ")


def note_text(row: Row) -> str:
    """What a job does, waits for, or failed of. Of a failure the sentence; its kind is for programs."""
    if row.get("error"):
        return str(row["error"]).partition(": ")[2]
    if "lastStatus" in row:
        return f"was {row['lastStatus'].replace('_', ' ')} when last heard of"
    if row["status"] == "queued":
        if row.get("after"):
            return f"after {row['after'][-SHORT_ID_CHARS:]}"
        return f"number {row['position']} in the queue" if row.get("position") else ""
    return str(row.get("activity", ""))


def coloured(status: str, text: str, style: Style) -> str:
    match status:
        case "succeeded":
            return style.green(text)
        case "failed" | "timed out" | "lost":
            return style.red(text)
        case "cancelled" | "cancelling" | "unreachable":
            return style.yellow(text)
        case "queued":
            return style.dim(text)
        case _:
            return style.cyan(text)


def fitted(widths: dict[str, int], columns: int) -> dict[str, int]:
    """Widths that fit: some columns shrink, then others are left out; the id goes last."""
    fits = _shrunk(widths, columns)
    for expendable in EXPENDABLE:
        if _total(fits) <= columns:
            break
        widths = {title: width for title, width in widths.items() if title != expendable}
        fits = _shrunk(widths, columns)
    return fits


def _shrunk(widths: dict[str, int], columns: int) -> dict[str, int]:
    shrunk = dict(widths)
    for title, least in FLEXIBLE:
        surplus = _total(shrunk) - columns
        if title in shrunk and surplus > 0:
            shrunk[title] -= max(0, min(surplus, shrunk[title] - least))
    return shrunk


def _total(widths: dict[str, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _line(row: Cells, widths: dict[str, int], style: Style | None = None) -> str:
    parts = []
    for title, width in widths.items():
        text = label(row[title], width)
        space = " " * (width - cells(text))
        if title in RIGHT:
            text, space = space + text, ""
        if style is not None and title == "status":
            text = coloured(row[title], text, style)
        elif style is not None and title == "note":
            text = style.dim(text)
        parts.append(text + space)
    return GAP.join(parts).rstrip()
