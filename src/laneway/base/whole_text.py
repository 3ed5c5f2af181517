"""Texts that can be written down: halves of surrogate pairs in them become U+FFFD. Pure.

Such a half stands for a byte of an argument or of typed input that is not UTF-8, or was left when
JavaScript cut an emoji. No file, log or wire takes one.
"""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def is_whole(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole_text(text: str) -> str:
    return text if is_whole(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole(value: T) -> T:
    """The same value with whole texts, also within lists and objects."""
    match value:
        case str():
            return whole_text(value)  # type: ignore[return-value]
        case list():
            return [whole(each) for each in value]  # type: ignore[return-value]
        case dict():
            return {whole(name): whole(each) for name, each in value.items()}  # type: ignore[return-value]
        case _:
            return value
