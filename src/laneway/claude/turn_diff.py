"""All edits of one turn as one unified diff, from what Claude Code reports of each edit.

It covers what the editing tools changed, not what commands did. Pure but for its own memory.
"""

from __future__ import annotations

import difflib
import os
from typing import Any

from laneway.claude.activities import ToolCall, ToolCallResult, maybe

MAX_FILE_CHARS = 1024 * 1024
"""Of one file; a larger one is left out, since a diff of it is made anew after every edit."""


class TurnDiff:
    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._files: dict[str, tuple[str | None, str]] = {}
        """By path: the text before the turn, none for a file that is new, and the text now."""

    def clear(self) -> None:
        self._files.clear()

    def take(self, call: ToolCall, result: ToolCallResult) -> str | None:
        """The diff after an edit; none if nothing is known of that edit."""
        details = result.details
        if result.is_error or not isinstance(details, dict):
            return None
        path = os.path.join(self._cwd, str(call.arguments.get("file_path") or ""))
        before = maybe(details.get("originalFile"), str)
        after = _after(call, details, before)
        if after is None or max(len(after), len(before or "")) > MAX_FILE_CHARS:
            return None
        original = self._files[path][0] if path in self._files else before
        self._files[path] = original, after
        return "".join(
            _file_diff(os.path.relpath(each, self._cwd), *texts) for each, texts in self._files.items()
        )


def _after(call: ToolCall, details: dict[str, Any], before: str | None) -> str | None:
    """The text of a file after an edit."""
    if call.name == "Write":
        return maybe(details.get("content"), str)
    old, new = maybe(details.get("oldString"), str), maybe(details.get("newString"), str)
    if before is None or old is None or new is None or not old:
        return None
    return before.replace(old, new, -1 if details.get("replaceAll") is True else 1)


def _file_diff(name: str, before: str | None, after: str) -> str:
    old_name = "/dev/null" if before is None else f"a/{name}"
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True),
        after.splitlines(keepends=True),
        old_name,
        f"b/{name}",
    )
    ended = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    body = "".join(ended)
    return f"diff --git a/{name} b/{name}\n{body}" if body else ""
