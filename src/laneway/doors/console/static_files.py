"""The static files of the page and its parts, read once: they are public, and hold nothing private."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from laneway.doors.page_parts import PagePart

SHELL = "page"
"""The name of the shell's own folder in addresses."""
SHELL_FOLDER = Path(__file__).with_name("static")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class StaticFile(msgspec.Struct, frozen=True):
    content: bytes
    content_type: str
    etag: str


def static_files(parts: Iterable[PagePart]) -> dict[str, StaticFile]:
    """By path: `/static/NAME/FILE`, and the page itself as `/`."""
    found = {f"/static/{SHELL}/{name}": file for name, file in _in_folder(SHELL_FOLDER)}
    found["/"] = found.pop(f"/static/{SHELL}/index.html")
    for part in parts:
        found.update({f"/static/{part.name}/{name}": file for name, file in _in_folder(part.static)})
    return found


def _in_folder(folder: Path) -> list[tuple[str, StaticFile]]:
    files = sorted(path for path in folder.iterdir() if path.suffix in _TYPES and path.is_file())
    return [(path.name, _read(path)) for path in files]


def _read(path: Path) -> StaticFile:
    content = path.read_bytes()
    return StaticFile(content, _TYPES[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:20]}"')
