"""Which paths a scope covers: paths and globs relative to the work tree, and all that is below them.

`*` and `?` stay within one name, `**` does not. `src` covers all of `src/`, as does `src/`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

MAX_COMPILED = 1024


def covers(scope: Iterable[str], path: str) -> bool:
    """Whether one of these covers the path."""
    return any(_compiled(glob).match(path) for glob in scope)


def is_glob(text: str) -> bool:
    return any(mark in text for mark in "*?[")


@lru_cache(MAX_COMPILED)
def _compiled(glob: str) -> re.Pattern[str]:
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    pattern = "".join("(?:[^/]+/)*" if part == "**" else _name(part) + "/" for part in parts)
    if not parts or parts[-1] == "**":
        return re.compile(pattern, re.S)  # all that begins like this
    return re.compile(rf"{pattern.removesuffix('/')}(?:/.*)?\Z", re.S)


def _name(part: str) -> str:
    """A name with marks as a regular expression. An open bracket that is not closed stands for itself."""
    found, place = "", 0
    while place < len(part):
        mark = part[place]
        end = part.find("]", place + 2) if mark == "[" else -1
        if end > 0:
            inner = part[place + 1 : end]
            negated, inner = ("^", inner[1:]) if inner[0] in "!^" else ("", inner)
            allowed = _class(inner)
            found += f"(?!/)[{negated}{allowed}]" if allowed else "[^/]" if negated else "(?!)"
            place = end
        else:
            found += {"*": "[^/]*", "?": "[^/]"}.get(mark) or re.escape(mark)
        place += 1
    return found


def _class(inner: str) -> str:
    """What is between brackets, as single characters and ranges. One that runs backwards matches nothing."""
    found, place = "", 0
    while place < len(inner):
        first, last = inner[place], inner[place + 2 : place + 3]
        if last and inner[place + 1] == "-":
            found += f"{re.escape(first)}-{re.escape(last)}" if first <= last else ""
            place += 3
        else:
            found += re.escape(first)
            place += 1
    return found
