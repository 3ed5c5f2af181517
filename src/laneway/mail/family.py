"""The process that we are and those above it: who they are, and whether one is still the same.

A pid alone is nobody: numbers are used again. With the time at which the process began, and
the name of the space in which the number counts, it is one process. The words are Claude Code's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from typing import Literal

import msgspec

MAX_DEPTH = 64
"""Parents above us; more is a loop or a joke."""
PS_S = 5.0
"""For `ps`, where there is no /proc. It takes milliseconds."""


class Process(msgspec.Struct, frozen=True):
    pid: int
    start: str = ""
    """In clock ticks since the machine began, as Linux tells it; empty where nobody tells."""


class Family(msgspec.Struct, frozen=True):
    members: tuple[Process, ...]
    """We ourselves first, then upwards."""
    space: str
    """Where these pids count."""

    def has(self, pid: int, start: str, space: str) -> bool:
        """Whether that process is one of us."""
        return space == self.space and any(
            pid == each.pid and (not start or not each.start or start == each.start) for each in self.members
        )


def lineage() -> Family:
    """Ours, as it is now."""
    members = []
    pid = os.getpid()
    for _ in range(MAX_DEPTH):
        parent, start = _look(pid)
        members.append(Process(pid, start))
        if parent <= 1:
            break
        pid = parent
    return Family(tuple(members), pid_space())


def ourselves() -> Process:
    return Process(os.getpid(), _look(os.getpid())[1])


def fate(pid: int, start: str, space: str) -> Literal["alive", "gone", "unknown"]:
    """What became of a process; `unknown` where its pid means nothing here."""
    if space != pid_space():
        return "unknown"
    if pid <= 0:
        return "gone"
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return "gone"
    except PermissionError:
        pass  # somebody else's
    if _is_zombie(pid):
        return "gone"
    now = _look(pid)[1]
    return "gone" if start and now and now != start else "alive"


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and nobody has asked how: in a container there may be nobody who ever does."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[:1] == [b"Z"]
    except OSError:  # no /proc, or gone meanwhile
        return False


@cache
def pid_space() -> str:
    """The machine and its name space of pids, spelt as Claude Code spells it."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    machine = os.uname().nodename
    return f"{machine}#{space}" if space else machine


def _look(pid: int) -> tuple[int, str]:
    """Parent and start; 0 and nothing if nobody is there."""
    if sys.platform != "linux":
        return _ask_ps(pid), ""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in brackets may hold anything, brackets too.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0, ""
    return int(fields[1]), fields[19].decode()


def _ask_ps(pid: int) -> int:
    try:
        told = subprocess.run(
            ["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, timeout=PS_S, check=False
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return int(told) if told.isdigit() else 0
