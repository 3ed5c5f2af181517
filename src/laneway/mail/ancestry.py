"""Identifies processes beyond their pid: our own and its ancestors, and whether one is still alive.

A pid alone does not identify a process, because pids are reused. With the time at which the process
started, and the pid namespace, it does. The format is Claude Code's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from typing import Literal

import msgspec

MAX_DEPTH = 64
"""Of ancestors; more can only be a loop."""
PS_S = 5.0
"""For `ps`, where there is no /proc. It takes milliseconds."""


class AncestorProcess(msgspec.Struct, frozen=True):
    """A process by pid and start time."""

    pid: int
    start: str = ""
    """In clock ticks since the machine started, as Linux reports it; empty where it is not known."""


class Ancestry(msgspec.Struct, frozen=True):
    """A process and its ancestors."""

    members: tuple[AncestorProcess, ...]
    """Our own process first, then upwards."""
    space: str
    """The pid namespace that these pids belong to."""

    def has(self, pid: int, start: str, space: str) -> bool:
        """Whether that process is one of these."""
        return space == self.space and any(
            pid == each.pid and (not start or not each.start or start == each.start) for each in self.members
        )


def lineage() -> Ancestry:
    """The ancestry of our own process, as it is now."""
    members = []
    pid = os.getpid()
    for _ in range(MAX_DEPTH):
        parent, start = _look(pid)
        members.append(AncestorProcess(pid, start))
        if parent <= 1:
            break
        pid = parent
    return Ancestry(tuple(members), pid_space())


def ourselves() -> AncestorProcess:
    return AncestorProcess(os.getpid(), _look(os.getpid())[1])


def fate(pid: int, start: str, space: str) -> Literal["alive", "gone", "unknown"]:
    """Whether a process is alive; `unknown` where its pid belongs to another namespace."""
    if space != pid_space():
        return "unknown"
    if pid <= 0:
        return "gone"
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return "gone"
    except PermissionError:
        pass  # another user's
    if _is_zombie(pid):
        return "gone"
    now = _look(pid)[1]
    return "gone" if start and now and now != start else "alive"


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and was not reaped: in a container there may be no process that does."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:  # no /proc, or gone meanwhile
        return False


@cache
def pid_space() -> str:
    """The machine and its pid namespace, written as Claude Code writes it."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    machine = os.uname().nodename
    return f"{machine}#{space}" if space else machine


def _look(pid: int) -> tuple[int, str]:
    """A process's parent and start time; 0 and empty if there is no such process."""
    if sys.platform != "linux":
        return _ask_ps(pid), ""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything, parentheses too.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0, ""
    return int(fields[1]), fields[19].decode()


def _ask_ps(pid: int) -> int:
    try:
        output = subprocess.run(
            ["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, timeout=PS_S, check=False
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return int(output) if output.isdigit() else 0
