"""Facts about other processes: their ancestors, and whether they run in a sandbox.

Unknown facts are reported as unknown, never guessed. Linux is read through /proc, without a process's
own memory: a hostile one could make us wait for that. Other systems are asked with `ps`, which takes
some milliseconds: not on an event loop there (`IS_QUICK`).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import NamedTuple

from laneway.wire import guardian

IS_QUICK = sys.platform == "linux"
"""Whether `lineage` and `is_confined` may be called on an event loop."""
MAX_LINEAGE = 256
"""Ancestors of one process: more than any terminal has, and a limit for what we read."""
PS_S = 5.0
"""For `ps`, on a machine that is very busy."""
GUARDIANS = guardian.NAMES
"""The names that we give to our own guardians, on every system."""
AGENTS = ("codex", "codex-linux-sandbox")
"""Programs whose commands a model chooses, by the name of their executable."""
_NAME_CHARS = 15
"""Linux cuts process names at this length."""
_GUARDIAN_LINE = re.compile(rf" -I -S .*laneway/wire/guardian\.py \d+ \d+ .*({'|'.join(GUARDIANS)}) -- ")
"""In the command line of a guardian, where a process cannot choose its name."""


class ProcessInfo(NamedTuple):
    pid: int
    parent: int
    """Zero if there is none that we can see: the first process of a container, or of the system."""
    started: int
    """In ticks of the system; never later than that of a child. Zero if unknown."""
    name: str

    @property
    def is_agent(self) -> bool:
        """Whether a model chooses what is started below it: a Codex, or the guardian of one."""
        return self.name in GUARDIANS.values() or self.name in {agent[:_NAME_CHARS] for agent in AGENTS}

    @property
    def is_worker(self) -> bool:
        """Whether it is the guardian of a background job's worker."""
        return self.name == GUARDIANS[guardian.WORKER]


class Lineage(NamedTuple):
    """A process and its ancestors, the nearest first."""

    processes: tuple[ProcessInfo, ...]
    is_whole: bool
    """Whether it goes up to the first process; else one in between has ended, or is hidden from us."""


def lineage(pid: int) -> Lineage:
    """The lineage of a process, which may end, and whose pid may be reused, while we read."""
    return _by_proc(pid) if IS_QUICK else _by_ps(pid)


def is_confined(pid: int) -> bool | None:
    """Whether a process is in a sandbox that we are not in. None if unknown."""
    if sys.platform == "linux":
        theirs, ours = _no_new_privileges(pid), _no_new_privileges(os.getpid())
        return None if theirs is None or ours is None else theirs and not ours
    if sys.platform == "darwin":
        return _in_seatbelt(pid) and not _in_seatbelt(os.getpid())
    return None


# ── Linux ──────────────────────────────────────────────────────────────────


def _by_proc(pid: int) -> Lineage:
    processes: list[ProcessInfo] = []
    while pid and len(processes) < MAX_LINEAGE:
        process = _process(pid)
        # A parent that is younger than its child is another process with the pid of one that ended.
        if process is None or (processes and process.started > processes[-1].started):
            return Lineage(tuple(processes), is_whole=False)
        processes.append(process)
        pid = process.parent
    return Lineage(tuple(processes), is_whole=pid == 0)


def _process(pid: int) -> ProcessInfo | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The name in parentheses may contain anything, so split after the last parenthesis.
            head, _, tail = stat.read().rpartition(b")")
    except OSError:
        return None
    fields = tail.split()
    if fields[0] in (b"Z", b"X"):
        return None  # it has ended, and its children have another parent
    name = head.partition(b"(")[2].decode(errors="replace")
    return ProcessInfo(pid, int(fields[1]), int(fields[19]), name)


def _no_new_privileges(pid: int) -> bool | None:
    """Every sandbox of Codex sets this flag, and no process below can ever clear it."""
    try:
        with open(f"/proc/{pid}/status", "rb") as status:
            for line in status:
                if line.startswith(b"NoNewPrivs:"):
                    return line.split()[1] == b"1"
    except OSError:
        pass
    return None


# ── macOS, and others without /proc ────────────────────────────────────────


def _by_ps(pid: int) -> Lineage:
    try:
        table = {row[0]: row for row in _ps("-axo", "pid=,ppid=,comm=")}
        pids: list[int] = []
        while pid and pid in table and len(pids) < MAX_LINEAGE:
            pids.append(pid)
            pid = table[pid][1]
        # The whole command line of these only: here a guardian is recognised by it.
        lines = _ps("-wwo", "pid=,ppid=,command=", "-p", ",".join(map(str, pids))) if pids else []
    except (OSError, subprocess.SubprocessError):
        return Lineage((), is_whole=False)
    found = {row[0]: _GUARDIAN_LINE.search(row[2]) for row in lines}
    guardians = {pid: GUARDIANS[match[1]] for pid, match in found.items() if match}
    processes = [
        ProcessInfo(each, table[each][1], 0, guardians.get(each) or os.path.basename(table[each][2]))
        for each in pids
    ]
    return Lineage(tuple(processes), is_whole=pid == 0)


def _ps(*words: str) -> list[tuple[int, int, str]]:
    completed = subprocess.run(
        ["/bin/ps", *words], capture_output=True, timeout=PS_S, check=False, stdin=subprocess.DEVNULL
    )
    rows = (line.decode(errors="replace").split(None, 2) for line in completed.stdout.splitlines())
    return [(int(row[0]), int(row[1]), row[2]) for row in rows if len(row) == 3]


def _in_seatbelt(pid: int) -> bool:
    """Whether macOS has put it into a sandbox, which no process below can leave."""
    import ctypes

    check = getattr(ctypes.CDLL(None), "sandbox_check", None)
    if check is None:
        return False
    check.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int]
    return bool(check(pid, None, 0) == 1)
