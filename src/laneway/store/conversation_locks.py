"""One lock for each conversation: one process works in it, and a second one is told which."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from laneway.base.errors import ConversationHeld, ConversationUnknown
from laneway.base.paths import state_home
from laneway.base.plain import code_label
from laneway.store.lock_files import holder_note, take_lock_file
from laneway.store.names import is_name

UNKNOWN = "another process"


class ConversationLockFiles:
    """Implements `laneway.core.conversations.ConversationLocks`. `program` is how holders call themselves."""

    def __init__(self, folder: Path | None = None, program: str = "laneway chat") -> None:
        self._folder = folder or state_home() / "conversations"
        self._program = program

    def hold(self, conversation_id: str) -> Callable[[], None]:
        if not is_name(conversation_id):
            raise ConversationUnknown(conversation_id)
        path = self._folder / f"{conversation_id}.lock"
        lock = take_lock_file(path, f"{self._program}, process {os.getpid()}")
        if lock is None:
            raise ConversationHeld(conversation_id, code_label(holder_note(path)) or UNKNOWN)
        return lock.release
