"""One lock for each conversation: one process works in it, and a second one is told which.

The `flock` decides, so that it is free as soon as its process has ended, however that happens. The file
names the holder for people, and is removed with the lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from laneway.base.errors import ConversationHeld, ConversationUnknown
from laneway.base.paths import state_home
from laneway.base.plain import code_label
from laneway.store.files import make_folder, trouble, write_all
from laneway.store.gates import take_lock
from laneway.store.names import is_name

MAX_NOTE_BYTES = 200
"""More than a holder writes about itself."""
UNKNOWN = "another process"


class ConversationLockFiles:
    """Implements `laneway.core.conversations.ConversationLocks`. `program` is how holders call themselves."""

    def __init__(self, folder: Path | None = None, program: str = "laneway chat") -> None:
        self._folder = folder or state_home() / "conversations"
        self._program = program

    def hold(self, conversation_id: str) -> Callable[[], None]:
        if not is_name(conversation_id):
            raise ConversationUnknown(conversation_id)
        make_folder(self._folder)
        path = self._folder / f"{conversation_id}.lock"
        fd = take_lock(path)
        if fd is None:
            raise ConversationHeld(conversation_id, _holder(path))
        try:
            os.ftruncate(fd, 0)
            write_all(fd, f"{self._program}, process {os.getpid()}".encode()[:MAX_NOTE_BYTES])
        except OSError as problem:
            os.close(fd)
            raise trouble(path, problem) from problem
        return _HeldConversation(fd, path).release


class _HeldConversation:
    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path

    def release(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                self._path.unlink(missing_ok=True)  # before it is free: whoever waits locks a new file
            finally:
                os.close(fd)


def _holder(path: Path) -> str:
    try:
        with path.open("rb") as file:
            note = file.read(MAX_NOTE_BYTES).decode("utf-8", "replace")
    except OSError:
        return UNKNOWN  # just taken, or just removed
    return code_label(note) or UNKNOWN
