"""What Codex wrote down of a thread: the access that its last turn had.

`thread/resume` tells what the next turn would have, and where the workspace could be written
that is config.toml's sandbox and not the thread's (0.163). Of threads that others ran, only
Codex's own record knows better. Read from its end, however long it is. Blocking.
"""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any

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
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as record:
            return _last(record)
    except (OSError, ValueError):  # gone, empty, or no lines of JSON
        return None


def _last(record: mmap.mmap) -> dict[str, Any] | None:
    at = record.rfind(_MARK)
    while at >= 0:
        start = record.rfind(b"\n", 0, at) + 1
        end = record.find(b"\n", at)
        entry = json.loads(record[start : end if end >= 0 else len(record)])
        # What a tool returned may look the same, further inside.
        if entry.get("type") == "turn_context":
            return _access(entry.get("payload"))
        at = record.rfind(_MARK, 0, start)
    return None


def _access(payload: Any) -> dict[str, Any] | None:
    match payload:
        case {"approval_policy": approval, "sandbox_policy": {"type": kind, **given}} if kind in _SANDBOXES:
            fields = {name: given[field] for field, name in _FIELDS.items() if field in given}
            return {"approvalPolicy": approval, "sandbox": {"type": _SANDBOXES[kind], **fields}}
        case _:
            return None
