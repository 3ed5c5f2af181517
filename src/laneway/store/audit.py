"""The append-only audit log of one team: one JSON object per line for each request and its outcome.

Many processes and threads write at once. Each line is one write to the end of the file under a lock,
so that none is torn, and none is lost when the file is rotated. A line that a crash cut off is ended
by the next writer and skipped by every reader. Every text is redacted and shortened.
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
from laneway.core.named.records import AuditLine
from laneway.store.files import FILE_MODE, make_folder, trouble
from laneway.store.gates import gate, readers_gate
from laneway.store.retention import Retention
from laneway.store.stamps import Now, parse, stamp, utc_now

SUMMARY_CHARS = 200
"""Of any text in a line, as the original specification has it for summaries."""
REDACTED_CHARS = 16_384
"""Of a long text that is redacted: redacting costs time, and only the beginning is kept."""
MARGIN_CHARS = 2_048
"""Dropped at the end of the redacted part: the redactor would not recognise a secret that is cut in half."""
MAX_READ_LINE_BYTES = 256 * 1024
"""Our lines stay below 16 KiB; those of other programs may be longer. A longer line counts as damaged."""
MAX_READ_LINES = 10_000
"""Lines that one `read` keeps in memory: the newest."""
MAX_READ_FILE_BYTES = 256 * 1024 * 1024
"""`read` looks at the end of a file only. Our files are smaller; other programs may write without limit."""

MAX_OLD_FILES = 100
"""Upper limit of the setting, because a reader opens them all at once."""


class AuditPage(msgspec.Struct, frozen=True):
    lines: tuple[dict[str, Any], ...]
    """Oldest first, as they are in the files: ours, and those of other programs."""
    damaged: int = 0
    """Lines that are not JSON objects, and audit files that are not regular files."""


class AuditLog:
    """Writes, reads and rotates the audit files of one team."""

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

    def append(self, *lines: AuditLine) -> None:
        """Add lines. When this returns they survive a kill of this process; else `StoreError`."""
        written = b"".join(map(self._encode, lines))
        make_folder(self._path.parent)
        with gate(self._gate_path):
            try:
                if _size(self._path) + len(written) > self._retention.audit_max_bytes:
                    self._put_away()
                _add(self._path, written)
            except OSError as problem:
                raise trouble(self._path, problem) from problem

    def _encode(self, line: AuditLine) -> bytes:
        """`agent_id` and `identity` are always written, other fields if they are not empty."""
        fields = msgspec.structs.asdict(line)
        texts = {name: _redacted(value) for name, value in fields.items() if value or value is None}
        return msgspec.json.encode({"timestamp": stamp(self._now()), **texts}) + b"\n"

    def read(
        self, *, limit: int = MAX_READ_LINES, identity: str | None = None, agent_id: str | None = None
    ) -> AuditPage:
        """The newest lines, of all or of one identity or agent."""
        newest: deque[dict[str, Any]] = deque(maxlen=min(limit, MAX_READ_LINES))
        with ExitStack() as stack:
            files, damaged = self._open_all(stack)
            for file in files:
                for line in _lines(file):
                    line_json = _decode(line)
                    if line_json is None:
                        damaged += 1
                    elif (identity is None or line_json.get("identity") == identity) and (
                        agent_id is None or line_json.get("agent_id") == agent_id
                    ):
                        newest.append(line_json)
        return AuditPage(tuple(newest), damaged)

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

    # ── rotation; all under the lock ───────────────────────────────────────

    def _old_files(self) -> list[tuple[int, Path]]:
        """Oldest first, each with its number."""
        paths = self._path.parent.glob(f"{self._path.name}.*")
        numbered = [(path.name.removeprefix(f"{self._path.name}."), path) for path in paths if _is_file(path)]
        return sorted(((int(n), path) for n, path in numbered if n.isdecimal() and n.isascii()), reverse=True)

    def _put_away(self) -> None:
        if not _size(self._path):
            return
        # Starting with the oldest: a crash between two renames leaves a gap and loses nothing.
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
        """All audit files, oldest first, opened so that later renames do not matter.

        And how many things of such a name are not regular files.
        """
        opened: list[BinaryIO] = []
        not_files = 0
        with readers_gate(self._gate_path):
            for path in (*(path for _, path in self._old_files()[-MAX_OLD_FILES:]), self._path):
                try:
                    opened.append(stack.enter_context(_last_part(path)))
                except FileNotFoundError:
                    pass
                except NotRegular:
                    not_files += 1
                except OSError as problem:
                    raise trouble(path, problem, "read") from problem
        return opened, not_files


def _last_part(path: Path) -> BinaryIO:
    file = os.fdopen(open_regular(path, follow_links=False), "rb")
    surplus = os.fstat(file.fileno()).st_size - MAX_READ_FILE_BYTES
    if surplus > 0:
        file.seek(surplus)
        file.readline(MAX_READ_LINE_BYTES)  # the end of a line whose beginning is left out
    return file


def _add(path: Path, line: bytes) -> None:
    """Append with a single write, or not at all."""
    fd = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, follow_links=False)
    try:
        status = os.fstat(fd)
        if status.st_mode & 0o077:
            os.fchmod(fd, FILE_MODE)  # another program made it
        end = status.st_size
        if end and os.pread(fd, 1, end - 1) != b"\n":
            line = b"\n" + line  # a crash cut off the last line: ours begins on a new one
        written = os.write(fd, line)
        if written < len(line):
            if os.fstat(fd).st_size == end + written:  # else a program that ignores the lock wrote, too
                os.ftruncate(fd, end)
            raise OSError(errno.ENOSPC, "")
    finally:
        os.close(fd)


def _size(path: Path) -> int:
    """The size of a regular file; 0 for everything else, which is never rotated."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False  # gone meanwhile


def _redacted(text: str | None) -> str | None:
    """Redacted first and shortened then: the other way round, half a secret would pass."""
    if text is None:
        return None
    redacted = redact(text[:REDACTED_CHARS].encode("utf-8", "replace").decode())
    if len(text) > REDACTED_CHARS:
        redacted = redacted[:-MARGIN_CHARS]
    return redacted[:SUMMARY_CHARS]


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines up to the limit; of a longer one only the beginning, which is no JSON."""
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
