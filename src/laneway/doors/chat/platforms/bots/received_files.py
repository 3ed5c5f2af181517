"""`ReceivedFiles`: what people attach, in a private folder in which a lane can read it, for some days."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

KEEP_S = 7 * 86_400.0
_UNUSUAL = re.compile(r"[^\w.-]", re.ASCII)


class ReceivedFiles:
    """All calls block; they raise `OSError`."""

    def __init__(self, folder: Path, wall: Callable[[], float] = time.time) -> None:
        self._folder, self._wall = folder, wall

    def keep(self, prefix: str, name: str, content: bytes) -> Path:
        """Under a name that cannot leave the folder; the same prefix and name once more replaces it."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        harmless = _UNUSUAL.sub("_", name).lstrip(".")[-80:] or "file"
        path = self._folder / f"{_UNUSUAL.sub('_', prefix)}-{harmless}"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(file, "wb") as opened:
            opened.write(content)
        return path

    def delete_old(self) -> None:
        """What was received more than a week ago."""
        before = self._wall() - KEEP_S
        try:
            entries = list(os.scandir(self._folder))
        except FileNotFoundError:
            return
        for entry in entries:
            if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < before:
                os.unlink(entry.path)
