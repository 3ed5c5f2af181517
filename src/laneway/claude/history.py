"""Reads what was said in a session from its transcript, as events, by the page.

A transcript is a tree: each message names the one before it, and what was given up stays in the file. So
the conversation is what leads to the newest message. Compaction does not cut it off. Everything blocks:
from asyncio call through `asyncio.to_thread`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import BadCursor
from laneway.claude.inputs import CONTEXT_START
from laneway.claude.transcript import entry_of
from laneway.claude.translate import MessageTranslator
from laneway.core.hand_back_tag import without_hand_back
from laneway.core.model import Compacted, Event, Failure, Status, Usage, UserSaid
from laneway.core.ports import Page

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Of one message; a longer line is left out."""
_MARK = b'"parentUuid"'
"""Every message has it; requests and other records, which are larger by far, have not."""
_INTERRUPTED = "[Request interrupted by user"
_NOTIFICATION = "<task-notification>"
_OWN = ("<command-", "<local-command-", "<bash-", "Caveat: ")
"""The beginnings of what Claude Code itself writes in the user's place."""

Entry = dict[str, Any]


class RecordedTurn(msgspec.Struct, frozen=True):
    turn_id: str
    events: tuple[Event, ...]


def page(path: Path, older: str | None, limit: int, *, oldest_first: bool, cwd: str) -> Page:
    """Raises `BadCursor` for a cursor that leads to no turn."""
    turns = read_turns(path, cwd)
    if older is not None:
        at = next((number for number, turn in enumerate(turns) if turn.turn_id == older), None)
        if at is None:
            raise BadCursor
        turns = turns[at:] if oldest_first else turns[: at + 1]
    given = turns[:limit] if oldest_first else turns[max(0, len(turns) - limit) :]
    rest = turns[limit : limit + 1] if oldest_first else turns[: len(turns) - len(given)][-1:]
    events = tuple(event for turn in given for event in turn.events)
    return Page(events, rest[0].turn_id if rest else None)


def read_turns(path: Path, cwd: str) -> list[RecordedTurn]:
    """All turns of a session, oldest first."""
    replay = _Replay(cwd)
    for entry in conversation(list(entries(path))):
        replay.take(entry)
    replay.end()
    return replay.turns


def entries(path: Path) -> Iterator[Entry]:
    """The messages in a transcript, in the order of the file. What cannot be read is left out."""
    with path.open("rb") as file:
        for line in file:
            if len(line) > MAX_LINE_BYTES or _MARK not in line:
                continue
            entry = entry_of(line)
            if entry is not None and isinstance(entry.get("uuid"), str):
                yield entry


def conversation(found: list[Entry]) -> list[Entry]:
    """The messages that lead to the newest one, and the results of calls that were made at the same time."""
    by_uuid = {entry["uuid"]: entry for entry in found}
    leaf = next((entry for entry in reversed(found) if entry.get("isSidechain") is not True), None)
    kept: set[str] = set()
    while leaf is not None and leaf["uuid"] not in kept:
        kept.add(leaf["uuid"])
        parent = leaf.get("parentUuid") or leaf.get("logicalParentUuid")
        leaf = by_uuid.get(parent) if isinstance(parent, str) else None
    answers = {_message(by_uuid[uuid]).get("id") for uuid in kept} - {None}
    for entry in found:
        is_same_answer = entry.get("type") == "assistant" and _message(entry).get("id") in answers
        if is_same_answer or (entry.get("parentUuid") in kept and _has_results(entry)):
            kept.add(entry["uuid"])
    return [entry for entry in found if entry["uuid"] in kept and _is_message(entry)]


def _is_message(entry: Entry) -> bool:
    return entry.get("isSidechain") is not True and entry.get("isMeta") is not True


def _message(entry: Entry) -> dict[str, Any]:
    message = entry.get("message")
    return message if isinstance(message, dict) else {}


def _has_results(entry: Entry) -> bool:
    content = _message(entry).get("content")
    return isinstance(content, list) and any(
        isinstance(block, dict) and block.get("type") == "tool_result" for block in content
    )


class _Replay:
    """Turns entries into the events of turns."""

    def __init__(self, cwd: str) -> None:
        self.turns: list[RecordedTurn] = []
        self._events: list[Event] = []
        self._translator = MessageTranslator(self._keep, cwd)
        self._status: Status = "completed"

    def _keep(self, event: Event) -> None:
        if not isinstance(event, Usage):
            self._events.append(event)

    def take(self, entry: Entry) -> None:
        match entry.get("type"):
            case "system" if entry.get("subtype") == "compact_boundary":
                self._events.append(Compacted(turn_id=self._translator.turn_id))
            case "attachment":
                attachment = entry.get("attachment")
                if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
                    self._say(entry, text_of(attachment.get("prompt")))
            case "assistant":
                self._ensure_turn(entry)
                self._translator.message(
                    {**entry, "is_api_error_message": entry.get("isApiErrorMessage")}, b""
                )
            case "user" if _has_results(entry):
                self._translator.message({**entry, "tool_use_result": entry.get("toolUseResult")}, b"")
            case "user" if entry.get("isCompactSummary") is not True:
                self._prompt(entry)

    def _prompt(self, entry: Entry) -> None:
        text = prompt_of(entry)
        if text.startswith(_INTERRUPTED):
            self._status = "interrupted"
        elif text.startswith(_NOTIFICATION):
            self.end()
            self._translator.begin(entry["uuid"])
        elif text and not text.startswith(_OWN):
            self.end()
            self._translator.begin(entry["uuid"])
            self._say(entry, text)

    def _say(self, entry: Entry, text: str) -> None:
        turn_id = self._translator.turn_id
        if turn_id is not None and text:
            content = _message(entry).get("content")
            self._keep(UserSaid(turn_id=turn_id, item_id=entry["uuid"], text=text, content=content))

    def _ensure_turn(self, entry: Entry) -> None:
        if self._translator.turn_id is None:
            self._translator.begin(entry["uuid"])

    def end(self) -> None:
        """The turn is over, and the next begins, or the transcript ends."""
        turn_id = self._translator.turn_id
        if turn_id is not None:
            failure: Failure | None = self._translator.failure
            self._translator.finish("failed" if failure else self._status, failure)
            self.turns.append(RecordedTurn(turn_id, tuple(self._events)))
        self._events.clear()
        self._status = "completed"


def prompt_of(entry: Entry) -> str:
    """What a person said, without the context that we put in front of it."""
    return text_of(_message(entry).get("content"))


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return without_hand_back(content)
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [without_hand_back(str(block.get("text"))) for block in blocks if block.get("type") == "text"]
    return "\n".join(text for text in texts if text and not text.startswith(CONTEXT_START))
