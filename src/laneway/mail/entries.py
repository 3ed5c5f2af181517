"""Parses and edits the entries of an inbox file: tolerant in reading, careful in writing.

Pure: bytes in, bytes out. Claude Code, ATM 0.46 and ATM 1.x each write entries of their own form; all
are read. Nothing in another program's entry is changed, except `read`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.mail import raw_json
from laneway.mail.raw_json import NotJson
from laneway.store import stamps

Urgency: TypeAlias = Literal["urgent", "normal", "low"]
URGENT = frozenset({"urgent", "high", "critical", "immediate", "interrupt"})
LOW = frozenset({"low", "background"})
ENTRY_DEPTH = 1
"""How deep an entry is nested: inside the array."""
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
MAX_EPOCH_MS = 32_503_680_000_000
"""The year 3000: a number beyond it is no time in milliseconds."""


class _Head(msgspec.Struct, gc=False):
    """The one field that most entries are decoded for: skipping the rest is ten times as fast."""

    read: bool = False


_head = msgspec.json.Decoder(_Head)
_heads = msgspec.json.Decoder(list[_Head])
_NOT_PLAIN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Message(msgspec.Struct, frozen=True):
    """An entry with a sender and a text."""

    sender: str
    text: str
    timestamp: str
    """As it was written; empty if it was not."""
    when: datetime | None
    is_read: bool
    message_id: str
    """The id to show and to read it by; empty if its writer gave none."""
    summary: str
    source_team: str
    kind: str
    """The entry's `type`, as a rule `message`."""
    urgency: Urgency
    key: frozenset[str]
    """Its identifying keys: two entries that share one are the same message."""
    raw: bytes

    @property
    def fields(self) -> dict[str, Any]:
        """The whole entry, fields that we do not know included."""
        known: dict[str, Any] = raw_json.value(self.raw)
        return known


class Problem(msgspec.Struct, frozen=True):
    """Something in an inbox that could not be read."""

    kind: Literal["damaged", "entry"]
    """The whole file, or one entry that is not a message; that entry stays where it is."""
    text: str


class Mail(msgspec.Struct, frozen=True):
    """The content of an inbox, as far as it was read."""

    messages: tuple[Message, ...] = ()
    """In the order of the file."""
    problems: tuple[Problem, ...] = ()

    def unread(self) -> tuple[Message, ...]:
        """In the order of delivery: urgent first, then by age. One without a time keeps its place."""
        return in_order(message for message in self.messages if not message.is_read)


# ── reading ────────────────────────────────────────────────────────────────


def read(entries: Iterable[bytes]) -> Mail:
    """The messages in these entries, each once even if it was written twice."""
    messages: list[Message] = []
    problems: list[Problem] = []
    known: set[str] = set()
    for number, raw in enumerate(entries, 1):
        parsed = message(raw)
        if parsed is None:
            problems.append(Problem("entry", f"Entry {number} is not a message; it stays where it is."))
        elif known.isdisjoint(parsed.key):
            known |= parsed.key
            messages.append(parsed)
    return Mail(tuple(messages), tuple(problems))


def unread(data: bytes) -> list[bytes]:
    """The entries of a file that are not marked as read, messages or not; `NotJson` if it is no array."""
    try:
        heads = _heads.decode(data)
    except _NOT_PLAIN:
        return [raw for raw in raw_json.items(data) if is_unread(raw)]
    places = [place for place, head in enumerate(heads) if not head.read]
    if not places:
        return []
    tail = raw_json.last_items(data, len(heads) - places[0], len(heads))
    return [tail[place - len(heads)] for place in places]


def is_unread(raw: bytes) -> bool:
    try:
        return not _head.decode(raw).read
    except _NOT_PLAIN:
        parsed = message(raw)
        return parsed is None or not parsed.is_read


def message(raw: bytes) -> Message | None:
    """The message in an entry; none if it has no sender or no text."""
    try:
        entry = raw_json.value(raw)
    except NotJson:
        return None
    if not isinstance(entry, dict):
        return None
    sender = entry.get("from")
    text = entry.get("text", entry.get("content"))  # ATM once wrote `content`
    if not isinstance(sender, str) or not isinstance(text, str):
        return None
    written, when = _time(entry.get("timestamp"))
    ids = _ids(entry)
    return Message(
        sender=sender,
        text=text,
        timestamp=written,
        when=when,
        is_read=entry.get("read") is True,
        message_id=ids[0] if ids else "",
        summary=_text(entry.get("summary")),
        source_team=_text(entry.get("source_team")) or _text(_inside(entry, "atm", "sourceTeam")),
        kind=_text(entry.get("type")),
        urgency=_urgency(entry),
        key=_key(ids, sender, text, written),
        raw=raw,
    )


