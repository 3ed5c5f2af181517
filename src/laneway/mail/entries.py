"""One inbox as values: what others wrote, read with tolerance, and what we write, read by all three.

Pure: bytes in, bytes out. Claude Code, ATM 0.46 and ATM 1.x each have their own idea of an entry;
ours carries the ids that each of them looks for and never a null, for which Claude drops a message.
Nothing that another program put there is changed, but for `read`.
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
"""An entry stands inside the array."""
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
MAX_EPOCH_MS = 32_503_680_000_000
"""The year 3000: a number beyond it is no time in milliseconds."""


class _Head(msgspec.Struct, gc=False):
    """The one field that most entries are looked at for: the rest is skipped, ten times as fast."""

    read: bool = False


_head = msgspec.json.Decoder(_Head)
_heads = msgspec.json.Decoder(list[_Head])
_NOT_PLAIN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Message(msgspec.Struct, frozen=True):
    """An entry that says something to somebody."""

    sender: str
    text: str
    timestamp: str
    """As it was written; empty if it was not."""
    when: datetime | None
    is_read: bool
    message_id: str
    """The id to show and to ask for; empty if its writer gave none."""
    summary: str
    source_team: str
    kind: str
    """The entry's `type`, as a rule `message`."""
    urgency: Urgency
    key: frozenset[str]
    """What it is known by: two entries that share one of these are the same message."""
    raw: bytes

    @property
    def fields(self) -> dict[str, Any]:
        """The whole entry, with what we do not know."""
        known: dict[str, Any] = raw_json.value(self.raw)
        return known


class Problem(msgspec.Struct, frozen=True):
    kind: Literal["damaged", "entry"]
    """The whole file, or one entry that is no message; the entry stays where it is."""
    text: str


class Mail(msgspec.Struct, frozen=True):
    messages: tuple[Message, ...] = ()
    """In the order of the file."""
    problems: tuple[Problem, ...] = ()

    def unread(self) -> tuple[Message, ...]:
        """In the order of delivery: urgent first, then by age. What has no time goes by its place."""
        return in_order(message for message in self.messages if not message.is_read)


# ── reading ────────────────────────────────────────────────────────────────


def read(entries: Iterable[bytes]) -> Mail:
    """Each message once, also if it was written twice."""
    messages: list[Message] = []
    problems: list[Problem] = []
    known: set[str] = set()
    for number, raw in enumerate(entries, 1):
        found = message(raw)
        if found is None:
            problems.append(Problem("entry", f"Entry {number} is not a message; it stays where it is."))
        elif known.isdisjoint(found.key):
            known |= found.key
            messages.append(found)
    return Mail(tuple(messages), tuple(problems))


def unread(data: bytes) -> list[bytes]:
    """The entries of a file that nobody has marked as read, whatever they are; `NotJson` if it is none."""
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
        found = message(raw)
        return found is None or not found.is_read


def message(raw: bytes) -> Message | None:
    """None if it has no sender or no text."""
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
    """All ids that it goes by. ATM 1.x moves ours about when it writes an inbox anew."""
    found = (entry.get("message_id"), entry.get("msg_id"), _inside(entry, "atm", "messageId"))
    return [each for each in found if isinstance(each, str) and each]


def _key(ids: Sequence[str], sender: str, text: str, written: str) -> frozenset[str]:
    """An id alone does not do: whoever gives his message another's id must not make that one vanish."""
    said = f"{len(sender)} {sender}{text}".encode("utf-8", "surrogatepass")
    body = hashlib.blake2b(said, digest_size=16).hexdigest()
    return frozenset(f"{each} {body}" for each in ids) or frozenset({f"@{written} {body}"})


def _time(said: object) -> tuple[str, datetime | None]:
    if isinstance(said, (int, float)) and not isinstance(said, bool) and 0 <= said < MAX_EPOCH_MS:
        return str(said), datetime.fromtimestamp(said / 1000, UTC)
    return _text(said), stamps.parse(said)


def _urgency(entry: dict[str, Any]) -> Urgency:
    hints = (
        _inside(entry, "laneway", "priority"),
        _inside(entry, "atm", "priority"),
        entry.get("priority"),
        entry.get("urgency"),
    )
    said = next((hint.strip().lower() for hint in hints if isinstance(hint, str)), "")
    return "urgent" if said in URGENT else "low" if said in LOW else "normal"


def _inside(entry: dict[str, Any], whose: str, name: str) -> object:
    metadata = entry.get("metadata")
    table = metadata.get(whose) if isinstance(metadata, dict) else None
    return table.get(name) if isinstance(table, dict) else None


def _text(said: object) -> str:
    return said if isinstance(said, str) else ""


# ── writing ────────────────────────────────────────────────────────────────


def marked_read(raw: bytes) -> bytes:
    """The same entry with `read: true`, and every other byte as it was."""
    return raw_json.object_of({**raw_json.fields(raw), "read": b"true"}, ENTRY_DEPTH)


def mark(entries: Sequence[bytes], key: frozenset[str]) -> tuple[list[bytes], int]:
    """Mark exactly the messages that share something with the key; how many were unread."""
    after = list(entries)
    count = 0
    for place, raw in enumerate(entries):
        if not is_unread(raw):
            continue
        found = message(raw)
        if found is not None and not key.isdisjoint(found.key):
            after[place] = marked_read(raw)
            count += 1
    return after, count


def has(entries: Sequence[bytes], marks: tuple[str, ...]) -> bool:
    """Whether a message is there one of whose ids ends in one of these."""
    return any(name.endswith(marks) for found in _with(entries, *marks) for name in _ids(found.fields))


def free_time(entries: Sequence[bytes], sender: str, text: str, when: datetime) -> datetime:
    """The time, or the next millisecond at which the sender has not said the same already.

    Claude Code takes delivered mail out by sender, time and text: two of a kind would go together.
    """
    while any((found.sender, found.text) == (sender, text) for found in _with(entries, stamps.stamp(when))):
        when += timedelta(milliseconds=1)
    return when


def _with(entries: Sequence[bytes], *words: str) -> list[Message]:
    """The messages that have one of these somewhere. As a rule none has, which one look tells."""
    whole = b"\n".join(entries)
    spelt = [word.encode() for word in words if word.encode() in whole]
    found = (message(raw) for raw in entries if any(word in raw for word in spelt)) if spelt else ()
    return [each for each in found if each is not None]


def merge(base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]) -> list[bytes]:
    """What both sides made of `base`: theirs, with the entries that we added and the marks that we made.

    What they took out stays out.
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
    found = message(raw)
    if found is not None:
        return found.key
    return frozenset({"raw " + hashlib.blake2b(raw, digest_size=16).hexdigest()})


def _is_read(raw: bytes) -> bool:
    found = message(raw)
    return found is not None and found.is_read
