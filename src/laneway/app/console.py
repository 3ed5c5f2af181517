"""One process of `laneway console`: the page with its conversations, opened on everything that runs here."""

from __future__ import annotations

from laneway.app.chat import ChatRequest, open_chat
from laneway.app.console_parts import console_parts
from laneway.app.page import PageServer, uploads_folder
from laneway.doors.chat.platforms.web.platform import WebPlatform
from laneway.doors.page_parts import Announce


async def serve_console(request: ChatRequest, *, port: int | None, on_ready: Announce) -> None:
    """Serve until cancelled. Engines are started only for conversations that are held on the page."""
    settings, cwd = request.settings, request.cwd
    host = PageServer(
        settings,
        lambda: console_parts(settings, request.chosen.codex, cwd=cwd),
        announce=on_ready,
        port=port,
    )
    async with open_chat(request) as (chat, *_):
        await WebPlatform(host, uploads_folder(), cwd=cwd).run(chat)
