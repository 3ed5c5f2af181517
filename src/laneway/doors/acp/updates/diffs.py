"""File changes as ACP content and locations: a diff and a location per hunk.

Pure. A change that cannot be shown as a diff is described in a sentence, so that a user who is asked
to allow the changes sees all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laneway.base.plain import fenced, is_plain_code, quoted
from laneway.core.model import FileChange
from laneway.doors.acp.updates import blocks
from laneway.rendering.diffs import absolute, counts, hunks, quoted_path, sentence, without_move

MAX_DIFF_CHARS = 4 * 1024 * 1024
"""Of all the diffs in one tool call, for the reason of `MAX_OUTPUT_CHARS`. A diff is never cut:
half a file would look as if the other half were deleted."""
MAX_LOCATIONS = 1000
"""In one tool call. Editors open them one after the other; more are of no use."""


def contents(
    changes: Sequence[FileChange], cwd: str, max_chars: int = MAX_DIFF_CHARS
) -> list[blocks.Content]:
    """Every change as diffs, or as a sentence if it has none."""
    content: list[blocks.Content] = []
    for change in changes:
        size = len(change.diff)
        path = absolute(change.move_path or change.path, cwd)
        if change.move_path:
            content.append(
                blocks.text(f"Moved {quoted_path(change.path, cwd)} to {quoted_path(change.move_path, cwd)}.")
            )
        elif path is not None and not is_plain_code(path):
            # The diff has the path as it is, and the client may show it without escaping.
            content.append(blocks.text(f"The path of the next file is {quoted(path)}."))
        if size > max_chars:
            added, removed = counts(change)
            lines = f"{added:,} lines added, {removed:,} removed"
            content.append(blocks.text(f"{sentence(change, cwd)} It is too long to show: {lines}."))
            continue
        max_chars -= size
        if path is None:
            content.append(blocks.text(f"{sentence(change, cwd)}\n\n{fenced(change.diff, 'diff')}"))
        else:
            content += _diffs(change, path, cwd)
    return content


def _diffs(change: FileChange, path: str, cwd: str) -> list[blocks.Content]:
    if change.kind == "add":
        # `oldText` is optional in the protocol, but Toad shows no diff without it (0.6.20).
        return [{"type": "diff", "path": path, "oldText": None, "newText": change.diff}]
    if change.kind == "delete":
        return [{"type": "diff", "path": path, "oldText": change.diff, "newText": ""}]
    change_hunks = hunks(change.diff)
    if change_hunks:
        return [
            {"type": "diff", "path": path, "oldText": hunk.old_text, "newText": hunk.new_text}
            for hunk in change_hunks
        ]
    rest = without_move(change.diff).strip("\n")
    if rest and not rest.startswith("@@"):
        # Binary files, changes of mode: there is only git's text.
        return [blocks.text(f"{sentence(change, cwd)}\n\n{fenced(rest, 'diff')}")]
    return [] if change.move_path else [blocks.text(f"{sentence(change, cwd)} Its text stays the same.")]


def locations(changes: Sequence[FileChange], cwd: str) -> list[dict[str, Any]]:
    """The places that an editor can open: one for each hunk."""
    rows: list[dict[str, Any]] = []
    for change in changes:
        path = absolute(change.move_path or change.path, cwd)
        if path is None:
            continue
        lines = [hunk.line for hunk in hunks(change.diff)] if change.kind == "update" else []
        rows += [{"path": path} if line is None else {"path": path, "line": line} for line in lines or [1]]
    return rows[:MAX_LOCATIONS]
