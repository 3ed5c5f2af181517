"""What Codex wrote down of a thread: the access that its last turn had.

`thread/resume` tells what the next turn would have, and where the workspace could be written
that is config.toml's sandbox and not the thread's (0.163). Of threads that others ran, only
Codex's own record knows better. Read from its end, within bounds. Blocking.
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
"""Of an entry. That of a turn takes kilobytes; a longer line is what some tool returned."""
MAX_SEARCHED_BYTES = 1024 * 1024 * 1024
"""Of the end of a record, which takes half a second: longer than any conversation that a model can hold."""
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
    """Approval policy and sandbox, as `thread/resume` names them; none if the record does not tell."""
    try:
        fd = open_regular(path)
    except OSError:
        return None
    try:
        return next((_access(payload) for payload in _contexts(fd)), None)
    except (OSError, ValueError, RecursionError):  # no lines of JSON, or cut off while we read
        return None
    finally:
        os.close(fd)


def _contexts(fd: int) -> Iterator[Any]:
    """What stands in the record of each turn, the last one first."""
    for lines in _last_lines(fd):
        at = lines.rfind(_MARK)
        while at >= 0:
            start = lines.rfind(b"\n", 0, at) + 1
            end = lines.find(b"\n", at)
            entry = json.loads(lines[start : end if end >= 0 else len(lines)])
            # What a tool returned may look the same, further inside.
            if isinstance(entry, dict) and entry.get("type") == "turn_context":
                yield entry.get("payload")
            at = lines.rfind(_MARK, 0, start)


def _last_lines(fd: int) -> Iterator[bytes]:
    """Whole lines, some at a time, from the end of the file to its beginning. Not mapped into memory:
    whoever cuts a mapped file short ends the process that reads it."""
    begun = b""  # the end of a line whose beginning lies further up
    at = os.fstat(fd).st_size
    lowest = max(0, at - MAX_SEARCHED_BYTES)
    is_too_long = False
    while at > lowest:
        size = min(BLOCK_BYTES, at - lowest)
        at -= size
        block = os.pread(fd, size, at)
        if is_too_long:
            block = block[: block.rfind(b"\n") + 1]
            is_too_long = not block
        lines = block + begun
        first = 0 if at == 0 else lines.find(b"\n") + 1
        begun = b""
        if at == 0 or first:
            yield lines[first:]
            begun = lines[:first]
        elif len(lines) > MAX_LINE_BYTES:
            is_too_long = True
        else:
            begun = lines


def _access(payload: Any) -> dict[str, Any] | None:
    match payload:
        case {"approval_policy": approval, "sandbox_policy": {"type": kind, **given}} if kind in _SANDBOXES:
            fields = {name: given[field] for field, name in _FIELDS.items() if field in given}
            return {"approvalPolicy": approval, "sandbox": {"type": _SANDBOXES[kind], **fields}}
        case _:
            return None
