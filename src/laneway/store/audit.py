"""The audit log of one team: who asked what of whom, one JSON object a line, only ever added to.

Many processes and threads write at once. Each line is one write to the end of the file,
behind a gate, so none is torn and none is lost when an old file is put away. What a crash
tore is healed by the next writer and passed over by every reader. Every text goes through
the redactor and is cut short.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from laneway.base.foreign_files import NotRegular, open_regular
from laneway.base.redact import redact
from laneway.store.files import FILE_MODE, make_folder, trouble
from laneway.store.gates import gate, readers_gate
from laneway.store.retention import Retention
from laneway.store.stamps import Now, parse, stamp, utc_now

SUMMARY_CHARS = 200
"""Of any text in a line; the seeds' figure for summaries."""
SEEN_CHARS = 16_384
"""Of a long text that the redactor is shown: it costs time, and only the beginning is kept."""
MARGIN_CHARS = 2_048
"""Left out at the end of what it was shown: a secret cut in half there would not be known as one."""
MAX_READ_LINE_BYTES = 256 * 1024
"""Ours stay below 16 KiB; other programs' lines may be longer. Past this a line counts as damaged."""
MAX_READ_LINES = 10_000
"""Lines that one `read` keeps in memory: the newest."""
MAX_READ_FILE_BYTES = 256 * 1024 * 1024
"""Of one file that `read` goes through: its end. Ours are smaller; others may write without measure."""

