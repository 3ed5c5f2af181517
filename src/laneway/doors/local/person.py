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


class ProcessRow(msgspec.Struct, frozen=True):
    """A row of the process table."""

    parent: int
    group: int
    foreground: int
    """The foreground process group of its terminal; -1 or 0 without one."""
    arguments: tuple[str, ...] = ()
    """Its command line."""


ReadProcess: TypeAlias = Callable[[int], ProcessRow | None]


def is_person(pid: int | None, read_process: ReadProcess | None = None) -> bool:
    """Whether the process is a person's. Blocks for some milliseconds: it reads the process table."""
    read_process = read_process or _read_process
    row = None if pid is None else read_process(pid)
    if pid is None or row is None or row.foreground <= 0 or row.group != row.foreground:
        return False
    ours = list(_lineage(os.getpid(), read_process))
    for each, process in _lineage(pid, read_process):
        if each == os.getpid() or process is None or is_agent(process.arguments):
            return False
        if (each, process) in ours:
            break  # common ancestors of both processes say nothing about either
    return True


def _lineage(pid: int, read_process: ReadProcess) -> Iterator[tuple[int, ProcessRow | None]]:
    """A process and its ancestors, up to the first of the system; `None` for one that is gone."""
    for _ in range(MAX_ANCESTORS):
        row = read_process(pid)
        yield pid, row
        if row is None or row.parent <= 1:
            return
        pid = row.parent
    yield pid, None


def is_agent(arguments: Sequence[str]) -> bool:
    if any(os.path.basename(argument) == GUARDIAN for argument in arguments[:4]) and "--" in arguments:
        arguments = arguments[list(arguments).index("--") + 1 :]
    return bool(arguments) and os.path.basename(arguments[0]).lower().startswith(AGENTS)


def _read_process(pid: int) -> ProcessRow | None:
    return _read_process_in_proc(pid) if os.path.isdir("/proc/self") else _read_process_with_ps(pid)


def _read_process_in_proc(pid: int) -> ProcessRow | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything, so split after the last parenthesis.
            fields = file.read().rpartition(b")")[2].split()
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read().split(b"\0")
    except OSError:
        return None
    texts = tuple(os.fsdecode(argument) for argument in arguments if argument)
    return ProcessRow(int(fields[1]), int(fields[2]), int(fields[5]), texts)


def _read_process_with_ps(pid: int) -> ProcessRow | None:
    import subprocess

    command = ["/bin/ps", "-o", "ppid=,pgid=,tpgid=,command=", "-p", str(pid)]
    try:
        output = subprocess.run(command, capture_output=True, timeout=PS_S, check=True)  # a constant
        parent, group, foreground, *arguments = output.stdout.decode("utf-8", "replace").split()
        return ProcessRow(int(parent), int(group), int(foreground), tuple(arguments))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
