"""The page passes the tests of all chat platforms, in a real browser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser

from laneway.doors.chat.platforms.web.platform import WebPlatform
from laneway.doors.console.page_server import serve_page
from laneway.doors.page_parts import PagePart
from laneway.testing.hand_chat import HandChat
from laneway.testing.platform_kit import PlatformKit, PlatformStage
from tests.browser.support import Tab, window

pytestmark = pytest.mark.asyncio(loop_scope="session")
TOKEN = "kit-token-0123456789"


class OnePage:
    """A `PageHost` without settings."""

    def __init__(self) -> None:
        self.address: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def serve(self, parts: Sequence[PagePart]) -> None:
        await serve_page(parts, token=TOKEN, on_ready=self.address.set_result)


class TestWebPlatform(PlatformKit):
    browser: Browser
    folder: Path

    @pytest.fixture(autouse=True)
    def _given(self, browser: Browser, tmp_path: Path) -> None:
        self.browser, self.folder = browser, tmp_path

    @asynccontextmanager
    async def stage(self, chat: HandChat) -> AsyncIterator[PlatformStage]:
        host = OnePage()
        running = asyncio.create_task(WebPlatform(host, self.folder / "uploads").run(chat))
        try:
            async with window(self.browser) as context:
                tab = Tab(await context.new_page())
                await tab.open(await host.address)

                async def harm() -> str:
                    return "; ".join(tab.faults)

                async def reconnect() -> None:
                    await tab.page.reload()

                yield PlatformStage(
                    name="web",
                    say=tab.say,
                    shown=tab.shown,
                    offers=tab.offers,
                    press=tab.press,
                    harm=harm,
                    reconnect=reconnect,
                )
                assert tab.faults == []
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
