"""Which sessions the user's own Claude Codes have open, from the list that Claude Code keeps of itself.

A running Claude Code writes a file with its process and its session, and removes it at its end. One that
was killed leaves its file behind, so a process counts only with the start time that it wrote. Only reads;
everything blocks: from asyncio call through `asyncio.to_thread`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from laneway.base.foreign_files import read_regular

FOLDER = "sessions"
MAX_FILE_BYTES = 64 * 1024
"""Of one such file, which has less than a thousand."""


class RunningClaude(msgspec.Struct, rename="camel"):
    pid: int
    session_id: str
    proc_start: str = ""
    """In ticks since the start of the system, as Linux counts them."""
    pid_domain: str = ""
    """The system and the namespace that the pid belongs to."""


_decode = msgspec.json.Decoder(RunningClaude).decode


def holder_of(config_home: Path, session_id: str) -> int | None:
    """The process that has a session open; none if it is not known of any."""
    for path in (config_home / FOLDER).glob("*.json"):
        try:
            found = _decode(read_regular(path, MAX_FILE_BYTES))
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue  # it has just ended, or is of another form
        if found.session_id == session_id and _is_alive(found):
            return found.pid
    return None


def _is_alive(claude: RunningClaude) -> bool:
    """Whether that very process runs. Where start times cannot be compared, nothing is claimed."""
    if sys.platform != "linux" or claude.pid <= 0 or not claude.pid_domain.endswith(_pid_namespace()):
        return False
    try:
        with open(f"/proc/{claude.pid}/stat", "rb") as stat:
            # The name in parentheses may hold anything, parentheses too.
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return fields[0] not in (b"Z", b"X") and fields[19].decode() == claude.proc_start


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
