"""Unified diffs as rows of two sides, for a view side by side. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from laneway.base.plain import plain_code
from laneway.core.model import FileChange
from laneway.rendering.diffs import without_move

MAX_ROWS = 2000
"""Of one file; the rest is counted."""

_HEADER = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@(.*)")


class DiffRow(msgspec.Struct, frozen=True, array_like=True):
    """One line of both sides. `sign`: a space (same), `-`, `+`, `~` (changed) or `@` (a hunk begins)."""

    sign: str
    old_number: int | None = None
    old: str = ""
    new_number: int | None = None
    new: str = ""


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    kind: str
    rows: tuple[DiffRow, ...]
    left_out: int = 0
    """Rows beyond `MAX_ROWS`."""
    move_path: str | None = None


def change_diff(change: FileChange) -> FileDiff:
    if change.kind == "update":
        rows = list(_rows(without_move(change.diff).split("\n")))
    else:
        rows = _whole(change.diff, is_added=change.kind == "add")
    move = plain_code(change.move_path) if change.move_path else None
    return _file(plain_code(change.path), change.kind, rows, move)


def turn_diffs(diff: str) -> list[FileDiff]:
    """Of a unified diff over several files."""
    files: list[FileDiff] = []
    lines: list[str] = []
    path, kind = "", "update"
    for line in [*diff.split("\n"), "diff --git end"]:
        if line.startswith("diff --git ") or (line.startswith("--- ") and not diff.startswith("diff --git")):
            if path or lines:
                files.append(_file(plain_code(path or "?"), kind, list(_rows(lines))))
            path, lines, kind = _path_of(line), [], "update"
        elif line.startswith("new file"):
            kind = "add"
        elif line.startswith("deleted file"):
            kind = "delete"
        elif line.startswith("+++ ") and not lines:
            named = line[4:].removeprefix("b/").partition("\t")[0]
            path = path if named == "/dev/null" else named
        elif line.startswith("@@") or lines:
            lines.append(line)
    return files


def _path_of(line: str) -> str:
    if line.startswith("diff --git "):
        return line.rpartition(" b/")[2]
    return line[4:].removeprefix("a/").partition("\t")[0]


def _file(path: str, kind: str, rows: Sequence[DiffRow], move_path: str | None = None) -> FileDiff:
    shown = tuple(rows[:MAX_ROWS])
    return FileDiff(path=path, kind=kind, rows=shown, left_out=len(rows) - len(shown), move_path=move_path)


def _whole(text: str, *, is_added: bool) -> list[DiffRow]:
    lines = text.removesuffix("\n").split("\n") if text else []
    if is_added:
        return [DiffRow("+", None, "", at, plain_code(line)) for at, line in enumerate(lines, 1)]
    return [DiffRow("-", at, plain_code(line)) for at, line in enumerate(lines, 1)]


def _rows(lines: Sequence[str]) -> Iterator[DiffRow]:
    old_at = new_at = 1
    removed: list[tuple[int, str]] = []
    added: list[tuple[int, str]] = []
    for line in lines:
        header = _HEADER.match(line)
        sign, text = line[:1], plain_code(line[1:])
        if header is None and sign == "-":
            if added:
                yield from _paired(removed, added)
            removed.append((old_at, text))
            old_at += 1
            continue
        if header is None and sign == "+":
            added.append((new_at, text))
            new_at += 1
            continue
        yield from _paired(removed, added)
        if header is not None:
            old_at, new_at = int(header[1]), int(header[2])
            yield DiffRow("@", None, plain_code(header[3].strip()))
        elif sign == " ":
            yield DiffRow(" ", old_at, text, new_at, text)
            old_at, new_at = old_at + 1, new_at + 1
    yield from _paired(removed, added)


def _paired(removed: list[tuple[int, str]], added: list[tuple[int, str]]) -> Iterator[DiffRow]:
    """Lines that were replaced stand beside each other."""
    for at in range(max(len(removed), len(added))):
        old = removed[at] if at < len(removed) else None
        new = added[at] if at < len(added) else None
        sign = "~" if old and new else "-" if old else "+"
        yield DiffRow(sign, *(old or (None, "")), *(new or (None, "")))
    removed.clear()
    added.clear()
