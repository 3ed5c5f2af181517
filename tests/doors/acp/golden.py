"""A conversation made comparable, and the file that it is compared with.

What differs from run to run gets the same name every time; what is mere timing (how a text
was cut into chunks, how often a running command was told of) is joined. `LANEWAY_RECORD=1`
writes the files of `tests/golden/acp` anew: a message per line, so that a change reads well
as a diff. The list of slash commands, which every session is told, is in a file of its own: a trace
that has just that list names the file, and any other is shown whole.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Collection, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "acp"

Message = dict[str, Any]

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
NAMED = re.compile(
    rf"(?P<uuid>{UUID})|\b(?P<kind>msg|rs|call|resp)_\d+\b|\b(?:q|(?P<ours>laneway))-[0-9a-f]{{16}}\b"
)
"""What is told apart by its name only: Codex's uuids, the scripted model's counters, what we ask and say."""
TEXTS = (
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:0"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "0000-00-00T00:00:00Z"),
    (re.compile(r"Wall time: [\d.]+ seconds"), "Wall time: 0.0000 seconds"),
)
FIELDS = {"version": "version", "nextCursor": "cursor"}
"""Fields that are this release's, this machine's or mere chance."""
CHUNKS = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
EDITS = ("edit", "delete", "move")
GROWING = ("title", "kind", "content", "locations")
"""Of an edit that is being written."""
COMMANDS = "commands"
"""The golden file of the slash commands, which every session is told. Record it before the traces."""
OF_CODEX = ("model", "thought_level")
"""Categories of options whose choices are those of the Codex at hand."""


def golden(name: str, trace: list[Message]) -> None:
    """Compare with the stored trace, or store it."""
    path = GOLDEN / f"{name}.json"
    if os.environ.get("LANEWAY_RECORD") == "1":
        lines = ",\n".join(msgspec.json.encode(message).decode() for message in trace)
        path.write_text(f"[\n{lines}\n]\n")
        return
    assert path.exists(), f"there is no {path.name}: LANEWAY_RECORD=1 writes it"
    stored = msgspec.json.decode(path.read_bytes())
    for number, (seen, wanted) in enumerate(zip_longest(trace, stored), 1):
        assert seen == wanted, f"{path.name}, message {number}:\n{_line(seen)}\ninstead of\n{_line(wanted)}"


@functools.cache
def stored(name: str) -> Any:
    """What the file has, if there is one."""
    path = GOLDEN / f"{name}.json"
    return msgspec.json.decode(path.read_bytes()) if path.exists() else None


def _line(message: Message | None) -> str:
    return "nothing" if message is None else msgspec.json.encode(message).decode()


def normalised(
    lines: Sequence[tuple[str, Message]], places: dict[str, str], without: Collection[str] = ()
) -> list[Message]:
    """Pure. Who said what, in order."""
    kept = [(side, message) for side, message in lines if kind_of(message) not in without]
    names = Names(places)
    return [names.message(side, message) for side, message in _joined(_grown(_settled(kept)))]


def kind_of(message: Message) -> str | None:
    """The kind of a `session/update`; none for every other message."""
    if message.get("method") != "session/update":
        return None
    return str(message["params"]["update"]["sessionUpdate"])


# ── timing ─────────────────────────────────────────────────────────────────


def _settled(lines: list[tuple[str, Message]]) -> list[tuple[str, Message]]:
    """A session's commands are told right after it is opened, while the client may already go on."""
    settled: list[tuple[str, Message]] = []
    for side, message in lines:
        at = len(settled)
        if kind_of(message) == "available_commands_update":
            at = _opening(settled, message["params"]["sessionId"]) or at
        settled.insert(at, (side, message))
    return settled


def _opening(lines: list[tuple[str, Message]], session_id: str) -> int | None:
    """Behind the last answer that opened the session."""
    asked: dict[Any, str] = {}
    found = None
    for at, (side, message) in enumerate(lines):
        params = message.get("params") or {}
        if side == "client" and "method" in message:
            asked[message.get("id")] = str(params.get("sessionId", ""))
        elif side == "agent" and isinstance(message.get("result"), dict):
            opened = message["result"].get("sessionId") or asked.get(message["id"])
            if opened == session_id and "configOptions" in message["result"]:
                found = at + 1
    return found


