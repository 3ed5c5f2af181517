"""File changes as ACP shows them: a diff per hunk, a location per hunk.

Pure. What cannot be shown as a diff is said in a sentence, so that whoever is asked to allow a change
never sees less of it than there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laneway.base.plain import fenced, is_plain_code, quoted
from laneway.core.model import FileChange
from laneway.doors.acp.updates import blocks
from laneway.rendering.diffs import absolute, counts, hunks, sentence, shown, without_move

MAX_DIFF_CHARS = 4 * 1024 * 1024
"""Of all the diffs in one tool call, for the reason of `MAX_OUTPUT_CHARS`. A diff is never cut:
half a file would be a lie about the other half."""
MAX_LOCATIONS = 1000
"""In one tool call. Editors follow along; nobody follows further."""


def contents(
    changes: Sequence[FileChange], cwd: str, max_chars: int = MAX_DIFF_CHARS
) -> list[blocks.Content]:
    """Every change as diffs, or as a sentence where it is none."""
    made: list[blocks.Content] = []
    for change in changes:
        size = len(change.diff)
        path = absolute(change.move_path or change.path, cwd)
        if change.move_path:
            made.append(blocks.text(f"Moved {shown(change.path, cwd)} to {shown(change.move_path, cwd)}."))
        elif path is not None and not is_plain_code(path):
            # A diff carries the true path, which a client may show as it likes.
            made.append(blocks.text(f"The path of the next file is {quoted(path)}."))
        if size > max_chars:
            added, removed = counts(change)
            lines = f"{added:,} lines added, {removed:,} removed"
            made.append(blocks.text(f"{sentence(change, cwd)} It is too long to show: {lines}."))
            continue
        max_chars -= size
        if path is None:
            made.append(blocks.text(f"{sentence(change, cwd)}\n\n{fenced(change.diff, 'diff')}"))
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
        return [blocks.text(f"{sentence(change, cwd)}\n\n{fenced(rest, 'diff')}")]
    return [] if change.move_path else [blocks.text(f"{sentence(change, cwd)} Its text stays the same.")]


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
