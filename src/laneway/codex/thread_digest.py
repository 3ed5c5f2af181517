"""Reads the first prompt, number of turns and tokens of a Codex thread from its rollout file, for lists.

The file is found by the time in the thread's id (a UUID of version 7), so that only the folders of that
day are searched. What cannot be read is unknown; nothing is raised. Blocking.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.foreign_files import open_regular
from laneway.codex.thread_files import ARCHIVED, SESSIONS

MAX_READ_BYTES = 8 * 1024 * 1024
"""Of one file, from its beginning, which contains the first prompt. In longer threads turns and tokens are
not counted, because a list should appear at once."""
MARK_BYTES = 1024
"""Of a line, which contain its type."""
DAY_OFFSETS = (timedelta(0), timedelta(days=-1), timedelta(days=1))
"""From the day in an id to that of its folder, which is the local day of the program that started it."""
_MARKS = (b'"user_message"', b'"UserMessage"', b'"task_started"', b'"token_count"')


class ThreadDigest(msgspec.Struct, frozen=True, kw_only=True):
    first_prompt: str | None = None
    turns: int | None = None
    tokens: int | None = None
    modified: float = 0.0
    """In seconds since 1970."""


class ThreadDigests:
    """Digests of the threads of one Codex home; caches the listings of its folders."""

    def __init__(self, codex_home: Path) -> None:
        self._home = codex_home
        self._folders: dict[Path, list[str]] = {}

    def read(self, thread_id: str) -> ThreadDigest | None:
        """The digest of a thread; none if it has no file."""
        for folder in (*self._days(thread_id), self._home / ARCHIVED):
            for name in self._names(folder):
                if name.endswith(f"-{thread_id}.jsonl"):
                    return digest(folder / name)
        return None

    def _days(self, thread_id: str) -> list[Path]:
        try:
            began = datetime.fromtimestamp(int(thread_id.replace("-", "")[:12], 16) / 1000)
            days = [began + offset for offset in DAY_OFFSETS]
        except (ValueError, OverflowError, OSError):
            return []  # not an id made by Codex
        return [self._home / SESSIONS / f"{day:%Y}" / f"{day:%m}" / f"{day:%d}" for day in days]

    def _names(self, folder: Path) -> list[str]:
        if folder not in self._folders:
            try:
                self._folders[folder] = os.listdir(folder)
            except OSError:
                self._folders[folder] = []
        return self._folders[folder]


def digest(path: Path) -> ThreadDigest | None:
    """The digest of a file; none if it cannot be read."""
    try:
        fd = open_regular(path)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        with os.fdopen(fd, "rb", closefd=False) as file:
            data = file.read(MAX_READ_BYTES)
    except OSError:
        return None
    finally:
        os.close(fd)
    reader = _DigestReader()
    for line in data.splitlines():
        if any(mark in line[:MARK_BYTES] for mark in _MARKS):
            reader.read_line(line)
    is_whole = status.st_size <= MAX_READ_BYTES
    return ThreadDigest(
        first_prompt=reader.first_prompt,
        turns=reader.turns if is_whole else None,
        tokens=reader.tokens if is_whole else None,
        modified=status.st_mtime,
    )


class _DigestReader:
    def __init__(self) -> None:
        self.first_prompt: str | None = None
        self.turns = 0
        self.tokens: int | None = None

    def read_line(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            return  # truncated, or not written by Codex
        match entry:
            case {"type": "event_msg", "payload": {"type": "task_started"}}:
                self.turns += 1
            case {
                "type": "event_msg",
                "payload": {
                    "type": "token_count",
                    "info": {"total_token_usage": {"total_tokens": int(tokens)}},
                },
            }:
                self.tokens = tokens
            case {"type": "event_msg", "payload": payload} if self.first_prompt is None:
                self.first_prompt = _prompt(payload)


def _prompt(payload: Any) -> str | None:
    match payload:
        case {"type": "user_message", "message": str(text)}:
            return text
        case {"type": "item_completed", "item": {"type": "UserMessage", "content": list(parts)}}:
            texts = [part["text"] for part in parts if isinstance(part, dict) and _is_text(part.get("text"))]
            return "\n".join(texts)
        case _:
            return None


def _is_text(value: object) -> bool:
    return isinstance(value, str)
