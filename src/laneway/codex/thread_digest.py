"""What a Codex thread is about, from the file that Codex keeps of it: first prompt, turns, tokens.

For lists that people read. A thread is found by the time in its id (a UUID of version 7), so that no
folder is searched but those of its day. What cannot be read is not known; nothing is raised. Blocking.
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
"""Of one file, from its beginning. The first prompt is always there; of a longer thread turns and tokens
are not counted, because a list is to appear at once."""
MARK_BYTES = 1024
"""Of a line, in which its kind is named."""
NEAR = (timedelta(0), timedelta(days=-1), timedelta(days=1))
"""From the day in an id to that of its folder, which is the local day of whoever started the thread."""
_MARKS = (b'"user_message"', b'"UserMessage"', b'"task_started"', b'"token_count"')


class ThreadDigest(msgspec.Struct, frozen=True, kw_only=True):
    first_prompt: str | None = None
    turns: int | None = None
    tokens: int | None = None
    modified: float = 0.0
    """In seconds since 1970."""


class ThreadDigests:
    """Of one Codex home; remembers the folders that it has looked into."""

    def __init__(self, codex_home: Path) -> None:
        self._home = codex_home
        self._folders: dict[Path, list[str]] = {}

    def read(self, thread_id: str) -> ThreadDigest | None:
        """None if Codex has no file of it."""
        for folder in (*self._days(thread_id), self._home / ARCHIVED):
            for name in self._names(folder):
                if name.endswith(f"-{thread_id}.jsonl"):
                    return digest(folder / name)
        return None

    def _days(self, thread_id: str) -> list[Path]:
        try:
            began = datetime.fromtimestamp(int(thread_id.replace("-", "")[:12], 16) / 1000)
            days = [began + away for away in NEAR]
        except (ValueError, OverflowError, OSError):
            return []  # not an id of Codex's
        return [self._home / SESSIONS / f"{day:%Y}" / f"{day:%m}" / f"{day:%d}" for day in days]

    def _names(self, folder: Path) -> list[str]:
        if folder not in self._folders:
            try:
                self._folders[folder] = os.listdir(folder)
            except OSError:
                self._folders[folder] = []
        return self._folders[folder]


def digest(path: Path) -> ThreadDigest | None:
    """What the file says; none if it cannot be read."""
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
    found = _Reading()
    for line in data.splitlines():
        if any(mark in line[:MARK_BYTES] for mark in _MARKS):
            found.take(line)
    is_whole = status.st_size <= MAX_READ_BYTES
    return ThreadDigest(
        first_prompt=found.first_prompt,
        turns=found.turns if is_whole else None,
        tokens=found.tokens if is_whole else None,
        modified=status.st_mtime,
    )


class _Reading:
    def __init__(self) -> None:
        self.first_prompt: str | None = None
        self.turns = 0
        self.tokens: int | None = None

    def take(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            return  # cut off, or not Codex's
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
