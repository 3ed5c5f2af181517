"""File changes as ACP shows them: a diff per hunk, a location per hunk, a title that counts lines.

Pure. Codex gives an update as a unified diff (and appends "Moved to: …" for a rename), an added
or deleted file as its bare text. What cannot be shown as a diff is said in a sentence, so that
whoever is asked to allow a change never sees less of it than there is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from laneway.base.plain import fenced, is_plain_code, quoted
from laneway.core.model import FileChange
from laneway.doors.acp.telling import blocks

MAX_DIFF_CHARS = 4 * 1024 * 1024
"""Of all the diffs in one tool call, for the reason of `MAX_OUTPUT_CHARS`. A diff is never cut:
half a file would be a lie about the other half."""
MAX_LOCATIONS = 1000
"""In one tool call. Editors follow along; nobody follows further."""
MAX_LINE = 2**32 - 1
"""The largest line number that ACP takes."""
TITLE_FILES = 3
"""Files that a title names; the others are counted."""

_HUNK = re.compile(r"@@ -(\d{1,19})(?:,(\d{1,19}))? \+(\d{1,19})(?:,(\d{1,19}))? @@")
_MOVED = re.compile(r"\n\nMoved to: [^\n]*\n?\Z")
_VERBS = {"edit": "Edit", "delete": "Delete", "move": "Move"}


class Hunk(msgspec.Struct, frozen=True):
    """One place of an update. `line` counts in the new file; none where the diff does not tell."""

    line: int | None
    old_text: str
    new_text: str
    added: int
    removed: int


def absolute(path: str, cwd: str) -> str | None:
    """ACP demands absolute paths. None where there is nothing to stand on."""
    if not path or "\0" in path:
        return None
    joined = os.path.join(cwd, path)
    return os.path.normpath(joined) if os.path.isabs(joined) else None


# ── reading ────────────────────────────────────────────────────────────────


def without_move(diff: str) -> str:
    return _MOVED.sub("", diff)


def hunks(diff: str) -> tuple[Hunk, ...]:
    """The hunks of a unified diff. A diff that is still being written gives what there is."""
    found = []
    lines = without_move(diff).split("\n")
    if lines[-1] == "":
        lines.pop()
    at = 0
    while at < len(lines):
        at += 1
        if lines[at - 1].startswith("@@"):
            hunk, at = _hunk(lines, at)
            found.append(hunk)
    return tuple(hunk for hunk in found if hunk.old_text != hunk.new_text)


def _hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    """The hunk whose header stands before `at`, and where it ends: by its counts, for a removed
    line "-- x" reads like a header. A header without numbers ends where the next one begins."""
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


# ── showing ────────────────────────────────────────────────────────────────


def contents(
    changes: Sequence[FileChange], cwd: str, max_chars: int = MAX_DIFF_CHARS
) -> list[blocks.Content]:
    """Every change as diffs, or as a sentence where it is none."""
    made: list[blocks.Content] = []
    for change in changes:
        size = len(change.diff)
        path = absolute(change.move_path or change.path, cwd)
        if change.move_path:
            made.append(blocks.text(f"Moved {_shown(change.path, cwd)} to {_shown(change.move_path, cwd)}."))
        elif path is not None and not is_plain_code(path):
            # A diff carries the true path, which a client may show as it likes.
            made.append(blocks.text(f"The path of the next file is {quoted(path)}."))
        if size > max_chars:
            added, removed = _counts(change)
            lines = f"{added:,} lines added, {removed:,} removed"
            made.append(blocks.text(f"{_sentence(change, cwd)} It is too long to show: {lines}."))
            continue
        max_chars -= size
        if path is None:
            made.append(blocks.text(f"{_sentence(change, cwd)}\n\n{fenced(change.diff, 'diff')}"))
        else:
            made += _diffs(change, path, cwd)
    return made


def _diffs(change: FileChange, path: str, cwd: str) -> list[blocks.Content]:
    if change.kind == "add":
        # The protocol lets it be left out; Toad shows no diff without it (0.6.20).
        return [{"type": "diff", "path": path, "oldText": None, "newText": change.diff}]
    if change.kind == "delete":
        return [{"type": "diff", "path": path, "oldText": change.diff, "newText": ""}]
    found = hunks(change.diff)
    if found:
        return [
            {"type": "diff", "path": path, "oldText": hunk.old_text, "newText": hunk.new_text}
            for hunk in found
        ]
    rest = without_move(change.diff).strip("\n")
    if rest and not rest.startswith("@@"):
        # Binary files, changes of mode: git's own words are all there is.
        return [blocks.text(f"{_sentence(change, cwd)}\n\n{fenced(rest, 'diff')}")]
    return [] if change.move_path else [blocks.text(f"{_sentence(change, cwd)} Its text stays the same.")]


def locations(changes: Sequence[FileChange], cwd: str) -> list[dict[str, Any]]:
    """Where an editor should look: each hunk once."""
    made: list[dict[str, Any]] = []
    for change in changes:
        path = absolute(change.move_path or change.path, cwd)
        if path is None:
            continue
        lines = [hunk.line for hunk in hunks(change.diff)] if change.kind == "update" else []
        made += [{"path": path} if line is None else {"path": path, "line": line} for line in lines or [1]]
    return made[:MAX_LOCATIONS]


def edit_kind(changes: Sequence[FileChange]) -> Literal["edit", "delete", "move"]:
    if changes and all(change.kind == "delete" for change in changes):
        return "delete"
    if changes and all(change.move_path for change in changes):
        return "move"
    return "edit"


def edit_title(changes: Sequence[FileChange]) -> str:
    """What is done to which files, with lines added and removed."""
    verb = _VERBS[edit_kind(changes)]
    if not changes:
        return f"{verb} files"
    parts = []
    for change in changes[:TITLE_FILES]:
        added, removed = _counts(change)
        target = f" to {_name(change.move_path)}" if change.move_path else ""
        parts.append(f"{_name(change.path)}{target} (+{added} −{removed})")
    more = f" and {len(changes) - TITLE_FILES} more" if len(changes) > TITLE_FILES else ""
    return f"{verb} {', '.join(parts)}{more}"


def _counts(change: FileChange) -> tuple[int, int]:
    """Lines added and removed."""
    if change.kind == "update":
        found = hunks(change.diff)
        return sum(hunk.added for hunk in found), sum(hunk.removed for hunk in found)
    count = change.diff.count("\n") + (not change.diff.endswith("\n") and change.diff != "")
    return (count, 0) if change.kind == "add" else (0, count)


def _sentence(change: FileChange, cwd: str) -> str:
    what = {"add": "adds", "delete": "deletes", "update": "changes"}[change.kind]
    return f"This {what} {_shown(change.move_path or change.path, cwd)}."


def _shown(path: str, cwd: str) -> str:
    return quoted(absolute(path, cwd) or path) if path else "a file without a name"


def _name(path: str) -> str:
    return os.path.basename(path) or path
