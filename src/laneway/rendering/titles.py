"""One-line titles from prose, commands and paths: shortened, with hidden characters shown. Pure."""

from __future__ import annotations

import os

from laneway.base.plain import ELLIPSIS, code_label, label
from laneway.core.model import Look

CUT = "The output was cut: this is not all of it."
"""Of an activity whose engine has left out a part of its output."""
MAX_TITLE_CHARS = 200
"""Clients show titles as labels."""


def title(text: str) -> str:
    """The first line of a prose text; an ellipsis marks what is left out."""
    first, is_only = _first_line(text)
    line = label(first, MAX_TITLE_CHARS)
    return line if is_only else f"{line} {ELLIPSIS}"


def code_title(text: str) -> str:
    """The same for a command, a path or the name of a tool."""
    first, is_only = _first_line(text)
    line = code_label(first, MAX_TITLE_CHARS)
    return line if is_only else f"{line} {ELLIPSIS}"


def look_title(look: Look, base: str = "") -> str:
    """What is read or searched for; paths inside the folder `base` are shown relative to it."""
    path = relative_to(look.path, base)
    match look.purpose:
        case "read":
            return code_title(f"Read {path}" if path else "Read a file")
        case "search":
            where = f" in {path}" if path else ""
            return code_title(f"Search for “{look.pattern}”{where}" if look.pattern else f"Search{where}")
        case "list":
            where = f" in {path}" if path and look.pattern else ""
            return code_title(f"List {look.pattern or path or 'files'}{where}")


def relative_to(path: str, base: str) -> str:
    """A path relative to a folder, if it is inside that folder; else unchanged."""
    if path and base and os.path.isabs(path) and os.path.isabs(base):
        relative = os.path.relpath(path, base)
        return path if relative.startswith("..") else relative
    return path


def _first_line(text: str) -> tuple[str, bool]:
    """The first line, and whether it is the only one."""
    first, _, rest = text.strip().partition("\n")
    return first.strip(), not rest
