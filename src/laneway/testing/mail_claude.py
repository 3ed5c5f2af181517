"""A model of Claude Code 2.1 writing an inbox and a roster: its lock is a folder, stale after 10 s.

Written from its rules and not from our code; see `mail_dialects`.
"""

from __future__ import annotations

import json
import os
import secrets
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from laneway.testing.mail_program import Entry, Failed, Tell, pretty, stamp


class Claude:
    RETRIES_S = (0.005, 0.01, 0.02, 0.04, 0.08, 0.1, 0.1, 0.1, 0.1, 0.1)
    STALE_S = 10.0

    def append(self, inbox: Path, sender: str, text: str) -> None:
        inbox.parent.mkdir(exist_ok=True)
        try:
            with inbox.open("xb") as file:
                file.write(b"[]")
        except FileExistsError:
            pass
        with self._locked(inbox):
            entries = self._read(inbox)
            entries.append(
                {
                    "from": sender,
                    "text": text,
                    "summary": text[:20],
                    "timestamp": stamp(),
                    "msgV": 1,
                    "msg_id": str(uuid.uuid4()),
                    "type": "message",
                    "read": False,
                }
            )
            self._write(inbox, entries)

    def mark(self, inbox: Path, tell: Tell) -> None:
        """Deliver all unread mail, then remove it and all that was read before."""
        taken = [entry for entry in self._read(inbox) if not entry.get("read")]
        for entry in taken:
            tell(f"read {entry['text']}")
        known = {(entry["from"], entry["timestamp"], entry["text"]) for entry in taken}
        with self._locked(inbox):
            remaining = [
                entry
                for entry in self._read(inbox)
                if not entry.get("read") and (entry["from"], entry["timestamp"], entry["text"]) not in known
            ]
            self._write(inbox, remaining)

    def update_roster(self, config: Path, change: Callable[[Entry], None]) -> None:
        """Written in place: a concurrent reader may see half of it."""
        with self._locked(config):
            roster = json.loads(config.read_bytes())
            change(roster)
            data = pretty(roster)
            with config.open("r+b", buffering=0) as file:
                half = len(data) // 2
                file.write(data[:half])
                file.write(data[half:])
                file.truncate(len(data))

    def _read(self, inbox: Path) -> list[Entry]:
        """An inbox that is not JSON counts as empty; entries that do not fit the schema are dropped."""
        try:
            entries = json.loads(inbox.read_bytes().decode("utf-8", "replace"))
        except (ValueError, FileNotFoundError):
            return []
        valid = [entry for entry in entries if self._fits(entry)] if isinstance(entries, list) else []
        for entry in valid:
            entry.setdefault("type", "message")
        return valid

    @staticmethod
    def _fits(entry: object) -> bool:
        return (
            isinstance(entry, dict)
            and all(isinstance(entry.get(name), str) for name in ("from", "text", "timestamp"))
            and isinstance(entry.get("read", False), bool)
            and all(
                isinstance(entry.get(name, ""), str) for name in ("type", "color", "summary", "from_plugin")
            )
        )

    @staticmethod
    def _write(inbox: Path, entries: list[Entry]) -> None:
        temporary = inbox.with_name(f"{inbox.name}.tmp.{os.getpid()}.{secrets.token_hex(6)}")
        temporary.write_bytes(pretty(entries))
        temporary.rename(inbox)

    @contextmanager
    def _locked(self, inbox: Path) -> Iterator[None]:
        folder = inbox.with_name(inbox.name + ".lock")
        for pause_s in (*self.RETRIES_S, None):
            if self._make(folder, self.STALE_S):
                break
            if pause_s is None:
                raise Failed("ELOCKED")
            time.sleep(pause_s)
        try:
            yield
        finally:
            try:
                folder.rmdir()
            except OSError:
                pass  # another program took it for stale; Claude Code goes on anyway

    def _make(self, folder: Path, stale_s: float) -> bool:
        try:
            folder.mkdir()
        except FileExistsError:
            if not stale_s:
                return False
            try:
                status = folder.stat()
            except FileNotFoundError:
                return self._make(folder, 0)
            if time.time() - status.st_mtime <= stale_s:
                return False
            try:
                folder.rmdir()
            except FileNotFoundError:
                pass
            except NotADirectoryError:
                raise Failed("ENOTDIR") from None
            return self._make(folder, 0)
        rounded_up = -(-time.time() // 1) + 0.005  # it measures the precision of the disk's times by this
        os.utime(folder, (rounded_up, rounded_up))
        return True
