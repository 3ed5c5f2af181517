"""What was typed before, over all conversations: read once, appended to, private to the user. No answers."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import History

from laneway.base.paths import state_home

MAX_KEPT = 1000
"""Entries that are read."""
MAX_BYTES = 1024 * 1024
"""Of the file: past it the older half is dropped."""
MAX_ENTRY_CHARS = 20_000
"""A longer text was pasted, and is not kept."""


class TypedHistory(History):
    """One JSON text for each line of a file. A file that cannot be read or written is no reason to stop."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self._path = path or state_home() / "chat-history"

    def load_history_strings(self) -> Iterable[str]:
        """The latest first."""
        lines = self._lines()[-MAX_KEPT:]
        entries: list[str] = []
        for line in reversed(lines):
            with contextlib.suppress(ValueError):  # cut by a crash
                entry = json.loads(line)
                if isinstance(entry, str):
                    entries.append(entry)
        return entries

    def store_string(self, string: str) -> None:
        if len(string) > MAX_ENTRY_CHARS:
            return
        line = json.dumps(string) + "\n"
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(self._path, "a", encoding="utf-8", opener=_private) as file:
                file.write(line)
                size = file.tell()
            if size > MAX_BYTES:
                kept = self._lines()
                new = self._path.with_name(f"{self._path.name}.{os.getpid()}")
                with open(new, "w", encoding="utf-8", opener=_private) as file:
                    file.write("\n".join([*kept[len(kept) // 2 :], ""]))
                new.replace(self._path)

    def _lines(self) -> list[str]:
        try:
            return self._path.read_text("utf-8", "replace").splitlines()
        except OSError:
            return []


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
