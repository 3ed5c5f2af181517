"""A browser on a page of its own, whose chat the test drives by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, BrowserContext

from laneway.core.model import Activity
from laneway.doors.chat.outputs import (
    TextDone,
)
from laneway.testing.hand_chat import HandChat
from tests.browser.support import ServedChat, Tab, chat_page, conversation_of, window

NOTICES = """
  window.notices = [];
  window.Notification = class { constructor(title, more) { notices.push([title, more.body]); } close() {} };
  Notification.permission = "granted";
  document.hasFocus = () => false;
"""


class Visit:
    """A browser of its own on a page of its own, and the chat that the test drives."""

    def __init__(self, chat: HandChat, served: ServedChat, context: BrowserContext) -> None:
        self.chat, self.served, self.context = chat, served, context
        self.tab: Tab

    async def open(self, to: str = "") -> Tab:
        tab = Tab(await self.context.new_page())
        await tab.open(self.served.address + (f"&to=/chat/{to}" if to else ""))
        return tab

    @property
    def conversation_id(self) -> str:
        return conversation_of(self.tab.page)

    def show(self, *outputs: object) -> None:
        for output in outputs:
            self.chat.show(self.conversation_id, output)  # type: ignore[arg-type]

    def text(self, words: str) -> None:
        """A turn of the default lane that says this."""
        number = len(self.chat.conversations[self.conversation_id].outputs)
        self.show(TextDone(lane="claude", ticket="t1", part=f"p{number}", text=words))


@asynccontextmanager
async def visit(browser: Browser, folder: Path, **options: object) -> AsyncIterator[Visit]:
    async with asyncio.timeout(90):
        chat = HandChat(cwd=str(folder))
        async with chat_page(chat, folder / "uploads") as served, window(browser, **options) as context:
            here = Visit(chat, served, context)
            here.tab = await here.open()
            yield here
            assert here.tab.faults == []


def command(status: str, output: str | None = None, exit_code: int | None = None) -> Activity:
    return Activity(
        turn_id="t1",
        item_id="c1",
        kind="command",
        title="make test",
        status=status,  # type: ignore[arg-type]
        output=output,
        exit_code=exit_code,
    )
