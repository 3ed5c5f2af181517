"""The events of one job: an append-only file with one writer, read from a cursor on.

A line is a record `{"type", "content", "timestamp"}`. The first line names the generation of the file, so
that a cursor fits no other one. A cursor names job, generation and offset, and an offset is checked to be
the border of two records. Whoever has the job's lock may write; a record that a killed writer left half
done was never read by anybody, and is cut off by the next writer. Reading costs only what is new.
"""

from __future__ import annotations

import binascii
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import BadCursor
from laneway.base.foreign_files import open_regular
from laneway.store.files import FILE_MODE, trouble, write_all
from laneway.store.stamps import Now, stamp, utc_now

FINAL = "final"
TYPES = ("message", "progress", "tool_call", "tool_result", "error", FINAL)
MAX_CONTENT_BYTES = 4 * 1024
"""Of one event's content in an answer, unless all of it is asked for."""
MAX_ANSWER_BYTES = 64 * 1024
MAX_RECORD_BYTES = 64 * 1024 * 1024
"""More than a worker prints on one line."""
READ_BYTES = 64 * 1024
"""From the file at a time: about what one answer takes. More for a record that is larger."""
TAIL_BYTES = 4 * 1024
"""Of the end of a file, where only its last record is wanted. More for one that is larger."""


class LoggedEvent(msgspec.Struct, frozen=True):
    type: str
    content: Any
    timestamp: str


_decode_event = msgspec.json.Decoder(LoggedEvent).decode
_encode = msgspec.json.encode


class _EventCursor(msgspec.Struct, frozen=True, array_like=True):
    job_id: str
    generation: str
    offset: int


class _EventLogHead(msgspec.Struct, frozen=True):
    generation: str


_decode_cursor = msgspec.json.Decoder(_EventCursor).decode
_decode_head = msgspec.json.Decoder(_EventLogHead).decode


class EventPage(msgspec.Struct, frozen=True):
    """Events from a cursor on."""

    events: tuple[dict[str, Any], ...]
    next_cursor: str
    is_at_end: bool
    """Nothing more has been written so far."""
    has_final: bool
    """Everything up to the last event, `final`, has been read."""


# ── writing ────────────────────────────────────────────────────────────────


class EventWriter:
    """The writer of one job's file. Only for whoever has the job's lock."""

    def __init__(self, path: Path, now: Now = utc_now) -> None:
        self._path = path
        self._now = now
        self._fd = -1
        self.has_final = False
        """Whether the file is complete; nothing is added then."""

    def __enter__(self) -> EventWriter:
        try:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
            if os.fstat(self._fd).st_size == 0:
                write_all(self._fd, _encode(_EventLogHead(os.urandom(4).hex())) + b"\n")
            else:
                self._cut_half_record()
        except OSError as problem:
            self.close()
            raise trouble(self._path, problem) from problem
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def append(self, kind: str, content: Any) -> None:
        """Add an event; it survives the death of this process. After `final` nothing is added."""
        if self.has_final:
            return
        record = _encode(LoggedEvent(kind, content, stamp(self._now()))) + b"\n"
        try:
            write_all(self._fd, record)
            if kind == FINAL:
                self.has_final = True
                os.fsync(self._fd)
        except OSError as problem:
            raise trouble(self._path, problem) from problem

    def _cut_half_record(self) -> None:
        """Continue behind the last whole record of an earlier writer, and see whether that was `final`."""
        size = os.fstat(self._fd).st_size
        end, last = _last_record(self._fd, size)
        if end < size:
            os.ftruncate(self._fd, end)
        os.lseek(self._fd, end, os.SEEK_SET)
        self.has_final = last is not None and last.type == FINAL


def _last_record(fd: int, size: int) -> tuple[int, LoggedEvent | None]:
    """Where the last whole record ends, and the record itself."""
    tail = b""
    at = size
    while at > 0 and tail.count(b"\n") < 2:
        step = min(max(TAIL_BYTES, len(tail)), at)
        at -= step
        tail = os.pread(fd, step, at) + tail
    end = at + tail.rfind(b"\n") + 1
    whole = tail[: end - at].split(b"\n")
    try:
        return end, _decode_event(whole[-2]) if len(whole) > 1 else None
    except msgspec.DecodeError:
        return end, None  # the head


def last_event(path: Path) -> LoggedEvent | None:
    """The last whole event of a file that nobody writes any more."""
    try:
        fd = open_regular(path, follow_links=False)
    except OSError:
        return None
    try:
        return _last_record(fd, os.fstat(fd).st_size)[1]
    finally:
        os.close(fd)


# ── reading ────────────────────────────────────────────────────────────────


