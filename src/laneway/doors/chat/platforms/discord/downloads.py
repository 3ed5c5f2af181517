"""`Downloads`: fetches what people attach with its message, where a lane can read it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import msgspec

from laneway.doors.chat.platforms.bots.received_files import ReceivedFiles
from laneway.doors.chat.platforms.discord.api import read_bounded
from laneway.doors.chat.platforms.discord.incoming_message import SeenFile

log = logging.getLogger(__name__)

MAX_BYTES = 25 * 1024 * 1024
"""Of one file; larger ones are left out."""
FETCH_S = 60.0


class Fetched(msgspec.Struct, frozen=True):
    images: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    missing: tuple[str, ...] = ()
    """Names of those that could not be fetched."""


class Downloads:
    def __init__(self, session: aiohttp.ClientSession, kept: ReceivedFiles) -> None:
        self._session, self._kept = session, kept

    async def fetch(self, message_id: str, files: Sequence[SeenFile]) -> Fetched:
        images: list[Path] = []
        others: list[Path] = []
        missing: list[str] = []
        for number, file in enumerate(files, 1):
            path = await self._one(message_id, number, file)
            if path is None:
                missing.append(file.name)
            else:
                (images if file.is_image else others).append(path)
        return Fetched(tuple(images), tuple(others), tuple(missing))

    async def _one(self, message_id: str, number: int, file: SeenFile) -> Path | None:
        if file.size > MAX_BYTES:
            log.warning("an attachment of %d bytes is too large", file.size)
            return None
        try:
            async with asyncio.timeout(FETCH_S), self._session.get(file.url) as response:
                data = await read_bounded(response, MAX_BYTES) if response.status == 200 else None
            if data is None:
                log.warning("an attachment could not be fetched: HTTP %d", response.status)
                return None
            return await asyncio.to_thread(self._kept.keep, f"{message_id}-{number}", file.name, data)
        except (aiohttp.ClientError, OSError, TimeoutError) as problem:
            log.warning("an attachment could not be fetched: %s", type(problem).__name__)
            return None
