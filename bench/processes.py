"""What the processes of a tree use: memory, CPU time, and which of them are Codex. Linux only."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

GONE = (FileNotFoundError, ProcessLookupError)
"""A process ended while we read its files."""


def tree(pid: int, codex: str) -> dict[int, bool]:
    """A process and its descendants, and whether each is Codex; children of Codex count as Codex."""
    codex = os.path.realpath(codex)
    children: dict[int, list[int]] = {}
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(*GONE):
            children.setdefault(int(_stat(int(each.name))[1]), []).append(int(each.name))
    is_codex = {pid: os.path.realpath(f"/proc/{pid}/exe") == codex}
    pending = [pid]
    while pending:
        parent = pending.pop()
        for child in children.get(parent, ()):
            with contextlib.suppress(*GONE):
                is_codex[child] = is_codex[parent] or os.path.realpath(f"/proc/{child}/exe") == codex
                pending.append(child)
    return is_codex


def cpu_s(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e3


def pss_kb(pid: int) -> float:
    """Its own pages, and its share of those that it has in common with others."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1.024
    raise RuntimeError(f"the kernel does not say what process {pid} shares")


def started_with(word: str) -> list[int]:
    """Processes that have this among their words."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(*GONE):
            if word.encode() in (each / "cmdline").read_bytes().split(b"\0"):
                found.append(int(each.name))
    return found


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may contain anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
