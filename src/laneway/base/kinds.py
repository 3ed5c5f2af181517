"""The kinds of values a setting can have: what fits, how it is said, how a variable spells it.

A kind takes what TOML gave and returns the value, or raises `ValueError` without a word:
`expected` is the word. Knows no key, no file, no source. Only the settings use it.
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
"""No model name, path or token is longer; what is, is a mistake that should not reach a log."""
MAX_SHOWN_BITS = 128
IDENTITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
TEAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names become file names, so they are never paths: no separator, no leading dot."""
SPOKEN = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


class Place(msgspec.Struct, frozen=True):
    """What a relative path is relative to."""

    home: Path
    folder: Path | None = None
    """The folder of the file that names the path; none for flags and variables, which mean the shell's."""


class Kind(Generic[T]):
    def __init__(
        self,
        expected: str,
        take: Callable[[object, Place], T],
        spell: Callable[[str], object] = str,
        *,
        label: str,
    ) -> None:
        self.expected = expected
        """Goes behind "must be"."""
        self.label = label
        """For the column of a table."""
        self.take = take
        self.spell = spell
        """The text of a variable as TOML would have given it."""


def text(label: str = "text") -> Kind[str]:
    return Kind("a text of one line that is not empty", _line, label=label)


def named(pattern: re.Pattern[str], expected: str) -> Kind[str]:
    def take(value: object, place: Place) -> str:
        return value if isinstance(value, str) and pattern.fullmatch(value) else _unfit()

    return Kind(expected, take, label="name")


def choice(*words: str, once: Mapping[str, str] | None = None) -> Kind[str]:
    """One of some words; `once` maps words that were right in the past to today's."""
    old = once or {}

    def take(value: object, place: Place) -> str:
        if not isinstance(value, str):
            _unfit()
        today = old.get(value, value)
        return today if today in words else _unfit()

    return Kind(f"one of {', '.join(words)}", take, label=" · ".join(f"`{word}`" for word in words))


def whole(least: int, most: int) -> Kind[int]:
    def take(value: object, place: Place) -> int:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return int(value) if fits else _unfit()  # type: ignore[call-overload, no-any-return]

    def spell(said: str) -> object:
        # Only plain digits: Python's int() would also take "1_000" and digits of other scripts.
        return int(said) if re.fullmatch(r"-?[0-9]{1,18}", said) else said

    return Kind(f"a whole number from {least} to {most}", take, spell, label="whole number")


def switch() -> Kind[bool]:
    def take(value: object, place: Place) -> bool:
        return value if isinstance(value, bool) else _unfit()

    return Kind("true or false", take, lambda said: SPOKEN.get(said.lower(), said), label="true or false")


def several(
    kind: Kind[str], expected: str, label: str, skipped: tuple[str, ...] = ()
) -> Kind[tuple[str, ...]]:
    """A list; words that are `skipped` are left out, but are not all that may be in it."""

    def take(value: object, place: Place) -> tuple[str, ...]:
        if not isinstance(value, (list, tuple)):
            _unfit()
        kept = tuple(kind.take(item, place) for item in value if item not in skipped)
        return kept if kept or not value else _unfit()

    def spell(said: str) -> object:
        return [piece.strip() for piece in said.split(",") if piece.strip()]

    return Kind(expected, take, spell, label=label)


def path() -> Kind[Path]:
    def take(value: object, place: Place) -> Path:
        return _placed(value if isinstance(value, Path) else Path(_line(value, place)), place)

    return Kind("the path of a file", take, label="path")


def program() -> Kind[str]:
    """A path, or a bare name that is looked up on PATH."""

    def take(value: object, place: Place) -> str:
        said = str(value) if isinstance(value, Path) else _line(value, place)
        return str(_placed(Path(said), place)) if "/" in said else said

    return Kind("the path or the name of a program", take, label="program")


def _placed(said: Path, place: Place) -> Path:
    if said.parts[:1] == ("~",):
        return place.home.joinpath(*said.parts[1:])
    return said if place.folder is None else place.folder / said


def _line(value: object, place: Place) -> str:
    """A text that can be shown, sent and logged as it is: no control characters, nothing invisible."""
    fits = isinstance(value, str) and value.strip() and value.isprintable() and len(value) <= MAX_TEXT_CHARS
    return str(value) if fits else _unfit()


def _unfit() -> NoReturn:
    raise ValueError


def shown(value: object) -> str:
    """A value for people. Control characters are spelt out: a file must not drive a terminal."""
    match value:
        case None:
            return "(not set)"
        case bool():
            return "true" if value else "false"
        case str() | Path():
            said = str(value)
            return said if is_plain_code(said) else f"'{code_label(said, MAX_TEXT_CHARS)}'"
        case int() if value.bit_length() > MAX_SHOWN_BITS:
            return "a huge number"  # Python refuses to spell it
        case list() | tuple():
            return ", ".join(shown(item) for item in value) or "(none)"
        case dict():
            return f"a table of {len(value)}"
        case _:
            return str(value)


def jsonable(value: object) -> Any:
    """A value for programs: what JSON can say."""
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
