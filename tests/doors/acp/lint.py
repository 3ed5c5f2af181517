"""Every message of both sides, held against the official schema of ACP and the rules that no schema says.

One `Lint` per connection: answers are judged by the request that they belong to. It refuses
what nobody asked for, unknown methods, unknown kinds of update, and every field outside
`_meta` that the schema does not name. What the unstable schema adds is let through by name
only. `Client` in `support` feeds it; `rules` holds what the messages say about each other.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jsonschema
import msgspec
from jsonschema.protocols import Validator

from tests.doors.acp.closed import Closing, Schema
from tests.doors.acp.rules import Rules

Message = dict[str, Any]
Side = Literal["agent", "client"]

SCHEMAS = Path(__file__).parent / "schema"
UNSTABLE = {
    "session/fork": (("SessionCapabilities", "fork"),),
    "session/set_title": (("SessionCapabilities", "title"),),
    "usage": (("PromptResponse", "usage"),),
    "plan_update": (("ClientCapabilities", "plan"),),
    "plan_removed": (("ClientCapabilities", "plan"),),
    "subagent_update": (("ClientCapabilities", "subagents"),),
}
"""What a test may allow of the unstable schema: a method, an update or a field; with the fields it brings."""
MAX_SHOWN = 400
"""Characters of a message in a complaint."""


class Violation(msgspec.Struct, frozen=True):
    side: Side
    problems: tuple[str, ...]
    message: Message

    def __str__(self) -> str:
        shown = json.dumps(self.message, ensure_ascii=False)[:MAX_SHOWN]
        return f"{self.side}: {'; '.join(self.problems)}\n    in {shown}"


class Lint:
    """What both sides of one connection have said, and what was wrong with it."""

    def __init__(self, unstable: Collection[str] = ()) -> None:
        assert set(unstable) <= set(UNSTABLE), f"unknown: {set(unstable) - set(UNSTABLE)}"
        self._book = book(frozenset(unstable))
        self._rules = Rules()
        self._open: dict[Side, dict[Any, str]] = {"agent": {}, "client": {}}
        """The methods of unanswered requests, by who asked."""
        self.violations: list[Violation] = []

    def check(self, side: Side, message: Message) -> list[str]:
        """What is wrong with the message. Also kept."""
        problems = list(self._problems(side, message))
        if problems:
            self.violations.append(Violation(side, tuple(problems), message))
        return problems

    def note(self, side: Side, message: Message) -> None:
        """A message that is wrong on purpose: unjudged, but its answer will be."""
        if "method" in message and "id" in message:
            self._open[side][_key(message["id"])] = str(message["method"])

    @property
    def has_open_requests(self) -> bool:
        return any(self._open.values())

    def assert_clean(self) -> None:
        assert not self.violations, "\n".join(map(str, self.violations))

    def _problems(self, side: Side, message: Message) -> Iterator[str]:
        if message.get("jsonrpc") != "2.0":
            yield 'no "jsonrpc": "2.0"'
        if "method" in message:
            yield from self._said(side, message)
        else:
            yield from self._answered(side, message)

    def _said(self, side: Side, message: Message) -> Iterator[str]:
        yield from _strangers(message, ("jsonrpc", "id", "method", "params"))
        method, is_request = str(message["method"]), "id" in message
        if is_request and _key(message["id"]) in self._open[side]:
            yield f"the id {message['id']!r} is in use"
        self.note(side, message)
        name = self._book.params.get((side, is_request, method))
        if name is None:
            yield f"{method} is no {'request' if is_request else 'notification'} of the {side}"
            return
        problems = list(self._book.judge(name, message.get("params", {})))
        yield from problems
        if not problems:
            yield from self._rules.said(side, message)

    def _answered(self, side: Side, message: Message) -> Iterator[str]:
        yield from _strangers(message, ("jsonrpc", "id", "result", "error"))
        if ("result" in message) == ("error" in message):
            yield "an answer is a result or an error"
            return
        method = self._open[_other(side)].pop(_key(message.get("id")), None)
        if method is None:
            # The one answer without a question: to what could not be read.
            if not (message.get("id", "") is None and "error" in message):
                yield f"nobody asked for an answer to {message.get('id')!r}"
            return
        if "error" in message:
            yield from self._book.judge("Error", message["error"])
            self._rules.refused(_other(side), message)
            return
        name = self._book.results.get((side, method))
        if name is None:
            yield f"a result for {method}, which the {side} has not"
            return
        problems = list(self._book.judge(name, message["result"]))
        yield from problems
        if not problems:
            yield from self._rules.answered(side, method, message)


# ── the schema ─────────────────────────────────────────────────────────────


class Book:
    """The definitions by method, and their validators, made when first asked for."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._closing = Closing(definitions)
        self._validators: dict[str, Validator] = {}
        self.params: dict[tuple[Side, bool, str], str] = {}
        self.results: dict[tuple[Side, str], str] = {}
        for name, schema in definitions.items():
            if "x-method" in schema:
                self._enter(name, schema["x-method"], schema["x-side"])

    def _enter(self, name: str, method: str, side: str) -> None:
        """`x-side` is who serves the method: the other side calls it."""
        if name.endswith("Response"):
            if side in ("agent", "client"):
                self.results[_side(side), method] = name
            return
        is_request = name.endswith("Request")
        for caller in ("agent", "client"):
            if caller != side and side in ("agent", "client", "protocol"):
                self.params[_side(caller), is_request, method] = name

    def judge(self, name: str, value: Any) -> Iterator[str]:
        if name not in self._validators:
            self._validators[name] = Tagged(self._closing.definition(name))
        for error in self._validators[name].iter_errors(value):
            yield from _told(error)


