"""Parses the diffs of file changes into hunks, and makes titles and sentences for them. Pure.

Codex sends an update as a unified diff (and appends "Moved to: …" for a rename), an added
or deleted file as its bare text.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from laneway.base.plain import quoted
from laneway.core.model import FileChange

MAX_LINE = 2**32 - 1
"""The largest line number that ACP accepts."""
TITLE_FILES = 3
"""Files that a title names; the others are counted."""

_HUNK = re.compile(r"@@ -(\d{1,19})(?:,(\d{1,19}))? \+(\d{1,19})(?:,(\d{1,19}))? @@")
_MOVED = re.compile(r"\n\nMoved to: [^\n]*\n?\Z")
_VERBS = {"edit": "Edit", "delete": "Delete", "move": "Move"}


class Hunk(msgspec.Struct, frozen=True):
    """One hunk of an update. `line` is a line number of the new file; none where the diff has none."""

    line: int | None
    old_text: str
    new_text: str
    added: int
    removed: int


def absolute(path: str, cwd: str) -> str | None:
    """The absolute path of a file; none where neither the path nor the folder is absolute."""
    if not path or "\0" in path:
        return None
    joined = os.path.join(cwd, path)
    return os.path.normpath(joined) if os.path.isabs(joined) else None


# ── parsing ────────────────────────────────────────────────────────────────


def without_move(diff: str) -> str:
    return _MOVED.sub("", diff)


def hunks(diff: str) -> tuple[Hunk, ...]:
    """The hunks of a unified diff. Of a diff that is still being streamed, those that have arrived."""
    parsed = []
    lines = without_move(diff).split("\n")
    if lines[-1] == "":
        lines.pop()
    at = 0
    while at < len(lines):
        at += 1
        if lines[at - 1].startswith("@@"):
            hunk, at = _hunk(lines, at)
            parsed.append(hunk)
    return tuple(hunk for hunk in parsed if hunk.old_text != hunk.new_text)


def _hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    """The hunk whose header is the line before `at`, and the index after it. The header's counts decide
    where it ends, because a removed line "-- x" looks like a header; without counts, the next header does."""
    header = _HUNK.match(lines[at - 1])
    old_left = int(header[2] or 1) if header else None
    new_left = int(header[4] or 1) if header else None
    old: list[str] = []
    new: list[str] = []
    added = removed = 0
    sides: tuple[list[str], ...] = ()
    while at < len(lines):
        sign, line = lines[at][:1], lines[at][1:] + "\n"
        if sign == "\\":
            for side in sides:
                side[-1] = side[-1].removesuffix("\n")
        elif (old_left == 0 and new_left == 0) or (header is None and lines[at].startswith("@@")):
            break
        elif sign == "+":
            sides = (new,)
            added += 1
        elif sign == "-":
            sides = (old,)
            removed += 1
        elif sign in (" ", ""):
            sides = (old, new)
        else:
            break
        if sign != "\\":
            for side in sides:
                side.append(line)
            old_left = _less(old_left, sign != "+")
            new_left = _less(new_left, sign != "-")
        at += 1
    line_number = min(max(1, int(header[3])), MAX_LINE) if header else None
    return Hunk(line_number, "".join(old), "".join(new), added, removed), at


def _less(left: int | None, used: bool) -> int | None:
    return max(0, left - 1) if left is not None and used else left


# ── titles ─────────────────────────────────────────────────────────────────


def edit_kind(changes: Sequence[FileChange]) -> Literal["edit", "delete", "move"]:
    if changes and all(change.kind == "delete" for change in changes):
        return "delete"
    if changes and all(change.move_path for change in changes):
        return "move"
    return "edit"


def edit_title(changes: Sequence[FileChange]) -> str:
    """The title of an edit: a verb, the files, and the lines added and removed."""
    verb = _VERBS[edit_kind(changes)]
    if not changes:
        return f"{verb} files"
    parts = []
    for change in changes[:TITLE_FILES]:
        added, removed = counts(change)
        target = f" to {_name(change.move_path)}" if change.move_path else ""
        parts.append(f"{_name(change.path)}{target} (+{added} −{removed})")
    more = f" and {len(changes) - TITLE_FILES} more" if len(changes) > TITLE_FILES else ""
    return f"{verb} {', '.join(parts)}{more}"


def counts(change: FileChange) -> tuple[int, int]:
    """Lines added and removed."""
    if change.kind == "update":
        parsed = hunks(change.diff)
        return sum(hunk.added for hunk in parsed), sum(hunk.removed for hunk in parsed)
    count = change.diff.count("\n") + (not change.diff.endswith("\n") and change.diff != "")
    return (count, 0) if change.kind == "add" else (0, count)


def sentence(change: FileChange, cwd: str) -> str:
    verb = {"add": "adds", "delete": "deletes", "update": "changes"}[change.kind]
    return f"This {verb} {quoted_path(change.move_path or change.path, cwd)}."


def quoted_path(path: str, cwd: str) -> str:
    return quoted(absolute(path, cwd) or path) if path else "a file without a name"


def _name(path: str) -> str:
    return os.path.basename(path) or path
