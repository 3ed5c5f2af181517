"""File changes as content of ACP 2: the operation on each file, and a patch in git's format.

Pure. A change that has no patch is described in a sentence (`laneway.doors.acp.updates.diffs`), so that
a user who is asked to allow the changes sees all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from laneway.base.plain import fenced
from laneway.core.model import FileChange
from laneway.doors.acp.updates import blocks, diffs
from laneway.rendering.diffs import absolute, without_move

_UNUSUAL = re.compile(rb'[\x00-\x1f"\\\x7f-\xff]')
_ESCAPES = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_BARE_HUNK = re.compile(r"^@@(?! -\d)", re.MULTILINE)
_NO_NEWLINE = "\\ No newline at end of file\n"


def contents(
    changes: Sequence[FileChange], cwd: str, max_chars: int = diffs.MAX_DIFF_CHARS
) -> list[blocks.Content]:
    """All changes as one diff, followed by sentences for changes that the patch does not show."""
    operations: list[dict[str, Any]] = []
    sections: list[str] = []
    sentences: list[blocks.Content] = []
    for change in changes:
        operation = _operation(change, cwd)
        if operation is not None:
            operations.append(operation)
        patch = section(change, cwd) if operation is not None and len(change.diff) <= max_chars else None
        if patch is None:
            sentences += _as_text(change, cwd, max_chars)
        else:
            max_chars -= len(change.diff)
            sections.append(patch)
    if not operations:
        return sentences
    diff: blocks.Content = {"type": "diff", "changes": operations}
    if sections:
        diff["patch"] = {"format": "git_patch", "text": "".join(sections)}
    return [diff, *sentences]


def _as_text(change: FileChange, cwd: str, max_chars: int) -> list[blocks.Content]:
    content = diffs.contents([change], cwd, max_chars)
    if any(part["type"] == "diff" for part in content):  # hunks without line numbers
        return [blocks.text(fenced(without_move(change.diff), "diff"))]
    return content


def _operation(change: FileChange, cwd: str) -> dict[str, Any] | None:
    old, new = absolute(change.path, cwd), absolute(change.move_path or change.path, cwd)
    if old is None or new is None:
        return None
    if change.move_path:
        return {"operation": "move", "oldPath": old, "path": new}
    return {"operation": {"update": "modify"}.get(change.kind, change.kind), "path": new}


def section(change: FileChange, cwd: str) -> str | None:
    """The `diff --git` section of a change, with absolute paths; none if it has no text to show."""
    old, new = absolute(change.path, cwd), absolute(change.move_path or change.path, cwd)
    if old is None or new is None:
        return None
    head = f"diff --git {quoted(old)} {quoted(new)}\n"
    match change.kind:
        case "add":
            return f"{head}new file mode 100644\n{_whole('+', '/dev/null', _header_path(new), change.diff)}"
        case "delete":
            return (
                f"{head}deleted file mode 100644\n{_whole('-', _header_path(old), '/dev/null', change.diff)}"
            )
    renamed = f"rename from {quoted(old)}\nrename to {quoted(new)}\n" if change.move_path else ""
    hunks = _hunks(change.diff)
    if hunks:
        return f"{head}{renamed}--- {_header_path(old)}\n+++ {_header_path(new)}\n{hunks}"
    return f"{head}{renamed}" if renamed and not without_move(change.diff).strip() else None


def _hunks(diff: str) -> str:
    """The hunks of a unified diff, unchanged; empty if one has no line numbers (yet)."""
    text = without_move(diff)
    start = _HUNK.search(text)
    if start is None or _BARE_HUNK.search(text):
        return ""
    body = text[start.start() :]
    return body if body.endswith("\n") else f"{body}\n"


def _whole(sign: str, old: str, new: str, text: str) -> str:
    """A new or deleted file as one hunk; empty for an empty file."""
    if not text:
        return ""
    lines = text.split("\n")
    ends_with_newline = lines[-1] == ""
    if ends_with_newline:
        lines.pop()
    span = f"1,{len(lines)}" if len(lines) > 1 else "1"
    header = f"@@ -0,0 +{span} @@\n" if sign == "+" else f"@@ -{span} +0,0 @@\n"
    body = "".join(f"{sign}{line}\n" for line in lines)
    return f"--- {old}\n+++ {new}\n{header}{body}" + ("" if ends_with_newline else _NO_NEWLINE)


def quoted(path: str) -> str:
    """A path as git writes it: quoted and escaped if it is not plain ASCII."""
    raw = path.encode()
    if not _UNUSUAL.search(raw):
        return path
    return '"' + _UNUSUAL.sub(_escaped, raw).decode("ascii") + '"'


def _escaped(match: re.Match[bytes]) -> bytes:
    byte = match[0][0]
    return f"\\{_ESCAPES.get(byte, f'{byte:03o}')}".encode()


def _header_path(path: str) -> str:
    """A path in a `---` or `+++` line, where git adds a tab to a path with a space."""
    text = quoted(path)
    return f"{text}\t" if " " in text and not text.startswith('"') else text
