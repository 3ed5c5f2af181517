"""Splits and joins JSON of other programs without changing the bytes of the parts that stay.

Pure. An entry that is not changed keeps its bytes: unknown keys, their order, the form of its
numbers. msgspec does the work; the standard library takes over where msgspec is stricter than JavaScript
(half of a surrogate pair, which Claude Code writes when it cuts a text in the wrong place).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

import msgspec

BOM = b"\xef\xbb\xbf"
ODD = "surrogateescape"
"""The error handler that keeps bytes that are not UTF-8 as they are."""
ENTRY_START = b"\n  {"
"""How an entry begins in an array as all three programs write it (see `array`)."""
TAIL_SLACK = 2
"""A factor on the mean size: entries at the end may be longer than the others."""
_items = msgspec.json.Decoder(list[msgspec.Raw])
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SPACE = re.compile(r"[ \t\r\n]*")
_FAILURES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class NotJson(ValueError):
    """Not the JSON that was expected. The text says what is wrong, for people."""


def items(data: bytes) -> list[bytes]:
    """The entries of an array, each as its bytes. An empty file is an empty array."""
    data = data.removeprefix(BOM)
    if not data.strip():
        return []
    try:
        return [bytes(item) for item in _items.decode(data)]
    except _FAILURES:
        return [value.encode("utf-8", ODD) for value in _walk(data, "[]", _item)]


def last_items(data: bytes, min_count: int, of_all: int) -> list[bytes]:
    """At least the last `min_count` entries of an array that msgspec has read before, if it has that many.

    New mail is at the end of a long inbox, and most of the time the rest is not needed.
    """
    guess = TAIL_SLACK * min_count * (len(data) // of_all + 1)
    start = data.find(ENTRY_START, len(data) - guess) if guess < len(data) else -1
    if start >= 0:
        # JSON strings hold no raw line breaks, and with one more bracket in front the rest of the array
        # decodes only if it starts between two of its entries: a wrong start fails.
        try:
            tail = _items.decode(b"[" + data[start:])
        except _FAILURES:
            tail = []
        if len(tail) >= min_count:
            return [bytes(item) for item in tail]
    return items(data)


def fields(data: bytes) -> dict[str, bytes]:
    """The members of an object, each value as its bytes; of two with one name the last."""
    data = data.removeprefix(BOM)
    try:
        return {name: bytes(value) for name, value in _fields.decode(data).items()}
    except _FAILURES:
        return {name: value.encode("utf-8", ODD) for name, value in _walk(data, "{}", _member)}


def value(data: bytes) -> Any:
    """The decoded value. Half surrogate pairs and bytes that are not UTF-8 become U+FFFD, as elsewhere."""
    try:
        return msgspec.json.decode(data)
    except _FAILURES:
        try:
            return _mended(_loads(data))
        except RecursionError:
            raise NotJson("it is nested too deeply") from None


def array(entries: Iterable[bytes], depth: int = 0) -> bytes:
    """An array nested `depth` levels deep, two spaces for each level, as Claude Code and ATM write it."""
    pad = b"\n" + b"  " * (depth + 1)
    inside = (b"," + pad).join(entries)
    return b"[" + pad + inside + b"\n" + b"  " * depth + b"]" if inside else b"[]"


def object_of(members: Mapping[str, bytes], depth: int = 0) -> bytes:
    """An object nested `depth` levels deep."""
    if not members:
        return b"{}"
    pad = b"\n" + b"  " * (depth + 1)
    inside = (b"," + pad).join(_encode_name(name) + b": " + encoded for name, encoded in members.items())
    return b"{" + pad + inside + b"\n" + b"  " * depth + b"}"


def pretty(thing: Any, depth: int = 0) -> bytes:
    """A value encoded as it looks nested `depth` levels deep."""
    encoded = msgspec.json.format(msgspec.json.encode(thing), indent=2)
    return encoded.replace(b"\n", b"\n" + b"  " * depth)  # strings hold no raw line breaks


def _encode_name(name: str) -> bytes:
    try:
        return msgspec.json.encode(name)
    except UnicodeEncodeError:
        return json.dumps(name).encode()


# ── where msgspec is too strict ────────────────────────────────────────────


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_python = json.JSONDecoder(parse_constant=_refuse)


def _walk(data: bytes, brackets: str, step: Callable[[str, int], tuple[Any, int]]) -> list[Any]:
    text = data.decode("utf-8", ODD)
    try:
        parts, at = [], _after(text, 0, brackets[0])
        at = _skip(text, at)
        if text[at : at + 1] == brackets[1]:
            return _ended(text, at + 1, [])
        while True:
            part, at = step(text, at)
            parts.append(part)
            at = _skip(text, at)
            if text[at : at + 1] != ",":
                return _ended(text, _after(text, at, brackets[1]), parts)
            at += 1
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError as problem:
        raise NotJson(str(problem)) from None


def _item(text: str, at: int) -> tuple[str, int]:
    start = _skip(text, at)
    _, end = _python.raw_decode(text, start)
    return text[start:end], end


def _member(text: str, at: int) -> tuple[tuple[str, str], int]:
    name, at = _python.raw_decode(text, _skip(text, at))
    if not isinstance(name, str):
        raise ValueError("a name was expected")
    encoded, end = _item(text, _after(text, at, ":"))
    return (name, encoded), end


def _after(text: str, at: int, mark: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != mark:
        raise ValueError(f"{mark} was expected at character {at}")
    return at + 1


def _ended(text: str, at: int, parts: list[Any]) -> list[Any]:
    if _skip(text, at) != len(text):
        raise ValueError(f"it goes on behind its end, at character {at}")
    return parts


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _loads(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8", "replace"), parse_constant=_refuse)
    except ValueError as problem:
        raise NotJson(str(problem)) from None


def _mended(thing: Any) -> Any:
    """Without halves of surrogate pairs: they could not be written, logged or sent."""
    match thing:
        case str():
            return thing.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_mended(each) for each in thing]
        case dict():
            return {_mended(name): _mended(each) for name, each in thing.items()}
        case _:
            return thing
