"""A strict checker of inboxes and rosters by the rules of Claude Code, ATM 0.46 and ATM 1.x.

Written from their rules and not from our code: it shares nothing with `laneway.mail`. A fault is a
sentence; without faults each of the three reads every entry and keeps it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
TEXTS = ("type", "from", "text", "timestamp", "color", "summary", "from_plugin", "message_id", "source_team")
"""Fields that must be texts, if present, by Claude Code's schema or ATM's structs."""
MEMBER_TEXTS = ("agentId", "name", "agentType", "model", "cwd")
FORGED_PANES = ("in-process", "leader")


def inbox_faults(data: bytes) -> list[str]:
    """Faults of a whole inbox, whoever wrote its entries."""
    try:
        entries = json.loads(data.decode(), parse_constant=_refuse)
    except ValueError as problem:
        return [f"nobody can read it: {problem}"]
    if not isinstance(entries, list):
        return ["Claude Code reads it as empty: it is no array"]
    faults = [
        f"entry {number}: {fault}" for number, entry in enumerate(entries) for fault in entry_faults(entry)
    ]
    if faults:
        return faults
    for what, counts in {
        "sender, time and text": Counter((e["from"], e["timestamp"], e["text"]) for e in entries),
        "message_id": Counter(e["message_id"] for e in entries if "message_id" in e),
        "msg_id": Counter(e["msg_id"] for e in entries if "msg_id" in e),
    }.items():
        faults += [f"{count} entries have the {what} {each}" for each, count in counts.items() if count > 1]
    return faults


def entry_faults(entry: object) -> Iterator[str]:
    """Claude Code drops an entry that its schema refuses, on disk, too; ATM refuses the whole file."""
    if not isinstance(entry, dict):
        yield "it is no object"
        return
    for name in ("from", "text", "timestamp"):
        if name not in entry:
            yield f"{name} is missing"
    for name in TEXTS:
        if name in entry and not isinstance(entry[name], str):
            yield f"{name} is no text"
    if not isinstance(entry.get("read", False), bool):
        yield "read is neither true nor false"
    if "read" not in entry:
        yield "read is missing"
    try:
        datetime.fromisoformat(str(entry.get("timestamp")))
    except ValueError:
        yield "timestamp is no time"


def our_entry_faults(entry: dict[str, Any]) -> list[str]:
    """Faults of an entry that Laneway wrote: ids that all three know, and never a null."""
    faults = list(entry_faults(entry))
    faults += [f"{path} is null" for path in _nulls(entry, "")]
    if entry.get("type") != "message" or entry.get("msgV") != 1:
        faults.append("type and msgV are not Claude Code's")
    if not UUID4.fullmatch(str(entry.get("msg_id"))) or entry.get("msg_id") != entry.get("message_id"):
        faults.append("msg_id and message_id are not the same uuid4")
    if not STAMP.fullmatch(str(entry.get("timestamp"))):
        faults.append("timestamp is not in milliseconds and UTC")
    if not entry.get("source_team"):
        faults.append("source_team is missing")
    atm = entry.get("metadata", {}).get("atm", {})
    ulid = str(atm.get("messageId"))
    if not ULID.fullmatch(ulid):
        faults.append("metadata.atm.messageId is no ULID")
    elif not faults and ulid_time(ulid) != datetime.fromisoformat(str(entry["timestamp"])):
        faults.append("the ULID has another time than the entry")
    if atm.get("sourceTeam") != entry.get("source_team"):
        faults.append("metadata.atm.sourceTeam differs from source_team")
    if len(str(entry.get("summary", ""))) > 100:
        faults.append("summary is longer than ATM's 100 characters")
    return faults


def ulid_time(ulid: str) -> datetime:
    number = 0
    for letter in ulid:
        number = number * 32 + CROCKFORD.index(letter)
    return datetime.fromtimestamp((number >> 80) / 1000, UTC)


def config_faults(data: bytes, ours: set[str]) -> list[str]:
    """Faults of a roster: invalid JSON, and fields that ATM 0.46 misses in members that Laneway wrote."""
    try:
        config = json.loads(data.decode(), parse_constant=_refuse)
    except ValueError as problem:
        return [f"nobody can read it: {problem}"]
    if not isinstance(config, dict) or not isinstance(config.get("members"), list):
        return ["it is no object with members"]
    faults = []
    for member in config["members"]:
        if isinstance(member, dict) and member.get("name") in ours:
            faults += [f"{member['name']}: {fault}" for fault in _member_faults(member, config)]
    return faults


def _member_faults(member: dict[str, Any], config: dict[str, Any]) -> Iterator[str]:
    for name in MEMBER_TEXTS:
        if not isinstance(member.get(name), str) or not member[name]:
            yield f"{name} is no text"
    if not isinstance(member.get("joinedAt"), int) or member["joinedAt"] < 10**12:
        yield "joinedAt is not in milliseconds"
    if member.get("agentId") != f"{member.get('name')}@{config.get('name')}":
        yield "agentId is not name@team"
    if member.get("tmuxPaneId") in FORGED_PANES or member.get("backendType") in FORGED_PANES:
        yield "Claude Code would call its mail forged"
    if not isinstance(member.get("isActive"), bool) or member.get("subscriptions") != []:
        yield "isActive or subscriptions are of another kind"
    if member.get("externalBackendType") != "codex":
        yield "ATM does not know what it is"
    yield from (f"{path} is null" for path in _nulls(member, ""))


def _nulls(thing: object, path: str) -> Iterator[str]:
    match thing:
        case None:
            yield path or "it"
        case dict():
            for name, value in thing.items():
                yield from _nulls(value, f"{path}.{name}".lstrip("."))
        case list():
            for number, value in enumerate(thing):
                yield from _nulls(value, f"{path}[{number}]")


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")
