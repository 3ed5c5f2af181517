"""Edits in the text of a JSON file, comments and trailing commas included: all else stays, byte for byte.

Pure. Meant for text that parses; whoever calls compares what the text says before and after
(`laneway.cli.clients.edit` does), so a mistake here is refused and never written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from laneway.cli.registrations import blank_comments

Keys = tuple[str, ...]

STEP = "  "
"""The indentation of a file that shows none of its own."""

_STRING = r'"(?:\\.|[^"\\])*+"'
_PIECE = re.compile(rf"{_STRING}|[\[{{]|[\]}}]|[^\"\[\]{{}}]++", re.DOTALL)
_SCALAR = re.compile(rf"{_STRING}|[^\s,\]}}]++", re.DOTALL)
_SPACE = re.compile(r"[\s,:]*+")
_KEY = re.compile(_STRING, re.DOTALL)


class Member(NamedTuple):
    """One `"key": value` of an object, or one value of an array, by its places in the text."""

    key: str
    begin: int
    """Of the key; of the value in an array."""
    start: int
    """Of the value."""
    end: int


class Place(NamedTuple):
    start: int
    end: int


def put(text: str, keys: Keys, value: Any) -> str:
    """The text with `value` at `keys`; objects on the way are made. Raises `ValueError` if it cannot be."""
    bare = blank_comments(text)
    place = _root(bare)
    for depth, key in enumerate(keys):
        found = _member(bare, place, key)
        if found is None:
            for name in reversed(keys[depth + 1 :]):
                value = {name: value}
            return _insert(text, bare, place, key, value)
        place = Place(found.start, found.end)
    return _replace(text, bare, place, value)


def drop(text: str, keys: Keys) -> str:
    """The text without what is at `keys`. Raises `ValueError` if nothing is."""
    bare = blank_comments(text)
    place = _root(bare)
    for key in keys[:-1]:
        place = _inside(bare, place, key)
    if _member(bare, place, keys[-1]) is None:
        raise ValueError(f"it has no {keys[-1]!r}")
    return _remove(text, bare, place, keys[-1])


# ── places ─────────────────────────────────────────────────────────────────


def _root(bare: str) -> Place:
    start = len(bare) - len(bare.lstrip())
    return Place(start, len(bare.rstrip()))


def _inside(bare: str, place: Place, key: str) -> Place:
    found = _member(bare, place, key)
    if found is None:
        raise ValueError(f"it has no {key!r}")
    return Place(found.start, found.end)


def _member(bare: str, place: Place, key: str) -> Member | None:
    if bare[place.start : place.start + 1] != "{":
        raise ValueError(f"there is no object where {key!r} should be")
    found = [member for member in _members(bare, place) if member.key == key]
    if len(found) > 1:
        # Which of them counts is each client's own business.
        raise ValueError(f"the key {key!r} is there twice")
    return found[0] if found else None


def _members(bare: str, place: Place) -> Iterator[Member]:
    """What an object or an array holds, in order."""
    is_object = bare[place.start] == "{"
    at = _skip(_SPACE, bare, place.start + 1)
    while at < place.end - 1:
        begin, key = at, ""
        if is_object:
            found = _KEY.match(bare, at)
            if found is None:
                raise ValueError("it has a key that is no text")
            key = json.loads(found[0], strict=False)
            at = _skip(_SPACE, bare, found.end())
        end = _value_end(bare, at)
        yield Member(key, begin, at, end)
        at = _skip(_SPACE, bare, end)


def _value_end(bare: str, at: int) -> int:
    if bare[at : at + 1] not in ("{", "["):
        end = _skip(_SCALAR, bare, at)
        if end == at:
            raise ValueError("it has a value that cannot be read")
        return end
    depth = 0
    while (piece := _PIECE.match(bare, at)) is not None:
        at = piece.end()
        depth += (piece[0] in "[{") - (piece[0] in "]}")
        if depth == 0:
            return at
    raise ValueError("it has brackets that are never closed")


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


# ── edits ──────────────────────────────────────────────────────────────────


def _replace(text: str, bare: str, place: Place, value: Any) -> str:
    old = list(_members(bare, place)) if isinstance(value, list) and bare[place.start] == "[" else []
    if old and len(old) == len(value):  # word by word, so that comments between them stay
        for member, item in zip(reversed(old), reversed(value), strict=True):
            if json.loads(bare[member.start : member.end], strict=False) != item:
                text = text[: member.start] + _spell(item) + text[member.end :]
        return text
    is_compact = bare[place.start] in "[{" and "\n" not in bare[place.start : place.end]
    told = _spell(value) if is_compact else _laid_out(value, text, _indent_at(bare, place.start))
    return text[: place.start] + told + text[place.end :]


def _insert(text: str, bare: str, place: Place, key: str, value: Any) -> str:
    members = list(_members(bare, place))
    inside = bare[place.start : place.end]
    if "\n" not in inside and (members or "\n" not in bare.strip() != inside):
        member = f"{_spell(key)}: {_spell(value)}"
        at = members[-1].end if members else place.start + 1
        return text[:at] + (", " if members else "") + member + text[at:]
    newline, outer = _newline(text), _indent_at(bare, place.start)
    indent = _indent_at(bare, members[0].begin) if members else outer + _step(text)
    member = f"{newline}{indent}{_spell(key)}: {_laid_out(value, text, indent)}"
    end = len(text[: place.end - 1].rstrip())  # behind the last member, and behind what is said of it
    closing = text[end : place.end - 1]
    closing = closing if "\n" in closing else newline + outer
    last = members[-1].end if members else end
    has_comma = "," in bare[last : place.end - 1]
    first, after = ("" if has_comma or not members else ","), ("," if has_comma else "")
    return text[:last] + first + text[last:end] + member + after + closing + text[place.end - 1 :]


def _remove(text: str, bare: str, place: Place, key: str) -> str:
    members = list(_members(bare, place))
    at = next(index for index, member in enumerate(members) if member.key == key)
    begin, end = members[at].begin, members[at].end
    is_last = at + 1 == len(members)
    comma = bare.find(",", end, place.end - 1 if is_last else members[at + 1].begin)
    before = bare.rfind(",", members[at - 1].end, begin) if at else -1
    if comma >= 0:
        end = comma + 1
    line, line_end = _line_start(bare, begin), bare.find("\n", end)
    if bare[line:begin].strip() == "" and line_end >= 0 and bare[end:line_end].strip() == "":
        # Whole lines, with what is said of it behind.
        text = text[:line] + text[line_end + 1 :]
    elif is_last:
        text = text[:begin].rstrip(" ") + text[end:]
    else:
        text = text[:begin] + text[end:].lstrip(" ")
    if comma < 0 and before >= 0:  # it was the last one, so the comma before it goes too
        text = text[:before] + text[before + 1 :]
    return text


# ── how it looks ───────────────────────────────────────────────────────────


def _spell(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _laid_out(value: Any, text: str, indent: str) -> str:
    """Objects over several lines, lists of words on one."""
    if not isinstance(value, dict) or not value:
        return _spell(value)
    inner = indent + _step(text)
    newline = _newline(text)
    lines = [f"{inner}{_spell(key)}: {_laid_out(each, text, inner)}" for key, each in value.items()]
    return f"{{{newline}{f',{newline}'.join(lines)}{newline}{indent}}}"


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _step(text: str) -> str:
    """What the file's own first indented line begins with."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found and found[1] in ("\t", " ", "  ", "   ", "    ", "        ") else STEP


def _indent_at(bare: str, at: int) -> str:
    begin = _line_start(bare, at)
    line = bare[begin:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1
