"""Files that people put into a conversation: kept under names of ours in the state folder, for some days."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

from laneway.base.plain import code_label

MAX_UPLOAD_BYTES = 20 * 1024 * 1024
MAX_UPLOADS = 10
"""Of one message."""
KEEP_S = 7 * 86_400.0
HEAD_BYTES = 16
"""Of a file, by which an image is known."""
_ID = re.compile(r"[0-9a-f]{24}(?:\.[a-z0-9]{1,8})?", re.ASCII)
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,8}", re.ASCII)
IMAGES = {b"\x89PNG\r\n\x1a\n": ".png", b"\xff\xd8\xff": ".jpg", b"GIF87a": ".gif", b"GIF89a": ".gif"}


class StoredUpload(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """The file's name in the folder."""
    name: str
    """As the person's machine has it; only shown."""
    size: int
    is_image: bool


class Uploads:
    """The folder of uploads. All names are ours: nothing of the given name is used but its suffix."""

    def __init__(self, folder: Path, wall: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._wall = wall

    async def keep(self, pieces: AsyncIterator[bytes], name: str) -> StoredUpload:
        """Raises what `pieces` raises: then nothing is kept."""
        await asyncio.to_thread(self._make_folder)
        upload_id = secrets.token_hex(12)
        path = self._folder / f"{upload_id}.part"
        size, head = 0, b""
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                async for piece in pieces:
                    head = (head + piece[:HEAD_BYTES])[:HEAD_BYTES]
                    size += len(piece)
                    await asyncio.to_thread(_write, file, piece)
            finally:
                os.close(file)
            suffix = image_suffix(head) or _suffix(name)
            path = path.rename(self._folder / f"{upload_id}{suffix}")
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return StoredUpload(id=path.name, name=code_label(name), size=size, is_image=bool(image_suffix(head)))

    def find(self, upload_id: str) -> Path | None:
        """None for one that is not there, or not any more."""
        if not _ID.fullmatch(upload_id):
            return None
        path = self._folder / upload_id
        return path if path.is_file() and not path.is_symlink() else None

    def remove_old(self) -> int:
        """Those that are older than `KEEP_S`; returns how many. Blocks."""
        if not self._folder.is_dir():
            return 0
        before = self._wall() - KEEP_S
        old = [path for path in self._folder.iterdir() if path.lstat().st_mtime < before]
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def image_suffix(head: bytes) -> str | None:
    """By the content, not by the name; none for what is no image that models take."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return ".webp"
    return next((suffix for magic, suffix in IMAGES.items() if head.startswith(magic)), None)


def is_image(path: Path) -> bool:
    return path.suffix in (".png", ".jpg", ".gif", ".webp")


def _suffix(name: str) -> str:
    """What is no image must not look like one."""
    found = Path(name).suffix.lower()
    return found if _SUFFIX.fullmatch(found) and not is_image(Path(f"x{found}")) else ".bin"


def _write(file: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(file, view) :]