def in_order(messages: Iterable[Message]) -> tuple[Message, ...]:
    ranked: list[tuple[int, datetime, Message]] = []
    latest = BEGINNING
    for each in messages:
        latest = each.when or latest
        ranked.append((("urgent", "normal", "low").index(each.urgency), latest, each))
    return tuple(each for _, _, each in sorted(ranked, key=lambda rank: rank[:2]))


def _ids(entry: dict[str, Any]) -> list[str]:
    """All its ids. ATM 1.x moves ours to other fields when it rewrites an inbox."""
    ids = (entry.get("message_id"), entry.get("msg_id"), _inside(entry, "atm", "messageId"))
    return [each for each in ids if isinstance(each, str) and each]


def _key(ids: Sequence[str], sender: str, text: str, written: str) -> frozenset[str]:
    """An id alone is not enough: a sender who reuses another message's id must not make that one vanish."""
    content = f"{len(sender)} {sender}{text}".encode("utf-8", "surrogatepass")
    body = hashlib.blake2b(content, digest_size=16).hexdigest()
    return frozenset(f"{each} {body}" for each in ids) or frozenset({f"@{written} {body}"})


def _time(value: object) -> tuple[str, datetime | None]:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MAX_EPOCH_MS:
        return str(value), datetime.fromtimestamp(value / 1000, UTC)
    return _text(value), stamps.parse(value)


def _urgency(entry: dict[str, Any]) -> Urgency:
    hints = (
        _inside(entry, "laneway", "priority"),
        _inside(entry, "atm", "priority"),
        entry.get("priority"),
        entry.get("urgency"),
    )
    priority = next((hint.strip().lower() for hint in hints if isinstance(hint, str)), "")
    return "urgent" if priority in URGENT else "low" if priority in LOW else "normal"


def _inside(entry: dict[str, Any], whose: str, name: str) -> object:
    metadata = entry.get("metadata")
    table = metadata.get(whose) if isinstance(metadata, dict) else None
    return table.get(name) if isinstance(table, dict) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


# ── writing ────────────────────────────────────────────────────────────────


def marked_read(raw: bytes) -> bytes:
    """The entry with `read: true`, and every other byte unchanged."""
    return raw_json.object_of({**raw_json.fields(raw), "read": b"true"}, ENTRY_DEPTH)


def mark(entries: Sequence[bytes], key: frozenset[str]) -> tuple[list[bytes], int]:
    """Mark exactly the messages that share a key with these; returns how many were unread."""
    after = list(entries)
    count = 0
    for place, raw in enumerate(entries):
        if not is_unread(raw):
            continue
        parsed = message(raw)
        if parsed is not None and not key.isdisjoint(parsed.key):
            after[place] = marked_read(raw)
            count += 1
    return after, count


def has(entries: Sequence[bytes], marks: tuple[str, ...]) -> bool:
    """Whether one of the messages has an id that ends in one of `marks`."""
    return any(name.endswith(marks) for each in _with(entries, *marks) for name in _ids(each.fields))


def free_time(entries: Sequence[bytes], sender: str, text: str, when: datetime) -> datetime:
    """The time, or the next millisecond at which there is no message of this sender with the same text.

    Claude Code removes delivered mail by sender, time and text: two equal ones would go together.
    """
    while any((each.sender, each.text) == (sender, text) for each in _with(entries, stamps.stamp(when))):
        when += timedelta(milliseconds=1)
    return when


def _with(entries: Sequence[bytes], *words: str) -> list[Message]:
    """The messages that contain one of the words. As a rule none does, which one search shows."""
    whole = b"\n".join(entries)
    present = [word.encode() for word in words if word.encode() in whole]
    parsed = (message(raw) for raw in entries if any(word in raw for word in present)) if present else ()
    return [each for each in parsed if each is not None]


def merge(base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]) -> list[bytes]:
    """Both sides' changes of `base`: theirs, with the entries that we added and those we marked as read.

    What they removed stays removed.
    """
    merged = list(theirs)
    places = {name: place for place, raw in enumerate(theirs) for name in known_by(raw)}
    unchanged = set(base)
    before = {name for raw in base for name in known_by(raw)}
    for raw in ours:
        if raw in unchanged:
            continue
        names = known_by(raw)
        place = next((places[name] for name in names if name in places), None)
        if place is None:
            if before.isdisjoint(names):
                merged.append(raw)
        elif _is_read(raw) and not _is_read(merged[place]):
            merged[place] = marked_read(merged[place])
    return merged


def known_by(raw: bytes) -> frozenset[str]:
    """The keys of an entry, message or not."""
    parsed = message(raw)
    if parsed is not None:
        return parsed.key
    return frozenset({"raw " + hashlib.blake2b(raw, digest_size=16).hexdigest()})


def _is_read(raw: bytes) -> bool:
    parsed = message(raw)
    return parsed is not None and parsed.is_read
