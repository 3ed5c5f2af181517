"""Reads the access (approval policy, sandbox) of a thread's last turn from Codex's rollout file.

`thread/resume` reports the access of the next turn, and where the workspace could be written that is
config.toml's sandbox and not the thread's (0.163). For threads of other programs only Codex's own file
knows better. Read from its end, within bounds. Blocking.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from laneway.base.foreign_files import open_regular

BLOCK_BYTES = 1024 * 1024
"""Read at a time: the last turn is nearly always in the first block from the end."""
MAX_LINE_BYTES = 16 * 1024 * 1024
"""Of an entry. That of a turn takes kilobytes; a longer line is the result of some tool."""
MAX_SEARCHED_BYTES = 1024 * 1024 * 1024
"""Of the end of a file, which takes half a second: longer than any conversation that a model can hold."""
_MARK = b'"type":"turn_context"'
_SANDBOXES = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
    "external-sandbox": "externalSandbox",
}
_FIELDS = {
    "writable_roots": "writableRoots",
    "network_access": "networkAccess",
    "exclude_tmpdir_env_var": "excludeTmpdirEnvVar",
    "exclude_slash_tmp": "excludeSlashTmp",
}


def last_access(path: Path) -> dict[str, Any] | None:
    """Approval policy and sandbox, with the names of `thread/resume`; none if the file has none."""
    try:
        fd = open_regular(path)
    except OSError:
        return None
    try:
        return next((_access(payload) for payload in _contexts(fd)), None)
    except (OSError, ValueError, RecursionError):  # not JSON lines, or truncated while we read
        return None
    finally:
        os.close(fd)


def _contexts(fd: int) -> Iterator[Any]:
    """The `turn_context` of each turn, the last one first."""
    for lines in _last_lines(fd):
        position = lines.rfind(_MARK)
        while position >= 0:
            start = lines.rfind(b"\n", 0, position) + 1
            end = lines.find(b"\n", position)
            entry = json.loads(lines[start : end if end >= 0 else len(lines)])
            # The result of a tool may contain the same text, at another depth.
            if isinstance(entry, dict) and entry.get("type") == "turn_context":
                yield entry.get("payload")
            position = lines.rfind(_MARK, 0, start)


def _last_lines(fd: int) -> Iterator[bytes]:
    """Whole lines, in blocks, from the end of the file to its beginning. Not mapped into memory, because
    truncating a mapped file kills the process that reads it."""
    line_end = b""  # the end of a line whose beginning is in the block before
    position = os.fstat(fd).st_size
    lowest = max(0, position - MAX_SEARCHED_BYTES)
    is_too_long = False
    while position > lowest:
        size = min(BLOCK_BYTES, position - lowest)
        position -= size
        block = os.pread(fd, size, position)
        if is_too_long:
            block = block[: block.rfind(b"\n") + 1]
            is_too_long = not block
        lines = block + line_end
        first = 0 if position == 0 else lines.find(b"\n") + 1
        line_end = b""
        if position == 0 or first:
            yield lines[first:]
            line_end = lines[:first]
        elif len(lines) > MAX_LINE_BYTES:
            is_too_long = True
        else:
            line_end = lines


def _access(payload: Any) -> dict[str, Any] | None:
    match payload:
        case {"approval_policy": approval, "sandbox_policy": {"type": kind, **policy}} if kind in _SANDBOXES:
            fields = {name: policy[field] for field, name in _FIELDS.items() if field in policy}
            return {"approvalPolicy": approval, "sandbox": {"type": _SANDBOXES[kind], **fields}}
        case _:
            return None