@cache
def book(unstable: frozenset[str]) -> Book:
    """The stable definitions, with what was allowed by name from the unstable ones."""
    stable = _definitions("schema.json")
    if not unstable:
        return Book(stable)
    newer = _definitions("schema.unstable.json")
    merged = {**newer, **stable}
    for name in set(newer) - set(stable):
        if "x-method" in newer[name] and newer[name]["x-method"] not in unstable:
            del merged[name]
    for allowed in unstable:
        for name, field in UNSTABLE[allowed]:
            fields = merged[name]["properties"] | {field: newer[name]["properties"][field]}
            merged[name] = merged[name] | {"properties": fields}
    merged["SessionUpdate"] = stable["SessionUpdate"] | {
        "oneOf": [
            *stable["SessionUpdate"]["oneOf"],
            *(each for each in newer["SessionUpdate"]["oneOf"] if _kind(each) in unstable),
        ]
    }
    return Book(merged)


@cache
def _definitions(file: str) -> dict[str, Schema]:
    found: dict[str, Schema] = json.loads((SCHEMAS / file).read_bytes())["$defs"]
    return found


def _kind(variant: Schema) -> str:
    return str(variant["properties"]["sessionUpdate"]["const"])


def _tagged(
    validator: Any, tagged: Schema, value: Any, schema: Schema
) -> Iterator[jsonschema.ValidationError]:
    """The variant that the value claims to be, and only that."""
    if not validator.is_type(value, "object"):
        return
    word = value.get(tagged["by"])
    variant = tagged["variants"].get(word) if isinstance(word, str) else None
    if variant is None:
        yield jsonschema.ValidationError(f"{tagged['by']} is {word!r}, not one of {list(tagged['variants'])}")
    else:
        yield from validator.descend(value, variant)


Tagged = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"tagged": _tagged})  # type: ignore[no-untyped-call]


def _told(error: jsonschema.ValidationError) -> Iterator[str]:
    """Where and what; of a union that failed, what each branch missed."""
    place = "/".join(map(str, error.absolute_path)) or "."
    if error.context:
        missed = " | ".join(dict.fromkeys(_leaves(error)))
        yield f"{place}: no way fits: {missed}"
    else:
        yield f"{place}: {error.message[:MAX_SHOWN]}"


def _leaves(error: jsonschema.ValidationError) -> Iterator[str]:
    for inner in error.context:
        if inner.context:
            yield from _leaves(inner)
        else:
            yield inner.message[:MAX_SHOWN]


def _strangers(message: Message, known: Collection[str]) -> Iterator[str]:
    for field in message:
        if field not in known:
            yield f"the field {field} is not JSON-RPC's"


def _other(side: Side) -> Side:
    return "client" if side == "agent" else "agent"


def _side(word: str) -> Side:
    return "agent" if word == "agent" else "client"


def _key(request_id: Any) -> tuple[str, str]:
    """Ids of different types are different; whatever a rough test sends can be one."""
    return type(request_id).__name__, str(request_id)
