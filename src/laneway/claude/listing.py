"""Lists the sessions of a Claude Code home, whichever program started them, newest first.

Reads the beginning and the end of each transcript only. Everything blocks: from asyncio call through
`asyncio.to_thread`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import BadCursor
from laneway.claude.history import prompt_of
from laneway.claude.transcript import TranscriptFiles, entry_of, is_session_id
from laneway.core.ports import ThreadInfo, ThreadList

PART_BYTES = 128 * 1024
"""Read of each end of a transcript. The first message may come behind some records of Claude Code's own."""
MAX_TITLE_CHARS = 200
_TITLES = ("customTitle", "aiTitle")


class _Found(msgspec.Struct, frozen=True):
    path: Path
    mtime_ns: int

    @property
    def cursor(self) -> str:
        return f"{self.mtime_ns}-{self.path.stem}"


def list_sessions(
    transcripts: TranscriptFiles, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
) -> ThreadList:
    """Raises `BadCursor`."""
    found = sorted(_transcripts(transcripts), key=lambda each: (each.mtime_ns, each.path.stem), reverse=True)
    if cursor is not None:
        before = _position(cursor)
        found = [each for each in found if (each.mtime_ns, each.path.stem) < before]
    wanted = None if cwd is None else os.path.realpath(cwd)
    threads: list[ThreadInfo] = []
    last = None
    for each in found:
        info = info_of(each.path)
        if info is None or (wanted is not None and os.path.realpath(info.cwd) != wanted):
            continue
        if len(threads) == limit:
            return ThreadList(tuple(threads), last)
        threads.append(info)
        last = each.cursor
    return ThreadList(tuple(threads), None)


def _position(cursor: str) -> tuple[int, str]:
    mtime, _, session_id = cursor.partition("-")
    if not mtime.isdecimal() or not is_session_id(session_id):
        raise BadCursor
    return int(mtime), session_id


def _transcripts(transcripts: TranscriptFiles) -> Iterator[_Found]:
    for path in transcripts.projects.glob("*/*.jsonl"):
        if is_session_id(path.stem):
            try:
                yield _Found(path, path.stat().st_mtime_ns)
            except OSError:
                continue  # it was removed meanwhile


def info_of(path: Path) -> ThreadInfo | None:
    """The facts about a session; none if nothing was said in it, or it is a subagent's."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(PART_BYTES)
            file.seek(max(0, size - PART_BYTES))
            tail = file.read(PART_BYTES) if size > PART_BYTES else b""
            mtime = os.fstat(file.fileno()).st_mtime
    except OSError:
        return None
    first: dict[str, Any] | None = None
    title = ""
    for entry in (*_entries(head), *_entries(tail)):
        if entry.get("isSidechain") is True:
            return None
        if first is None and entry.get("type") == "user" and isinstance(entry.get("cwd"), str):
            first = entry
        title = next((str(entry[key]) for key in _TITLES if entry.get(key)), title)
    if first is None:
        return None
    shown = " ".join((title or prompt_of(first)).split())[:MAX_TITLE_CHARS]
    return ThreadInfo(
        thread_id=path.stem, cwd=str(first["cwd"]), title=shown, updated_at=int(mtime), native={}
    )


def _entries(part: bytes) -> Iterator[dict[str, Any]]:
    for line in part.splitlines():
        entry = entry_of(line)
        if entry is not None:  # the part begins or ends in the middle of a line
            yield entry
