"""A person at the page: the page served from the test, a browser's tab on it, and what is seen there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, BrowserContext, Page, expect

from laneway.doors.chat.platforms.web.chat_part import ChatPart
from laneway.doors.chat.ports import Chat
from laneway.testing.hand_chat import HandChat
from tests.doors.console.support import served_page

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
        parts = self.page.locator(".log, .questions:not([hidden]), .empty:not([hidden])")
        return "\n".join(await parts.all_inner_texts())

    async def offers(self) -> list[str]:
        return await self.page.locator(".questions button, .log button").all_inner_texts()

    async def until(self, script: str) -> None:
        """Wait until this is true in the page."""
        await self.page.wait_for_function(script)


@asynccontextmanager
async def window(browser: Browser, **options: object) -> AsyncIterator[BrowserContext]:
    """A browser of its own: nothing is shared with the one before."""
    context = await browser.new_context(**options)  # type: ignore[arg-type]
    try:
        yield context
    finally:
        await context.close()


@asynccontextmanager
async def chat_page(chat: Chat | None = None, uploads: Path | None = None) -> AsyncIterator[str]:
    """The page with the chat on it; its address."""
    part = ChatPart(chat or HandChat(), uploads or Path("/nowhere/uploads"))
    async with served_page(part) as address:
        yield address


def conversation_of(page: Page) -> str:
    """By the tab's address."""
    found = re.search(r"#/chat/(.+)$", page.url)
    assert found, page.url
    return found[1]
