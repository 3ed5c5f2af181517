"""The processes that one test has started, directly or not; those that other tests share do not count."""

from __future__ import annotations

import os
from pathlib import Path

from laneway.wire.guardian import descendants


class OwnProcesses:
    """All that came after this was made: agents that tests of a worker share were there before, or stay."""

    def __init__(self) -> None:
        self._others = set(descendants(os.getpid()))

    def all(self) -> set[int]:
        return set(descendants(os.getpid())) - self._others

    def named(self, words: str) -> list[int]:
        """Those with these words in their command line, without guardians."""
        found = []
        for pid in self.all():
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # it has ended
            if words in line and "guardian" not in line:
                found.append(pid)
        return found
