"""Prepares msgspec types for use in threads.

msgspec analyses a class when it first decodes one, and shares its unfinished result with other threads:
two that decode a class for the first time at once can crash the interpreter without a message. So a type
that is decoded outside of the event loop is prepared while its module is imported: by a
`msgspec.json.Decoder` at module level, or by `prepare` where only `msgspec.convert` is used. Never by
`msgspec.json.decode(…, type=…)`.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


def prepare(kind: type[T]) -> type[T]:
    """A decorator: the class, and all that its fields name, can be decoded in any thread from now on."""
    msgspec.json.Decoder(kind)
    return kind
