"""Formats file changes and diffs as rows of a terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence

from laneway.core.model import FileChange
from laneway.terminal.foreign import fenced, label
from laneway.terminal.style import Style

ADDED, REMOVED, HUNK = "+", "-", "@@"


def change_rows(
    changes: Sequence[FileChange], cwd: str | None, style: Style, columns: int | None
) -> list[str]:
    """Each file with its diff below it."""
    rows: list[str] = []
    for change in changes:
        lines = diff_lines(change)
        rows.append(f"  {_title(change, lines, cwd, columns)}")
        for line in lines:
            rows += [_coloured(row, line, style) for row in fenced(line, columns)]
    return rows


def diff_lines(change: FileChange) -> list[str]:
    """The diff of a change as lines with a sign. For added and deleted files Codex sends the bare text."""
    lines = change.diff.removesuffix("\n").split("\n") if change.diff else []
    sign = {"add": ADDED, "delete": REMOVED}.get(change.kind, "")
    return [sign + line for line in lines]


def diff_rows(diff: str, style: Style, columns: int | None) -> list[str]:
    """A whole diff in git's format."""
    rows: list[str] = []
    is_heading = False
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            is_heading = True
            max_cells = None if columns is None else columns - 2
            rows.append(style.bold(f"  {label(line.rpartition(' b/')[2], max_cells)}"))
        elif is_heading and line.startswith(HUNK):
            is_heading = False
        if line and not is_heading:
            rows += [_coloured(row, line, style) for row in fenced(line, columns)]
    return rows


def _title(change: FileChange, lines: list[str], cwd: str | None, columns: int | None) -> str:
    added = sum(line.startswith(ADDED) for line in lines)
    removed = sum(line.startswith(REMOVED) for line in lines)
    moved = f" → {_path(change.move_path, cwd)}" if change.move_path else ""
    max_cells = None if columns is None else columns - len(f"  update  (+{added} −{removed})") - 1
    return f"{change.kind} {label(_path(change.path, cwd) + moved, max_cells)} (+{added} −{removed})"


def _path(path: str, cwd: str | None) -> str:
    """Relative for a file below the session's folder; absolute for any other."""
    normal = os.path.normpath(path)
    if cwd and normal.startswith(cwd.rstrip("/") + "/"):
        return normal[len(cwd.rstrip("/")) + 1 :]
    return normal


def _coloured(row: str, line: str, style: Style) -> str:
    if line.startswith(ADDED) and not line.startswith("+++"):
        return style.green(row)
    if line.startswith(REMOVED) and not line.startswith("---"):
        return style.red(row)
    return style.dim(row)
