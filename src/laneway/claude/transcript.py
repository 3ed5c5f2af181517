"""The transcripts that Claude Code writes, a file for each session: where they are, what stands in them.

Only reads. An input has been taken for good when its uuid stands in the transcript: Claude Code reports
it earlier, and a kill in between loses it.
"""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from laneway.wire.messages import UNREADABLE, mend

log = logging.getLogger(__name__)

_SESSION_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
MAX_READ_BYTES = 64 * 1024 * 1024
"""Read at once of what was added to a transcript: an image or a long result, not a whole conversation."""
_UUIDS = (b'uuid":"%s"', b'"submitUuid":"%s"')
"""How an input is named: as a message, or as the cause of a command that Claude Code does not have here."""
_MERGED = re.compile(rb'"mergedSendUuids":\[([^\]]*)\]')
"""Inputs that waited together become one message, under the uuid of the last."""
_MESSAGES = (b'"type":"user"', b'"type":"assistant"')


def is_session_id(text: str) -> bool:
    """Whether a text can be the id of a session; anything else would be a path or an option."""
    return _SESSION_ID.fullmatch(text) is not None


def entry_of(line: bytes) -> dict[str, Any] | None:
    """The object in a line; none if it cannot be read. A kill leaves lines that are cut anywhere."""
    try:
        entry = msgspec.json.decode(mend(line))
    except UNREADABLE:
        return None
    return entry if isinstance(entry, dict) else None


def _names(uuid: bytes, lines: bytes) -> bool:
    return any(mark % uuid in lines for mark in _UUIDS)


class TranscriptFiles:
    """All transcripts of one Claude Code home."""

    def __init__(self, config_home: Path) -> None:
        self.projects = config_home / "projects"

    def find(self, session_id: str) -> Path | None:
        """The transcript of a session, whichever folder it was started in."""
        if not is_session_id(session_id):
            return None
        return next(iter(self.projects.glob(f"*/{session_id}.jsonl")), None)

    def has_messages(self, session_id: str) -> bool:
        """Whether there is something to resume: Claude Code begins the file before the first message."""
        path = self.find(session_id)
        if path is None:
            return False
        try:
            with path.open("rb") as file:
                return any(any(mark in line for mark in _MESSAGES) for line in file)
        except OSError as problem:
            log.warning("the transcript %s cannot be read: %s", path, problem)
            return False


class Recorded:
    """Looks for inputs in the transcript of one session, reading each part of it once."""

    def __init__(self, transcripts: TranscriptFiles, session_id: str) -> None:
        self._transcripts = transcripts
        self._session_id = session_id
        self._path: Path | None = None
        self._offset = 0

    @property
    def is_there(self) -> bool:
        """Whether Claude Code writes anything down of this session."""
        return self._find() is not None

    def skip(self) -> None:
        """Look only at what is written from now on."""
        path = self._find()
        if path is not None:
            self._offset = os.path.getsize(path)

    def look(self, uuids: set[str]) -> set[str]:
        """Those of these inputs that stand in what was added since the last look."""
        path = self._find()
        if path is None or not uuids:
            return set()
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._offset:
                    self._offset = 0  # the file was removed, and begun anew
                file.seek(self._offset)
                data = file.read(MAX_READ_BYTES)
        except OSError as problem:
            log.warning("the transcript %s cannot be read: %s", path, problem)
            return set()
        # A line that is not complete does not count, unless it is no input at all.
        whole = data if len(data) == MAX_READ_BYTES else data[: data.rfind(b"\n") + 1]
        # A text of the user's own cannot look like this: its quotation marks are escaped.
        merged = b"".join(_MERGED.findall(whole))
        found = {uuid for uuid in uuids if _names(uuid.encode(), whole) or uuid.encode() in merged}
        self._offset += len(whole)
        return found

    def _find(self) -> Path | None:
        if self._path is None or not self._path.exists():
            self._path = self._transcripts.find(self._session_id)
        return self._path
