"""The newest thread that `laneway ask` had in a folder, for `--last`.

One small file for each folder and Codex home, replaced atomically: of two writers at once, one wins.
Codex's own list of threads is no help: other programs have threads in the same folder.
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
"""Of one file: two paths and an id."""
MAX_FOLDERS = 500
"""Folders that are remembered; the least recently used one is forgotten first."""


class AskThread(msgspec.Struct, frozen=True, kw_only=True):
    """The file's content: the last thread of `laneway ask` in one folder, under one Codex home."""

    thread_id: str
    cwd: str
    codex_home: str


decode_ask_thread = msgspec.json.Decoder(AskThread).decode


def last_thread(cwd: Path, home: Path) -> str | None:
    """The id of that thread; None if there is no file, or none that can be read."""
    try:
        data = read_whole(_file(cwd, home), MAX_BYTES)
        record = decode_ask_thread(data) if data else None
    except (StoreError, msgspec.DecodeError) as problem:
        log.info("the last thread of this folder cannot be read: %s", problem)
        return None
    is_ours = record is not None and (record.cwd, record.codex_home) == (str(cwd), str(home))
    return record.thread_id if record is not None and is_ours else None


def remember(thread_id: str, cwd: Path, home: Path) -> None:
    """Remember a thread. A failure is only logged: the turn goes on."""
    file = _file(cwd, home)
    record = AskThread(thread_id=thread_id, cwd=str(cwd), codex_home=str(home))
    try:
        make_folder(file.parent)
        write_whole(file, msgspec.json.encode(record))
        _forget(file.parent)
    except (StoreError, OSError) as problem:
        log.warning("--last will not find this thread: %s", problem)


def _file(cwd: Path, home: Path) -> Path:
    name = hashlib.sha256(f"{home}\0{cwd}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return state_home() / "ask" / f"{name}.json"


def _forget(folder: Path) -> None:
    files = list(folder.glob("*.json"))
    if len(files) > MAX_FOLDERS:
        oldest = sorted(files, key=lambda file: file.stat().st_mtime)
        for file in oldest[: len(files) - MAX_FOLDERS]:
            file.unlink(missing_ok=True)