MAX_OLD_FILES = 100
"""Whatever the settings say: a reader opens them all at once."""


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What happened. `agent_id` and `identity` stand in every line, the others where they say something."""

    event_type: str
    agent_id: str | None
    identity: str | None
    recipient: str = ""
    message_summary: str = ""
    prompt_summary: str = ""
    thread_id: str = ""
    turn_id: str = ""
    request_id: str = ""
    outcome: str = ""


class AuditPage(msgspec.Struct, frozen=True):
    lines: tuple[dict[str, Any], ...]
    """Oldest first, as they stand in the files: ours, and those of other programs."""
    damaged: int = 0
    """Lines that are no JSON objects, and what is called as an audit file and is no file."""


class AuditLog:
    def __init__(
        self,
        path: Path,
        gate_path: Path,
        *,
        retention: Retention = Retention(),  # noqa: B008  frozen
        now: Now = utc_now,
    ) -> None:
        self._path = path
        self._gate_path = gate_path
        self._retention = retention
        self._now = now

    def append(self, *events: AuditEvent) -> None:
        """Add lines. They are there when this returns, also if we are killed then; or `StoreError`."""
        lines = b"".join(map(self._line, events))
        make_folder(self._path.parent)
        with gate(self._gate_path):
            try:
                if _size(self._path) + len(lines) > self._retention.audit_max_bytes:
                    self._put_away()
                _add(self._path, lines)
            except OSError as problem:
                raise trouble(self._path, problem) from problem

    def _line(self, event: AuditEvent) -> bytes:
        fields = msgspec.structs.asdict(event)
        texts = {name: _shown(value) for name, value in fields.items() if value or value is None}
        return msgspec.json.encode({"timestamp": stamp(self._now()), **texts}) + b"\n"

    def read(
        self, *, limit: int = MAX_READ_LINES, identity: str | None = None, agent_id: str | None = None
    ) -> AuditPage:
        """The newest lines, of all or of one identity or agent."""
        kept: deque[dict[str, Any]] = deque(maxlen=min(limit, MAX_READ_LINES))
        with ExitStack() as stack:
            files, damaged = self._open_all(stack)
            for file in files:
                for line in _lines(file):
                    found = _decode(line)
                    if found is None:
                        damaged += 1
                    elif (identity is None or found.get("identity") == identity) and (
                        agent_id is None or found.get("agent_id") == agent_id
                    ):
                        kept.append(found)
        return AuditPage(tuple(kept), damaged)

    def tidy(self) -> int:
        """Apply the age limits; how many old files were removed."""
        age = self._retention.audit_age
        if age is None or not self._path.parent.is_dir():
            return 0
        with gate(self._gate_path):
            try:
                if self._began_before(age):
                    self._put_away()
                return sum(self._remove_if_older(path, age) for _, path in self._old_files())
            except OSError as problem:
                raise trouble(self._path, problem) from problem

    # ── old files; all behind the gate ─────────────────────────────────────

    def _old_files(self) -> list[tuple[int, Path]]:
        """Oldest first, each with its number."""
        found = self._path.parent.glob(f"{self._path.name}.*")
        numbered = [(path.name.removeprefix(f"{self._path.name}."), path) for path in found if _is_file(path)]
        return sorted(((int(n), path) for n, path in numbered if n.isdecimal() and n.isascii()), reverse=True)

    def _put_away(self) -> None:
        if not _size(self._path):
            return
        # From the oldest on: a crash between two renames leaves a gap and loses nothing.
        for number, path in (*self._old_files(), (0, self._path)):
            if number >= min(self._retention.audit_files, MAX_OLD_FILES):
                os.unlink(path)
            else:
                os.replace(path, self._path.with_name(f"{self._path.name}.{number + 1}"))

    def _began_before(self, age: timedelta) -> bool:
        try:
            with os.fdopen(open_regular(self._path, follow_links=False), "rb") as file:
                first = _decode(file.readline(MAX_READ_LINE_BYTES))
        except FileNotFoundError:
            return False
        when = parse((first or {}).get("timestamp"))
        return when is not None and self._now() - when > age

    def _remove_if_older(self, path: Path, age: timedelta) -> bool:
        is_older = self._now().timestamp() - path.stat().st_mtime > age.total_seconds()
        if is_older:
            os.unlink(path)
        return is_older

    def _open_all(self, stack: ExitStack) -> tuple[list[BinaryIO], int]:
        """All files as they are now, oldest first; later renames do not matter to open files.

        And how many others have such a name.
        """
        opened: list[BinaryIO] = []
        others = 0
        with readers_gate(self._gate_path):
            for path in (*(path for _, path in self._old_files()[-MAX_OLD_FILES:]), self._path):
                try:
                    opened.append(stack.enter_context(_last_part(path)))
                except FileNotFoundError:
                    pass
                except NotRegular:
                    others += 1
                except OSError as problem:
                    raise trouble(path, problem, "read") from problem
        return opened, others


def _last_part(path: Path) -> BinaryIO:
    file = os.fdopen(open_regular(path, follow_links=False), "rb")
    surplus = os.fstat(file.fileno()).st_size - MAX_READ_FILE_BYTES
    if surplus > 0:
        file.seek(surplus)
        file.readline(MAX_READ_LINE_BYTES)  # the end of a line whose beginning is left out
    return file


def _add(path: Path, line: bytes) -> None:
    """One write to the end, or none."""
    fd = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, follow_links=False)
    try:
        status = os.fstat(fd)
        if status.st_mode & 0o077:
            os.fchmod(fd, FILE_MODE)  # another program made it
        end = status.st_size
        if end and os.pread(fd, 1, end - 1) != b"\n":
            line = b"\n" + line  # a crash tore the last line: ours begins on its own
        written = os.write(fd, line)
        if written < len(line):
            if os.fstat(fd).st_size == end + written:  # a program that does not know the gate may have added
                os.ftruncate(fd, end)
            raise OSError(errno.ENOSPC, "")
    finally:
        os.close(fd)


def _size(path: Path) -> int:
    """Of a file; all else has none, and is never put away."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False  # gone meanwhile


def _shown(text: str | None) -> str | None:
    """Redacted, then cut: the other way round half a secret would pass."""
    if text is None:
        return None
    seen = redact(text[:SEEN_CHARS].encode("utf-8", "replace").decode())
    if len(text) > SEEN_CHARS:
        seen = seen[:-MARGIN_CHARS]
    return seen[:SUMMARY_CHARS]


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines up to the bound; a longer one comes as its beginning, which is no JSON."""
    while line := file.readline(MAX_READ_LINE_BYTES):
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(MAX_READ_LINE_BYTES)
        if line != b"\n":
            yield line


def _decode(line: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
