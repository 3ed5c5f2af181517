"""Kinds of setting values: which values are valid, how they are described, how a variable spells them.

A kind takes a TOML value and returns the setting's value, or raises a bare `ValueError`: its text is
`expected`. Knows no key, no file, no source. Only the settings use it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

import msgspec

from laneway.base.plain import code_label, is_plain_code

T = TypeVar("T")

MAX_TEXT_CHARS = 4096
"""No model name, path or token is longer; a longer one is a mistake that should not reach a log."""
MAX_SHOWN_BITS = 128
IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
LANE = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
MODULE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
TEAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names become file names, so they are never paths: no separator, no leading dot."""
BOOLEANS = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


class PathBase(msgspec.Struct, frozen=True):
    """The folders that paths are relative to."""

    home: Path
    folder: Path | None = None
    """The folder of the file that names the path; none for flags and variables: relative to the cwd."""


class Kind(Generic[T]):
    """One kind of value, with its check and its description."""

    def __init__(
        self,
        expected: str,
        take: Callable[[object, PathBase], T],
        spell: Callable[[str], object] = str,
        *,
        label: str,
    ) -> None:
        self.expected = expected
        """Completes the sentence "must be …"."""
        self.label = label
        """For the column of a table."""
        self.take = take
        self.spell = spell
        """Converts the text of a variable into a TOML value."""

    def accepts(self, value: object) -> bool:
        """Whether a value that does not depend on a folder is valid."""
        try:
            self.take(value, PathBase(Path()))
        except ValueError:
            return False
        return True


def text(label: str = "text") -> Kind[str]:
    return Kind("a text of one line that is not empty", _line, label=label)


def named(pattern: re.Pattern[str], expected: str) -> Kind[str]:
    def take(value: object, base: PathBase) -> str:
        return value if isinstance(value, str) and pattern.fullmatch(value) else _reject()

    return Kind(expected, take, label="name")


def choice(*words: str, once: Mapping[str, str] | None = None) -> Kind[str]:
    """One of some words; `once` maps words of the past to today's."""
    old = once or {}

    def take(value: object, base: PathBase) -> str:
        if not isinstance(value, str):
            _reject()
        current = old.get(value, value)
        return current if current in words else _reject()

    return Kind(f"one of {', '.join(words)}", take, label=" · ".join(f"`{word}`" for word in words))


def whole(least: int, most: int) -> Kind[int]:
    def take(value: object, base: PathBase) -> int:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return int(value) if fits else _reject()  # type: ignore[call-overload, no-any-return]

    def spell(text: str) -> object:
        # Only plain digits: Python's int() would also take "1_000" and digits of other scripts.
        return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text

    return Kind(f"a whole number from {least} to {most}", take, spell, label="whole number")


def switch() -> Kind[bool]:
    def take(value: object, base: PathBase) -> bool:
        return value if isinstance(value, bool) else _reject()

    return Kind("true or false", take, lambda text: BOOLEANS.get(text.lower(), text), label="true or false")


def several(kind: Kind[str], expected: str, label: str) -> Kind[tuple[str, ...]]:
    """A list."""

    def take(value: object, base: PathBase) -> tuple[str, ...]:
        if not isinstance(value, (list, tuple)):
            _reject()
        return tuple(kind.take(item, base) for item in value)

    def spell(text: str) -> object:
        return [piece.strip() for piece in text.split(",") if piece.strip()]

    return Kind(expected, take, spell, label=label)


def user_ids() -> Kind[tuple[str, ...]]:
    """Numeric ids of people or chats, as texts: a service's ids are no numbers to count with."""

    def take_one(value: object, base: PathBase) -> str:
        text = str(value) if isinstance(value, (int, str)) and not isinstance(value, bool) else ""
        return text if re.fullmatch(r"-?[0-9]{1,20}", text) else _reject()

    return several(Kind("a numeric id", take_one, label="id"), "a list of numeric ids", "list of ids")


def path(expected: str = "the path of a file") -> Kind[Path]:
    def take(value: object, base: PathBase) -> Path:
        return _resolved(value if isinstance(value, Path) else Path(_line(value, base)), base)

    return Kind(expected, take, label="path")


def program() -> Kind[str]:
    """A path, or a bare name that is looked up on PATH."""

    def take(value: object, base: PathBase) -> str:
        text = str(value) if isinstance(value, Path) else _line(value, base)
        return str(_resolved(Path(text), base)) if "/" in text else text

    return Kind("the path or the name of a program", take, label="program")


def _resolved(value: Path, base: PathBase) -> Path:
    if value.parts[:1] == ("~",):
        return base.home.joinpath(*value.parts[1:])
    return value if base.folder is None else base.folder / value


def _line(value: object, base: PathBase) -> str:
    """A text that can be value_text, sent and logged as it is: no control characters, nothing invisible."""
    fits = isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= MAX_TEXT_CHARS
    return str(value) if fits else _reject()


def _reject() -> NoReturn:
    raise ValueError


def to_text(value: object) -> str:
    """A value for people. Control characters are spelt out: a file must not drive a terminal."""
    match value:
        case None:
            return "(not set)"
        case bool():
            return "true" if value else "false"
        case str() | Path():
            text = str(value)
            return text if is_plain_code(text) else f"'{code_label(text, MAX_TEXT_CHARS)}'"
        case int() if value.bit_length() > MAX_SHOWN_BITS:
            return "a huge number"  # Python refuses to convert it
        case list() | tuple():
            return ", ".join(to_text(item) for item in value) or "(none)"
        case dict():
            return f"a table of {len(value)}"
        case _:
            return str(value)


def jsonable(value: object) -> Any:
    """A value for programs, as JSON can represent it."""
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
