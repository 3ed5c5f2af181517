"""Edits of files as rows of a terminal: which file, how much, and every line of the difference."""

from __future__ import annotations

import os
from collections.abc import Sequence

from laneway.cli.terminal.foreign import fenced, label
from laneway.cli.terminal.style import Style
from laneway.core.model import FileChange

ADDED, REMOVED, PLACE = "+", "-", "@@"


def change_rows(
    changes: Sequence[FileChange], cwd: str | None, style: Style, columns: int | None
) -> list[str]:
    """Each file with its difference below it."""
    rows: list[str] = []
    for change in changes:
        lines = diff_lines(change)
        rows.append(f"  {_title(change, lines, cwd, columns)}")
        for line in lines:
            rows += [_coloured(row, line, style) for row in fenced(line, columns)]
    return rows


def diff_lines(change: FileChange) -> list[str]:
    """A change as lines with a sign in front. Codex gives the bare text of added and deleted files."""
    lines = change.diff.removesuffix("\n").split("\n") if change.diff else []
    sign = {"add": ADDED, "delete": REMOVED}.get(change.kind, "")
    return [sign + line for line in lines]


def diff_rows(diff: str, style: Style, columns: int | None) -> list[str]:
    """A whole diff in git's form."""
    rows: list[str] = []
    is_heading = False
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            is_heading = True
            room = None if columns is None else columns - 2
            rows.append(style.bold(f"  {label(line.rpartition(' b/')[2], room)}"))
        elif is_heading and line.startswith(PLACE):
            is_heading = False
        if line and not is_heading:
            rows += [_coloured(row, line, style) for row in fenced(line, columns)]
    return rows


def _title(change: FileChange, lines: list[str], cwd: str | None, columns: int | None) -> str:
    added = sum(line.startswith(ADDED) for line in lines)
    removed = sum(line.startswith(REMOVED) for line in lines)
    moved = f" → {_path(change.move_path, cwd)}" if change.move_path else ""
    room = None if columns is None else columns - len(f"  update  (+{added} −{removed})") - 1
    return f"{change.kind} {label(_path(change.path, cwd) + moved, room)} (+{added} −{removed})"


def _path(path: str, cwd: str | None) -> str:
    """Short for a file below the folder that is worked in; whole for every other."""
    straight = os.path.normpath(path)
    if cwd and straight.startswith(cwd.rstrip("/") + "/"):
        return straight[len(cwd.rstrip("/")) + 1 :]
    return straight


def _coloured(row: str, line: str, style: Style) -> str:
    if line.startswith(ADDED) and not line.startswith("+++"):
        return style.green(row)
    if line.startswith(REMOVED) and not line.startswith("---"):
        return style.red(row)
    return style.dim(row)
