"""A model that hides and forges: `<U+202E>` in a step of a rehearsal is that very character."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import msgspec

from laneway.rehearsal import script
from laneway.rehearsal.answer import Piece, _stream, next_steps, prompt_and_calls

_NAMED = re.compile(r"<U\+([0-9A-F]{1,6})>")

HIDING = "<U+1B>[2K<U+9B>2K<U+D><U+202E><U+200B><U+2028><U+2066><U+AD><U+3164><U+2800><U+E0072><U+FEFF>"
"""A bit of everything: escapes, a return, turned text, blanks, tags."""


def forging_model(request: dict[str, Any]) -> Iterator[Piece]:
    prompt, done = prompt_and_calls(request.get("input", []))
    steps = [_decoded(step) for step in script.parse(prompt)] or [script.SayStep("Done.")]
    return _stream(list(next_steps(steps, done)), request)


def decoded(text: str) -> str:
    return _NAMED.sub(lambda found: chr(int(found[1], 16)), text)


def _decoded(step: script.Step) -> script.Step:
    def value(field: Any) -> Any:
        if isinstance(field, str):
            return decoded(field)
        return tuple(map(value, field)) if isinstance(field, tuple) else field

    return msgspec.structs.replace(
        step, **{name: value(getattr(step, name)) for name in step.__struct_fields__}
    )


def hidden(shown: Any) -> set[str]:
    """The characters, anywhere in what a client is shown, that a person would not see as they are."""
    if isinstance(shown, dict):
        return set().union(*map(hidden, shown), *map(hidden, shown.values()))
    if isinstance(shown, list):
        return set().union(*map(hidden, shown))
    if not isinstance(shown, str):
        return set()
    return {
        f"U+{ord(letter):04X}"
        for letter in shown
        if letter not in "\n\t"
        and (unicodedata.category(letter) in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp") or letter in "\u2800\u3164")
    }
