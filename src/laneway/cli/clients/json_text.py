"""Edits the text of a JSON file with comments and trailing commas: all else stays, byte for byte.

Pure. Meant for text that parses. The caller (`laneway.cli.clients.edit`) compares the parsed text
before and after, so that a mistake here is refused and never written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from laneway.cli.clients.text_scan import end_of_brackets, skip
from laneway.cli.registrations import blank_comments

Keys = tuple[str, ...]

STEP = "  "
"""The indentation for a file that has none of its own."""

_STRING = r'"(?:\\.|[^"\\])*+"'
_PIECE = re.compile(rf"{_STRING}|[\[{{]|[\]}}]|[^\"\[\]{{}}]++", re.DOTALL)
_SCALAR = re.compile(rf"{_STRING}|[^\s,\]}}]++", re.DOTALL)
_SPACE = re.compile(r"[\s,:]*+")
_KEY = re.compile(_STRING, re.DOTALL)


class JsonMember(NamedTuple):
    """One `"key": value` of an object, or one value of an array, by its offsets in the text."""

    key: str
    begin: int
    """Start of the key; in an array, of the value."""
    start: int
    """Start of the value."""
    end: int


class JsonSpan(NamedTuple):
    """One value, by its offsets in the text."""

    start: int
    end: int


def put(text: str, keys: Keys, value: Any) -> str:
    """The text with `value` at `keys`; missing objects are created. Raises `ValueError` if that fails."""
    bare = blank_comments(text)
    span = _root(bare)
    for depth, key in enumerate(keys):
        member = _member(bare, span, key)
        if member is None:
            for name in reversed(keys[depth + 1 :]):
                value = {name: value}
            return _insert(text, bare, span, key, value)
        span = JsonSpan(member.start, member.end)
    return _replace(text, bare, span, value)


def drop(text: str, keys: Keys) -> str:
    """The text without the value at `keys`. Raises `ValueError` if there is none."""
    bare = blank_comments(text)
    span = _root(bare)
    for key in keys[:-1]:
        span = _inside(bare, span, key)
    if _member(bare, span, keys[-1]) is None:
        raise ValueError(f"it has no {keys[-1]!r}")
    return _remove(text, bare, span, keys[-1])


# ── offsets ────────────────────────────────────────────────────────────────


def _root(bare: str) -> JsonSpan:
    start = len(bare) - len(bare.lstrip())
    return JsonSpan(start, len(bare.rstrip()))


def _inside(bare: str, span: JsonSpan, key: str) -> JsonSpan:
    member = _member(bare, span, key)
    if member is None:
        raise ValueError(f"it has no {key!r}")
    return JsonSpan(member.start, member.end)


def _member(bare: str, span: JsonSpan, key: str) -> JsonMember | None:
    if bare[span.start : span.start + 1] != "{":
        raise ValueError(f"there is no object where {key!r} should be")
    members = [member for member in _members(bare, span) if member.key == key]
    if len(members) > 1:
        # Clients differ in which of them counts.
        raise ValueError(f"the key {key!r} is there twice")
    return members[0] if members else None


def _members(bare: str, span: JsonSpan) -> Iterator[JsonMember]:
    """The members of an object or an array, in order."""
    is_object = bare[span.start] == "{"
    at = skip(_SPACE, bare, span.start + 1)
    while at < span.end - 1:
        begin, key = at, ""
        if is_object:
            match = _KEY.match(bare, at)
            if match is None:
                raise ValueError("it has a key that is no text")
            key = json.loads(match[0], strict=False)
            at = skip(_SPACE, bare, match.end())
        end = _value_end(bare, at)
        yield JsonMember(key, begin, at, end)
        at = skip(_SPACE, bare, end)


def _value_end(bare: str, at: int) -> int:
    if bare[at : at + 1] not in ("{", "["):
        end = skip(_SCALAR, bare, at)
        if end == at:
            raise ValueError("it has a value that cannot be read")
        return end
    return end_of_brackets(_PIECE, bare, at)


# ── edits ──────────────────────────────────────────────────────────────────


def _replace(text: str, bare: str, span: JsonSpan, value: Any) -> str:
    old = list(_members(bare, span)) if isinstance(value, list) and bare[span.start] == "[" else []
    if old and len(old) == len(value):  # word by word, so that comments between them stay
        for member, item in zip(reversed(old), reversed(value), strict=True):
            if json.loads(bare[member.start : member.end], strict=False) != item:
                text = text[: member.start] + _spell(item) + text[member.end :]
        return text
    is_compact = bare[span.start] in "[{" and "\n" not in bare[span.start : span.end]
    new = _spell(value) if is_compact else _laid_out(value, text, _indent_at(bare, span.start))
    return text[: span.start] + new + text[span.end :]


def _insert(text: str, bare: str, span: JsonSpan, key: str, value: Any) -> str:
    members = list(_members(bare, span))
    inside = bare[span.start : span.end]
    if "\n" not in inside and (members or "\n" not in bare.strip() != inside):
        member = f"{_spell(key)}: {_spell(value)}"
        at = members[-1].end if members else span.start + 1
        return text[:at] + (", " if members else "") + member + text[at:]
    newline, outer = _newline(text), _indent_at(bare, span.start)
    indent = _indent_at(bare, members[0].begin) if members else outer + _step(text)
    member = f"{newline}{indent}{_spell(key)}: {_laid_out(value, text, indent)}"
    end = len(text[: span.end - 1].rstrip())  # after the last member and its comment
    closing = text[end : span.end - 1]
    closing = closing if "\n" in closing else newline + outer
    last = members[-1].end if members else end
    has_comma = "," in bare[last : span.end - 1]
    first, after = ("" if has_comma or not members else ","), ("," if has_comma else "")
    return text[:last] + first + text[last:end] + member + after + closing + text[span.end - 1 :]


def _remove(text: str, bare: str, span: JsonSpan, key: str) -> str:
    members = list(_members(bare, span))
    at = next(index for index, member in enumerate(members) if member.key == key)
    begin, end = members[at].begin, members[at].end
    is_last = at + 1 == len(members)
    comma = bare.find(",", end, span.end - 1 if is_last else members[at + 1].begin)
    before = bare.rfind(",", members[at - 1].end, begin) if at else -1
    if comma >= 0:
        end = comma + 1
    line, line_end = _line_start(bare, begin), bare.find("\n", end)
    if bare[line:begin].strip() == "" and line_end >= 0 and bare[end:line_end].strip() == "":
        # Whole lines, with a comment at their end.
        text = text[:line] + text[line_end + 1 :]
    elif is_last:
        text = text[:begin].rstrip(" ") + text[end:]
    else:
        text = text[:begin] + text[end:].lstrip(" ")
    if comma < 0 and before >= 0:  # it was the last one, so the comma before it goes too
        text = text[:before] + text[before + 1 :]
    return text


# ── layout ─────────────────────────────────────────────────────────────────


def _spell(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _laid_out(value: Any, text: str, indent: str) -> str:
    """Objects over several lines, lists on one."""
    if not isinstance(value, dict) or not value:
        return _spell(value)
    inner = indent + _step(text)
    newline = _newline(text)
    lines = [f"{inner}{_spell(key)}: {_laid_out(item, text, inner)}" for key, item in value.items()]
    return f"{{{newline}{f',{newline}'.join(lines)}{newline}{indent}}}"


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _step(text: str) -> str:
    """The indentation of the file's first indented line."""
    match = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return match[1] if match and match[1] in ("\t", " ", "  ", "   ", "    ", "        ") else STEP


def _indent_at(bare: str, at: int) -> str:
    begin = _line_start(bare, at)
    line = bare[begin:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1
