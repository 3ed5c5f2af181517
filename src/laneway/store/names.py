"""Checks names of teams, identities and threads before they become part of a path.

Pure. `layout` calls it for each part of a path; no other module joins foreign text to a folder.
"""

from __future__ import annotations

import unicodedata

from laneway.base.errors import BadName

MAX_NAME_BYTES = 128
"""UTF-8. With the suffix `.lock` a name still fits the shortest limit in use (eCryptfs: 143)."""

SEPARATORS = frozenset("/\\:@")
"""`:` separates on macOS and Windows, `@` separates an agent and its team in a mail address."""

DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))]
)
"""Windows opens these whatever follows the first dot; a state folder may be shared with it."""

OUR_FILES = ("registry.json", "audit.jsonl")
"""Files beside the folders of identities and threads, with or without a further suffix."""


def check_name(name: str, what: str) -> str:
    """The name, if it is no path and no file of ours; else `BadName`. `what` is the thing that it names."""
    fault = _fault(name)
    if fault:
        visible_name = ascii(name if len(name) <= MAX_NAME_BYTES else name[:MAX_NAME_BYTES] + "…")
        raise BadName(f"{visible_name} cannot be the name of {what}: {fault}.")
    return name


def is_name(name: str) -> bool:
    return not _fault(name)


def _fault(name: str) -> str:
    """What is wrong with the name, as the rest of a sentence; empty if nothing is."""
    if not name:
        return "it is empty"
    is_ordinary = name.isascii() and name.isprintable()
    if not is_ordinary and any(_is_unprintable(letter) for letter in name):
        return "it has a control character or another one that cannot be seen"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"it is longer than {MAX_NAME_BYTES} bytes"
    if SEPARATORS & set(name):
        return "the characters / \\ : @ are not allowed"
    if name.startswith("."):
        return "it begins with a dot"
    if name != name.strip(" ") or name.endswith("."):
        return "it begins or ends with a space, or ends with a dot"
    if not is_ordinary and not unicodedata.is_normalized("NFC", name):
        return "its accents are written apart from their letters (Unicode NFC is needed)"
    folded = name.casefold()
    if folded.partition(".")[0].rstrip(" ") in DEVICES:
        return "it is the name of a device"
    if folded.endswith(".lock") or folded.startswith(OUR_FILES):
        return "Laneway keeps a file of that name"
    return ""


def _is_unprintable(letter: str) -> bool:
    category = unicodedata.category(letter)
    return category.startswith("C") or (category.startswith("Z") and letter != " ")
