"""Images that people attach by their path: which file `/attach PATH` means, and whether it can be one."""

from __future__ import annotations

import shlex
from pathlib import Path

from laneway.base.plain import quoted

MAX_IMAGE_BYTES = 20 * 1024 * 1024
"""Models take less; an engine may read all of a file before it says so."""
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp"})


def attached_path(arguments: str, cwd: Path) -> Path | None:
    """One path, quoted or not; none if the arguments are not one."""
    arguments = arguments.strip()
    if not arguments:
        return None
    if arguments[0] in "\"'":
        try:
            arguments = shlex.split(arguments)[0]
        except ValueError:
            return None
    return cwd / Path(arguments).expanduser()


def image_problem(path: Path) -> str | None:
    """Why the file cannot be attached; none if it can."""
    if path.suffix.lower() not in _IMAGES:
        return f"{quoted(path.name)} is not an image that models take: send PNG, JPEG, GIF or WebP."
    if not path.is_file():
        return f"There is no file {quoted(str(path))}."
    if path.stat().st_size > MAX_IMAGE_BYTES:
        return f"{quoted(path.name)} is too large: {MAX_IMAGE_BYTES // 2**20} MB at most."
    return None
