"""Edits the text of a TOML file: comments, order and layout stay, byte for byte.

Pure. Knows the three ways to set a key (under a header, dotted, in an inline table). As with
JSON, the caller compares the parsed text before and after.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from laneway.base.toml_lines import BLANK, PIECE, Keys, dotted
from laneway.cli.clients.text_scan import end_of_brackets, skip

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_SCALAR = re.compile(r"[^\s,\]}#]++(?:[ T][0-9:.+-]+)?+")
_BETWEEN = re.compile(r"(?:[ \t\r\n,]|#[^\n]*+)*+")


class Statement(NamedTuple):
    """A header, or `key = value`, by its offsets in the text."""

    keys: Keys
    """From the root of the file."""
    begin: int
    start: int
    """Start of the value; of a header, its end."""
    end: int
    is_header: bool


def put(text: str, keys: Keys, value: Any) -> str:
    """The text with `value` at `keys`. Raises `ValueError` if that fails."""
    all_statements = list(statements(text))
    exact = [statement for statement in all_statements if statement.keys == keys and not statement.is_header]
    if exact:
        return text[: exact[0].start] + spell(value) + text[exact[0].end :]
    if isinstance(value, dict):
        if any(statement.keys[: len(keys)] == keys for statement in all_statements):
            for name, inner in value.items():
                text = put(text, (*keys, name), inner)
            return text
        return _append(text, keys, value)
    return _insert(text, all_statements, keys, value)


def drop(text: str, keys: Keys) -> str:
    """The text without the value at `keys` and all tables below it."""
    all_statements = list(statements(text))
    doomed = [statement for statement in all_statements if statement.keys[: len(keys)] == keys]
    if not doomed:
        raise ValueError(f"it has no {keys[-1]!r}")
    outer = [
        statement
        for statement in doomed
        if not any(other is not statement and other.start <= statement.begin < other.end for other in doomed)
    ]
    for statement in reversed(outer):
        inside = _inline_around(all_statements, statement)
        if inside is not None:
            text = _cut_from_inline(text, inside, statement)
            continue
        end = text.find("\n", statement.end)
        end = len(text) if end < 0 else end + 1
        begin = text.rfind("\n", 0, statement.begin) + 1
        if statement.is_header:  # with the blank lines before it
            before = text[:begin].rstrip(" \t\r\n")
            begin = text.index("\n", len(before)) + 1 if before else 0
        text = text[:begin] + text[end:]
    return text


# ── offsets ────────────────────────────────────────────────────────────────


def statements(text: str) -> Iterator[Statement]:
    """Every header and key of a text in order, including those of inline tables."""
    table: Keys = ()
    at = 0
    while True:
        at = skip(BLANK, text, at)
        if at >= len(text):
            return
        opening = len(text[at : at + 2]) - len(text[at : at + 2].lstrip("["))
        keys, after = dotted(text, at + opening)
        if not keys:
            raise ValueError("it has a line that cannot be read")
        if opening:
            end = text.index("]" * opening, after) + opening
            table = keys
            yield Statement(keys, at, end, end, is_header=True)
            at = end
        else:
            start = _value_start(text, after)
            end = _value_end(text, start)
            keys = (*table, *keys)
            yield Statement(keys, at, start, end, is_header=False)
            yield from _inline(text, keys, start, end)
            at = end


def _inline(text: str, outer: Keys, start: int, end: int) -> Iterator[Statement]:
    if text[start] != "{":
        return
    at = skip(_BETWEEN, text, start + 1)
    while at < end - 1:
        keys, after = dotted(text, at)
        if not keys:
            raise ValueError("it has an inline table that cannot be read")
        inner = _value_start(text, after)
        inner_end = _value_end(text, inner)
        yield Statement((*outer, *keys), at, inner, inner_end, is_header=False)
        yield from _inline(text, (*outer, *keys), inner, inner_end)
        at = skip(_BETWEEN, text, inner_end)


def _value_start(text: str, at: int) -> int:
    if text[at : at + 1] != "=":
        raise ValueError("it has a key without a value")
    at += 1
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def _value_end(text: str, at: int) -> int:
    first = text[at : at + 1]
    if first not in ("{", "[", '"', "'"):
        return skip(_SCALAR, text, at)
    return end_of_brackets(PIECE, text, at)


def _inline_around(all_statements: list[Statement], inner: Statement) -> Statement | None:
    around = [
        statement
        for statement in all_statements
        if not statement.is_header
        and statement is not inner
        and statement.start <= inner.begin < statement.end
    ]
    return around[-1] if around else None


# ── edits ──────────────────────────────────────────────────────────────────


def _append(text: str, keys: Keys, value: dict[str, Any]) -> str:
    """Add a table of its own at the end, where it cannot be inside another."""
    newline = _newline(text)
    lines = [f"[{'.'.join(_key(part) for part in keys)}]"]
    lines += [f"{_key(name)} = {spell(item)}" for name, item in value.items()]
    head = text.rstrip()
    return (head + newline * 2 if head else "") + newline.join(lines) + newline


def _insert(text: str, all_statements: list[Statement], keys: Keys, value: Any) -> str:
    """Add a new key after the last one of its table."""
    outer = keys[:-1]
    for statement in reversed(all_statements):
        if (
            statement.keys == outer
            and text[statement.start : statement.start + 1] == "{"
            and not statement.is_header
        ):
            inside = text[statement.start + 1 : statement.end - 1].rstrip()
            at = statement.start + 1 + len(inside)
            comma = ", " if inside.strip() else " "
            return f"{text[:at]}{comma}{_key(keys[-1])} = {spell(value)}{text[at:]}"
    for statement in reversed(all_statements):
        if statement.keys == outer and statement.is_header:
            prefix, last = "", _last_under(all_statements, statement)
            break
    else:
        if not any(statement.keys[: len(outer)] == outer for statement in all_statements):
            raise ValueError(f"it has no table for {keys[-1]!r}")
        own = _dotted_into(all_statements, outer)
        if not own:  # only tables inside it have headers: then it can have one as well
            return _append(text, outer, {keys[-1]: value})
        header, last = own[-1]
        prefix = "".join(f"{_key(part)}." for part in outer[len(header) :])
    end = text.find("\n", last.end)
    newline = _newline(text)
    if end < 0:
        return f"{text}{newline}{prefix}{_key(keys[-1])} = {spell(value)}{newline}"
    return f"{text[: end + 1]}{prefix}{_key(keys[-1])} = {spell(value)}{newline}{text[end + 1 :]}"


def _dotted_into(all_statements: list[Statement], outer: Keys) -> list[tuple[Keys, Statement]]:
    """Dotted keys that set values of a table from outside it, each with the header it is under."""
    header: Keys = ()
    own = []
    for statement in all_statements:
        if statement.is_header:
            header = statement.keys
        elif statement.keys[: len(outer)] == outer and len(header) < len(outer):
            own.append((header, statement))
    return own


def _last_under(all_statements: list[Statement], header: Statement) -> Statement:
    """The last key under this header, before the next one; the header if there is none."""
    at = all_statements.index(header)
    last = header
    for statement in all_statements[at + 1 :]:
        if statement.is_header:
            break
        last = statement
    return last


def _cut_from_inline(text: str, around: Statement, doomed: Statement) -> str:
    after = re.compile(r"[ \t]*,[ \t]*").match(text, doomed.end)
    if after is not None and after.end() < around.end:
        return text[: doomed.begin] + text[after.end() :]
    before = text[: doomed.begin].rstrip(" \t")
    return before.removesuffix(",") + text[doomed.end :]


# ── layout ─────────────────────────────────────────────────────────────────


def spell(value: Any) -> str:
    """A value as TOML: strings, booleans, numbers, lists and tables of them."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            # JSON's escapes are also TOML's, except beyond 16 bits, which stay as they are, and for DEL.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(spell(each) for each in value)}]"
        case dict():
            inside = ", ".join(f"{_key(str(name))} = {spell(each)}" for name, each in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case _:
            raise ValueError(f"it cannot hold a {type(value).__name__}")


def _key(part: str) -> str:
    return part if _BARE.match(part) else spell(part)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
