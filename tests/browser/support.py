"""A person at the page: the page served from the test, a browser's tab on it, and what is seen there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, Page, expect

from laneway.doors.chat.platforms.web.chat_part import ChatPart
from laneway.doors.chat.ports import Chat
from laneway.doors.console.event_feed import EventFeed
from laneway.doors.console.page_server import serve_page

TOKEN = "browser-token-0123456789"

RENDERED_TEXTS = """
(selector) => {
  const entries = [...document.querySelectorAll(".entry")];
  for (const each of entries) each.style.contentVisibility = "visible";
  const texts = [...document.querySelectorAll(selector)].map((each) => each.innerText);
  for (const each of entries) each.style.contentVisibility = "";
  return texts;
}
"""

DEADLINE_MS = 20_000
expect.set_options(timeout=DEADLINE_MS)


class Tab:
    """One tab of a browser, and what went wrong in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        """Errors that nobody caught, and what the page's policy has refused."""
        page.set_default_timeout(DEADLINE_MS)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("dialog", lambda dialog: self.faults.append(f"dialog: {dialog.message}"))
        page.on("console", lambda message: self._on_console(message.type, message.text))

    def _on_console(self, kind: str, text: str) -> None:
        # A refused request, a server that is gone: the browser says so by itself.
        if kind == "error" and not text.startswith("Failed to load resource"):
            self.faults.append(text)

    async def open(self, address: str) -> None:
        """The address with the token, as it was printed."""
        await self.page.goto(address)
        await expect(self.page.get_by_label("Message", exact=True)).to_be_visible()

    async def say(self, text: str) -> None:
        box = self.page.get_by_label("Message", exact=True)
        await box.fill(text)
        await box.press("Enter")

    async def see(self, text: str) -> None:
        await expect(self.page.locator("main")).to_contain_text(text)

    async def see_gone(self, text: str) -> None:
        await expect(self.page.locator("main")).not_to_contain_text(text)

    async def press(self, label: str) -> None:
        """The latest button of that name."""
        await self.page.get_by_role("button", name=label, exact=True).last.click()

    async def shown(self) -> str:
        """The messages, and the open questions."""
        return "\n".join(await self._texts(".log, .questions:not([hidden]), .none-open:not([hidden])"))

    async def offers(self) -> list[str]:
        return await self._texts(".questions button, .log button")

    async def _texts(self, selector: str) -> list[str]:
        """As `all_inner_texts`; also of what the browser has not yet drawn, or would only after scrolling."""
        texts: list[str] = await self.page.evaluate(RENDERED_TEXTS, selector)
        return texts


@asynccontextmanager
async def window(browser: Browser, **options: object) -> AsyncIterator[BrowserContext]:
    """A browser of its own: nothing is shared with the one before."""
    context = await browser.new_context(**options)  # type: ignore[arg-type]
    try:
        yield context
    finally:
        await context.close()


class ServedChat:
    """The page with one chat on it, served from the test; it can be killed and brought back."""

    def __init__(self, chat: Chat, uploads: Path, cwd: Path | None = None) -> None:
        self.chat = chat
        self.uploads = uploads
        self.cwd = cwd
        self.feed = EventFeed()
        self.token = TOKEN
        self.port = 0
        self.address = ""
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """On the same port as before; with the same feed, as if only connections had been lost."""
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        part = ChatPart(self.chat, self.uploads, cwd=self.cwd)
        serve = serve_page(
            [part], token=self.token, on_ready=ready.set_result, port=self.port, feed=self.feed
        )
        self._serving = asyncio.create_task(serve)
        waited: set[asyncio.Future[Any]] = {self._serving, ready}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            self._serving.result()
        self.address = ready.result()
        port = urlsplit(self.address).port
        assert port is not None
        self.port = port

    async def stop(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
            self._serving = None
            if self.feed.is_ended:
                self.feed = resumed(self.feed)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def resumed(feed: EventFeed) -> EventFeed:
    """A feed that goes on where this one ended: what a browser sees when only its connection was lost."""
    again = EventFeed(feed.run)
    events, _ = feed.events_after(feed.first_kept - 1, max_bytes=1 << 30)
    again._events, again._forgotten = events, feed.first_kept - 1
    return again


@asynccontextmanager
async def chat_page(chat: Chat, uploads: Path, cwd: Path | None = None) -> AsyncIterator[ServedChat]:
    served = ServedChat(chat, uploads, cwd)
    await served.start()
    try:
        yield served
    finally:
        await served.stop()


def conversation_of(page: Page) -> str:
    """By the tab's address."""
    found = re.search(r"#/chat/(.+)$", page.url)
    assert found, page.url
    return found[1]
