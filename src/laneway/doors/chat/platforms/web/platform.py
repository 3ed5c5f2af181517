"""The web page as a chat platform: joins conversations to the page, which `doors.console` serves."""

from __future__ import annotations

from pathlib import Path

from laneway.doors.chat.platforms.web.chat_part import ChatPart
from laneway.doors.chat.platforms.web.output_json import PLATFORM
from laneway.doors.chat.ports import Chat
from laneway.doors.page_parts import PageHost


class WebPlatform:
    def __init__(
        self, host: PageHost, uploads: Path, *, cwd: Path | None = None, sender: str = "you"
    ) -> None:
        self._host = host
        self._cwd = cwd
        self._uploads = uploads
        self._sender = sender

    @property
    def name(self) -> str:
        return PLATFORM

    async def run(self, chat: Chat) -> int:
        await self._host.serve([ChatPart(chat, self._uploads, cwd=self._cwd, sender=self._sender)])
        return 0