def read(
    path: Path,
    job_id: str,
    cursor: str | None = None,
    *,
    kinds: Collection[str] = (),
    is_full: bool = False,
    max_bytes: int = MAX_ANSWER_BYTES,
    max_events: int | None = None,
) -> EventPage:
    """A page of events behind the cursor, from the beginning without one; at least one, however large.

    `BadCursor` if the cursor is of another file.
    """
    try:
        fd = open_regular(path, follow_links=False)
    except FileNotFoundError:
        if cursor is not None and _decoded(cursor, job_id).generation:
            raise BadCursor from None
        return EventPage((), _encoded(job_id, "", 0), is_at_end=True, has_final=False)
    except OSError as problem:
        raise trouble(path, problem, "read") from problem
    try:
        return _read(fd, job_id, cursor, frozenset(kinds), is_full, max_bytes, max_events)
    finally:
        os.close(fd)


def _read(
    fd: int,
    job_id: str,
    cursor: str | None,
    kinds: frozenset[str],
    is_full: bool,
    max_bytes: int,
    max_events: int | None,
) -> EventPage:
    generation, first = _head(fd)
    offset = first
    if cursor is not None:
        position = _decoded(cursor, job_id)
        if position.generation:
            offset = position.offset
            if position.generation != generation or not _is_border(fd, offset, first):
                raise BadCursor
    events: list[dict[str, Any]] = []
    answer_bytes = 0
    last_kind = ""
    reader = _Lines(fd, offset)
    while max_events is None or len(events) < max_events:
        line = reader.next_line()
        if line is None:
            break
        event = _decode_event(line)
        if not kinds or event.type in kinds:
            shown = _shown(event, is_full)
            answer_bytes += len(_encode(shown))
            if events and answer_bytes > max_bytes:
                reader.put_back(line)
                break
            events.append(shown)
        last_kind = event.type
    is_at_end = not reader.has_more()
    has_final = is_at_end and (last_kind or _kind_before(fd, reader.offset, first)) == FINAL
    return EventPage(tuple(events), _encoded(job_id, generation, reader.offset), is_at_end, has_final)


class _Lines:
    """Whole lines of a file from an offset on; what a writer has not finished yet is not there."""

    def __init__(self, fd: int, offset: int) -> None:
        self._fd = fd
        self._buffer = b""
        self._at = 0
        """Where in the buffer the next line begins."""
        self.offset = offset
        """Behind the last line that was taken."""

    def next_line(self) -> bytes | None:
        while (end := self._buffer.find(b"\n", self._at)) < 0:
            rest = self._buffer[self._at :]
            more = os.pread(self._fd, max(READ_BYTES, len(rest)), self.offset + len(rest))
            if not more or len(rest) > MAX_RECORD_BYTES:
                return None
            self._buffer, self._at = rest + more, 0
        line = self._buffer[self._at : end]
        self._at = end + 1
        self.offset += len(line) + 1
        return line

    def put_back(self, line: bytes) -> None:
        """The last line that was taken."""
        self._at -= len(line) + 1
        self.offset -= len(line) + 1

    def has_more(self) -> bool:
        line = self.next_line()
        if line is not None:
            self.put_back(line)
        return line is not None


def _shown(event: LoggedEvent, is_full: bool) -> dict[str, Any]:
    """The event for an answer: a large content is cut, and its size is told."""
    shown: dict[str, Any] = {"type": event.type, "content": event.content, "timestamp": event.timestamp}
    if is_full:
        return shown
    size = len(_encode(event.content))
    if size > MAX_CONTENT_BYTES:
        shown["content"] = cut(event.content, MAX_CONTENT_BYTES)
        shown["contentBytes"] = size
    return shown


def cut(content: Any, max_bytes: int) -> Any:
    """A content of at most about this size: its long texts are shortened, or else it becomes a text."""
    if isinstance(content, str):
        return content.encode()[:max_bytes].decode("utf-8", "ignore")
    if isinstance(content, dict):
        texts = [key for key, value in content.items() if isinstance(value, str)]
        room = max_bytes // max(1, len(texts))
        short = {key: cut(value, room) if key in texts else value for key, value in content.items()}
        if len(_encode(short)) <= 2 * max_bytes:
            return short
    return cut(_encode(content).decode(), max_bytes)


def _head(fd: int) -> tuple[str, int]:
    """The file's generation, and where its first record begins. Of an empty file: nothing, and zero."""
    data = os.pread(fd, 256, 0)
    line, newline, _ = data.partition(b"\n")
    if not newline:
        return "", 0
    return _decode_head(line).generation, len(line) + 1


def _is_border(fd: int, offset: int, first: int) -> bool:
    if offset < first or offset > os.fstat(fd).st_size:
        return False
    return os.pread(fd, 1, offset - 1) == b"\n"


def _kind_before(fd: int, offset: int, first: int) -> str:
    if offset <= first:
        return ""
    event = _last_record(fd, offset)[1]
    return event.type if event is not None else ""


def _encoded(job_id: str, generation: str, offset: int) -> str:
    data = _encode(_EventCursor(job_id, generation, offset))
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(cursor: str, job_id: str) -> _EventCursor:
    try:
        decoded = _decode_cursor(urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)))
    except (UnicodeError, binascii.Error, msgspec.DecodeError, ValueError, RecursionError):
        raise BadCursor from None
    if decoded.job_id != job_id:
        raise BadCursor
    return decoded
