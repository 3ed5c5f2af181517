"""Decides whether a process is a person at a terminal, and not a program that an agent runs.

Only a person may answer a question: the agent that asked it runs as the same user and could connect as
well. The kernel names the process at the other end; it must have a terminal, be in the foreground of it,
and descend neither from us nor from an agent (nor from the client that started us, if that is an agent).
A process that cannot be examined does not count as a person.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

AGENTS = ("codex", "claude")
"""Programs that run commands which nobody typed, by the start of their names."""
GUARDIAN = "guardian.py"
"""The parent of an agent's processes, those included that the agent left behind."""
MAX_ANCESTORS = 256
"""Between a process and the first one; if there are more, the process table changes while it is read."""
PS_S = 5.0


class ProcessSeen(msgspec.Struct, frozen=True):
    """A row of the process table."""

    parent: int
    group: int
    foreground: int
    """The foreground process group of its terminal; -1 or 0 without one."""
    words: tuple[str, ...] = ()
    """Its command line."""


Look: TypeAlias = Callable[[int], ProcessSeen | None]


def is_person(pid: int | None, look: Look | None = None) -> bool:
    """Whether the process is a person's. Blocks for some milliseconds: it reads the process table."""
    look = look or _look
    seen = None if pid is None else look(pid)
    if pid is None or seen is None or seen.foreground <= 0 or seen.group != seen.foreground:
        return False
    ours = list(_lineage(os.getpid(), look))
    for each, process in _lineage(pid, look):
        if each == os.getpid() or process is None or is_agent(process.words):
            return False
        if (each, process) in ours:
            break  # common ancestors of both processes say nothing about either
    return True


def _lineage(pid: int, look: Look) -> Iterator[tuple[int, ProcessSeen | None]]:
    """A process and its ancestors, up to the first of the system; `None` for one that is gone."""
    for _ in range(MAX_ANCESTORS):
        seen = look(pid)
        yield pid, seen
        if seen is None or seen.parent <= 1:
            return
        pid = seen.parent
    yield pid, None


def is_agent(words: Sequence[str]) -> bool:
    if any(os.path.basename(word) == GUARDIAN for word in words[:4]) and "--" in words:
        words = words[list(words).index("--") + 1 :]
    return bool(words) and os.path.basename(words[0]).lower().startswith(AGENTS)


def _look(pid: int) -> ProcessSeen | None:
    return _look_in_proc(pid) if os.path.isdir("/proc/self") else _look_with_ps(pid)


def _look_in_proc(pid: int) -> ProcessSeen | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything, so split after the last parenthesis.
            fields = file.read().rpartition(b")")[2].split()
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return None
    texts = tuple(os.fsdecode(word) for word in words if word)
    return ProcessSeen(int(fields[1]), int(fields[2]), int(fields[5]), texts)


def _look_with_ps(pid: int) -> ProcessSeen | None:
    import subprocess

    command = ["/bin/ps", "-o", "ppid=,pgid=,tpgid=,command=", "-p", str(pid)]
    try:
        output = subprocess.run(command, capture_output=True, timeout=PS_S, check=True)  # a constant
        parent, group, foreground, *words = output.stdout.decode("utf-8", "replace").split()
        return ProcessSeen(int(parent), int(group), int(foreground), tuple(words))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
