"""Tokens of a worker while it runs, read from Codex's own record of the thread (the rollout).

`codex exec --json` tells them only when the turn is over, and never for one that was ended; the record has
a line after each model call. Counts are of the whole thread, so that a thread that goes on is counted from
where it stood. A look costs a `stat` and reads only what is new. Blocking.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.foreign_files import open_regular
from laneway.codex.exec.command import is_thread_id
from laneway.codex.thread_files import ARCHIVED, SESSIONS

BLOCK_BYTES = 1024 * 1024
MAX_LINE_BYTES = 16 * 1024 * 1024
"""A line of the record that is longer is what some tool returned, and skipped."""
_MARK = b'"type":"token_count"'
_decoder = msgspec.json.Decoder()


class TokenCount(msgspec.Struct, frozen=True):
    """Tokens as Codex counts them. The cached ones are a part of the input."""

    input: int = 0
    cached_input: int = 0
    output: int = 0
    reasoning: int = 0
    """A part of the output."""
    total: int = 0

    @classmethod
    def of(cls, usage: Any) -> TokenCount | None:
        """From a table of Codex's; none if it is no such table."""
        if not isinstance(usage, Mapping) or not isinstance(usage.get("input_tokens"), int):
            return None
        names = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")
        read, cached, written, thought = [
            value if isinstance(value := usage.get(name), int) else 0 for name in names
        ]
        total = usage.get("total_tokens")
        return cls(read, cached, written, thought, total if isinstance(total, int) else read + written)

    def since(self, base: TokenCount) -> TokenCount:
        """What came on top of `base`."""
        mine, before = msgspec.structs.astuple(self), msgspec.structs.astuple(base)
        return TokenCount(*(max(0, now - then) for now, then in zip(mine, before, strict=True)))


def find_record(codex_home: str, thread_id: str) -> Path | None:
    """The record of a thread, wherever it lies; none as long as Codex has not written it."""
    if not is_thread_id(thread_id):
        return None
    home = Path(codex_home)
    for pattern in (*_days(thread_id), ARCHIVED):
        found = next(home.glob(f"{pattern}/rollout-*{thread_id.lower()}.jsonl"), None)
        if found is not None:
            return found
    return None


def _days(thread_id: str) -> list[str]:
    """The folders in which it may lie: of the day that its id tells, whatever the time zone was."""
    anywhere = [f"{SESSIONS}/*/*/*"]
    if thread_id[14] != "7":  # no UUID with a time in it
        return anywhere
    try:
        began = datetime.fromtimestamp(int(thread_id.replace("-", "")[:12], 16) / 1000)
        days = [began + timedelta(days=shift) for shift in (0, -1, 1)]
    except (ValueError, OverflowError, OSError):
        return anywhere
    return [f"{SESSIONS}/{day:%Y/%m/%d}" for day in days]


class TokenTail:
    """Follows the record of one worker's thread. Not for use by several threads at once."""

    def __init__(self, codex_home: str, thread_id: str | None = None) -> None:
        """`thread_id` of a thread that goes on: make it before Codex is started, for that is the base."""
        self.base = TokenCount()
        self.last = TokenCount()
        """Of the whole thread."""
        self._home = codex_home
        self._thread_id = thread_id
        self._path: Path | None = None
        self._at = 0
        self._part = b""
        if thread_id is not None:
            self.look()
            self.base = self.last

    @property
    def used(self) -> TokenCount:
        """By this worker."""
        return self.last.since(self.base)

    def look(self, thread_id: str | None = None) -> TokenCount:
        """Read what is new, and return what this worker has used. Its first event tells the thread's id."""
        self._thread_id = self._thread_id or thread_id
        if self._path is None and self._thread_id:
            self._path = find_record(self._home, self._thread_id)
        if self._path is not None:
            try:
                self._read(self._path)
            except OSError:
                self._path = None  # archived meanwhile, or put back: looked for again
        return self.used

    def _read(self, path: Path) -> None:
        size = os.stat(path).st_size
        if size < self._at:  # written anew
            self._at, self._part = 0, b""
        if size == self._at:
            return
        fd = open_regular(path)
        try:
            while block := os.pread(fd, BLOCK_BYTES, self._at):
                self._at += len(block)
                self._take(block)
        finally:
            os.close(fd)

    def _take(self, block: bytes) -> None:
        *lines, self._part = (self._part + block).split(b"\n")
        for line in lines:
            if _MARK in line:
                self.last = _counted(line) or self.last
        if len(self._part) > MAX_LINE_BYTES:
            self._part = self._part[:1]  # its rest is no JSON, and is skipped for that


def _counted(line: bytes) -> TokenCount | None:
    try:
        entry = _decoder.decode(line)
    except (ValueError, RecursionError):
        return None
    match entry:
        # What a tool returned may look the same, further inside.
        case {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": usage}}}:
            return TokenCount.of(usage)
        case _:
            return None
