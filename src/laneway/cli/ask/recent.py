"""The newest thread that `laneway ask` had in a folder, for `--last`.

One small file for each folder and Codex home, replaced in one step: two at once leave one of both.
Codex's own list could not tell: other programs have threads in the same folder.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import msgspec

from laneway.base.errors import StoreError
from laneway.base.paths import state_home
from laneway.store.files import make_folder, read_whole, write_whole

log = logging.getLogger(__name__)

MAX_BYTES = 64 * 1024
"""Of one note: two paths and an id."""
MAX_FOLDERS = 500
"""Folders that are remembered; the one that was not asked in for the longest time goes first."""


class AskedThread(msgspec.Struct, frozen=True, kw_only=True):
    thread_id: str
    cwd: str
    codex_home: str


def last_thread(cwd: Path, home: Path) -> str | None:
    """The id of that thread; none if there is no note, or none that can be read."""
    try:
        data = read_whole(_note(cwd, home), MAX_BYTES)
        asked = msgspec.json.decode(data, type=AskedThread) if data else None
    except (StoreError, msgspec.DecodeError) as problem:
        log.info("the last thread of this folder cannot be read: %s", problem)
        return None
    is_ours = asked is not None and (asked.cwd, asked.codex_home) == (str(cwd), str(home))
    return asked.thread_id if asked is not None and is_ours else None


def remember(thread_id: str, cwd: Path, home: Path) -> None:
    """Note a thread down. Whatever keeps us from it, the turn goes on."""
    note = _note(cwd, home)
    asked = AskedThread(thread_id=thread_id, cwd=str(cwd), codex_home=str(home))
    try:
        make_folder(note.parent)
        write_whole(note, msgspec.json.encode(asked))
        _forget(note.parent)
    except (StoreError, OSError) as problem:
        log.warning("--last will not find this thread: %s", problem)


def _note(cwd: Path, home: Path) -> Path:
    name = hashlib.sha256(f"{home}\0{cwd}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return state_home() / "ask" / f"{name}.json"


def _forget(folder: Path) -> None:
    notes = list(folder.glob("*.json"))
    if len(notes) > MAX_FOLDERS:
        oldest = sorted(notes, key=lambda note: note.stat().st_mtime)
        for note in oldest[: len(notes) - MAX_FOLDERS]:
            note.unlink(missing_ok=True)
