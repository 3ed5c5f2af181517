"""Models of ATM 0.46 and ATM 1.x writing an inbox: each with its own lock, merge and write, flaws included.

Written from their rules and not from our code; see `mail_dialects`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from laneway.mail.swap import exchange
from laneway.testing.mail_program import Entry, Failed, Tell, pretty, stamp


def _strict(data: bytes) -> list[Entry]:
    try:
        entries: list[Entry] = json.loads(data)
    except ValueError:
        raise Failed("no JSON") from None
    return entries


class Atm:
    PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8)

    def append(self, inbox: Path, sender: str, text: str) -> None:
        entry = {
            "from": sender,
            "source_team": "atm-team",
            "text": text,
            "timestamp": datetime.now(UTC).isoformat(),
            "read": False,
            "summary": text[:100],
            "message_id": str(uuid.uuid4()),
        }
        with self._locked(inbox):
            self._replace(inbox, lambda entries: [*entries, entry])

    def mark(self, inbox: Path, tell: Tell) -> None:
        texts: list[str] = []

        def marked(entries: list[Entry]) -> list[Entry]:
            texts[:] = [entry["text"] for entry in entries if not entry.get("read")]
            now = datetime.now(UTC).isoformat()
            return [
                entry if entry.get("read") else {**entry, "read": True, "pendingAckAt": now}
                for entry in entries
            ]

        with self._locked(inbox):
            self._replace(inbox, marked)
        for text in texts:
            tell(f"read {text}")

    def _replace(self, inbox: Path, change: Callable[[list[Entry]], list[Entry]]) -> None:
        temporary = inbox.with_suffix(".tmp")
        before = inbox.read_bytes() if inbox.exists() else b"[]"
        own_entries = change(self._parse(before))
        with temporary.open("wb") as file:
            file.write(pretty(own_entries))
            file.flush()
            os.fsync(file.fileno())
        if not inbox.exists():
            temporary.rename(inbox)
            return
        exchange(inbox, temporary)
        displaced = temporary.read_bytes()
        if displaced != before:
            temporary.write_bytes(pretty(self._merged(own_entries, self._parse(displaced))))
            exchange(inbox, temporary)
        temporary.unlink(missing_ok=True)

    @staticmethod
    def _parse(data: bytes) -> list[Entry]:
        """If one entry does not fit, ATM reads nothing at all."""
        entries = _strict(data)
        for entry in entries:
            if not all(isinstance(entry[name], str) for name in ("from", "text", "timestamp")):
                raise Failed("serde")
            for name in [
                name for name in ("summary", "message_id", "source_team") if entry.get(name, "") is None
            ]:
                del entry[name]
        checked: list[Entry] = entries
        return checked

    @staticmethod
    def _merged(own_entries: list[Entry], theirs: list[Entry]) -> list[Entry]:
        ids = {entry.get("message_id") for entry in own_entries} - {None}
        keys = {(entry["from"], entry["text"], entry["timestamp"]) for entry in own_entries}

        def is_known(entry: Entry) -> bool:
            if entry.get("message_id") is not None:
                return entry["message_id"] in ids
            return (entry["from"], entry["text"], entry["timestamp"]) in keys

        merged = [*own_entries, *(entry for entry in theirs if not is_known(entry))]
        return sorted(merged, key=lambda entry: str(entry["timestamp"]))

    @contextmanager
    def _locked(self, inbox: Path) -> Iterator[None]:
        fd = os.open(inbox.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            for pause_s in (*self.PAUSES_S, None):
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if pause_s is None:
                        raise Failed("queued") from None
                    time.sleep(pause_s)
            yield
        finally:
            os.close(fd)


# ── ATM 1.x: a file with a flock under the name of Claude's folder ─────────


class Atm1:
    BUDGET_S = 5.0
    POLL_S = 0.05

    def append(self, inbox: Path, sender: str, text: str) -> None:
        entry = {
            "from": sender,
            "text": text,
            "timestamp": stamp(),
            "read": False,
            "summary": text[:100],
            "metadata": {"atm": {"messageId": self._ulid(), "sourceTeam": "atm-team"}},
        }
        with self._locked(inbox):
            self._write(inbox, [*self._read(inbox), entry])

    def mark(self, inbox: Path, tell: Tell) -> None:
        with self._locked(inbox):
            entries = self._read(inbox)
            texts = [entry["text"] for entry in entries if not entry.get("read")]
            self._write(inbox, [{**entry, "read": True} for entry in entries])
        for text in texts:
            tell(f"read {text}")

    @staticmethod
    def _ulid() -> str:
        number = int(time.time() * 1000) << 80 | secrets.randbits(80)
        return "".join(
            "0123456789ABCDEFGHJKMNPQRSTVWXYZ"[number >> shift & 31] for shift in range(125, -1, -5)
        )

    @staticmethod
    def _read(inbox: Path) -> list[Entry]:
        """On reading, it moves the old top-level ids into `metadata.atm`, and drops them on writing."""
        try:
            entries = _strict(inbox.read_bytes())
        except FileNotFoundError:
            return []
        for entry in entries:
            if isinstance(entry.get("metadata", {}).get("atm", {}).get("messageId"), str):
                entry.pop("message_id", None)
        return entries

    @staticmethod
    def _write(inbox: Path, entries: list[Entry]) -> None:
        temporary = inbox.with_name(f".{inbox.name}.tmp.{os.getpid()}.{uuid.uuid4()}")
        with temporary.open("wb") as file:
            file.write(pretty(entries) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(inbox)

    @contextmanager
    def _locked(self, inbox: Path) -> Iterator[None]:
        path = inbox.with_name(inbox.name + ".lock")
        owner = f"{os.getpid()}:{uuid.uuid4()}"
        fd = self._take(path, owner)
        try:
            yield
        finally:
            os.close(fd)
            try:
                if path.read_text() == owner:
                    path.unlink()
            except OSError:
                pass

    def _take(self, path: Path, owner: str) -> int:
        deadline = time.monotonic() + self.BUDGET_S
        while True:
            self._evict(path)
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            except OSError as problem:  # Claude's folder: it does not even wait
                raise Failed(errno.errorcode[problem.errno or 0]) from None
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if path.exists() and os.path.samestat(os.fstat(fd), path.stat()):
                    os.truncate(fd, 0)
                    os.write(fd, owner.encode())
                    return fd
            except BlockingIOError:
                pass
            os.close(fd)
            if time.monotonic() >= deadline:
                raise Failed("timeout")
            time.sleep(self.POLL_S)

    @staticmethod
    def _evict(path: Path) -> None:
        try:
            pid = int(path.read_text().partition(":")[0])
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                path.unlink(missing_ok=True)
        except (OSError, ValueError):
            pass