def _grown(lines: list[tuple[str, Message]]) -> list[tuple[str, Message]]:
    """An edit is told while it is written: how much of it at a time is chance. It opens whole here."""
    opening: dict[str, Message] = {}
    grown: list[tuple[str, Message]] = []
    for side, message in lines:
        update = (message.get("params") or {}).get("update") or {}
        if message.get("method") == "session/request_permission":
            opening.pop(message["params"].get("toolCall", {}).get("toolCallId"), None)
        elif kind_of(message) == "tool_call" and update.get("kind") in EDITS:
            update = opening[update["toolCallId"]] = dict(update)
        elif kind_of(message) == "tool_call_update" and update["toolCallId"] in opening:
            opening[update["toolCallId"]] |= {key: update[key] for key in GROWING if key in update}
            update = {key: value for key, value in update.items() if key not in GROWING}
            if update.keys() <= {"sessionUpdate", "toolCallId"}:
                continue
        shown = {**message, "params": {**message["params"], "update": update}} if update else message
        grown.append((side, shown))
    return grown


def _joined(lines: list[tuple[str, Message]]) -> list[tuple[str, Message]]:
    joined: list[tuple[str, Message]] = []
    for side, message in lines:
        before = joined[-1][1] if joined else {}
        together = _together(before, message)
        if together is None:
            joined.append((side, message))
        else:
            joined[-1] = (side, together)
    return joined


def _together(before: Message, message: Message) -> Message | None:
    """One message for two that say more of the same thing; none where they do not."""
    kind = kind_of(message)
    if kind is None or kind != kind_of(before):
        return None
    (old, new) = (before["params"], message["params"])
    (first, second) = (old["update"], new["update"])
    same = old["sessionId"] == new["sessionId"]
    if kind in CHUNKS and same and first.get("messageId") == second.get("messageId"):
        if first["content"]["type"] != "text" or second["content"]["type"] != "text":
            return None
        content = {**first["content"], "text": first["content"]["text"] + second["content"]["text"]}
        return {**message, "params": {**new, "update": {**second, "content": content}}}
    if kind == "tool_call_update" and same and first["toolCallId"] == second["toolCallId"]:
        meta = _meta(first.get("_meta"), second.get("_meta"))
        return {**message, "params": {**new, "update": {**first, **second, **meta}}}
    return None


def _meta(first: Message | None, second: Message | None) -> Message:
    """Output in `_meta` comes in pieces that add up; all else in it replaces."""
    if first is None and second is None:
        return {}
    both = {**(first or {}), **(second or {})}
    pieces = [part["terminal_output"] for part in (first, second) if part and "terminal_output" in part]
    if pieces:
        both["terminal_output"] = {**pieces[-1], "data": "".join(piece["data"] for piece in pieces)}
    return {"_meta": both}


# ── names ──────────────────────────────────────────────────────────────────


class Names:
    """Gives all that differs the same name every time. One per trace: names count from one in each."""

    def __init__(self, places: dict[str, str]) -> None:
        self._places = sorted(places.items(), key=lambda place: -len(place[0]))
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}

    def message(self, side: str, message: Message) -> Message:
        body = {key: value for key, value in message.items() if key not in ("jsonrpc", "id")}
        if "id" in message:
            # Each side counts its own; an answer bears the number of the other's request.
            asker = side if "method" in message else "agent" if side == "client" else "client"
            return {"from": side, "id": self._name(asker, f"{asker} {message['id']!r}"), **self._fields(body)}
        return {"from": side, **self._fields(body)}

    def _fields(self, fields: Message) -> Message:
        return {self.text(name): self.value(inner, name) for name, inner in fields.items()}

    def value(self, value: Any, key: str = "") -> Any:
        match value:
            case dict() if "options" in value and value.get("category") in OF_CODEX:
                return self._fields({**value, "options": "those of Codex"})
            case list() if key == "availableCommands" and value == stored(COMMANDS):
                return f"those of {COMMANDS}.json"
            case dict():
                return self._fields(value)
            case list():
                return [self.value(inner) for inner in value]
            case str():
                return FIELDS.get(key) or self.text(value)
            case _:
                return value

    def text(self, text: str) -> str:
        for place, name in self._places:
            text = text.replace(place, name)
        for pattern, replacement in TEXTS:
            text = pattern.sub(replacement, text)
        return NAMED.sub(lambda found: self._name(_kind(found), found[0]), text)

    def _name(self, kind: str, value: str) -> str:
        if value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"{kind}-{self._counts[kind]}"
        return self._names[value]


def _kind(found: re.Match[str]) -> str:
    return "uuid" if found["uuid"] else found["kind"] or found["ours"] or "question"
