"""Files that go wrong on their way from a person to the page."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from laneway.testing.hand_chat import HandChat
from tests.browser.support import Tab, chat_page, window

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_file_that_is_gone_when_it_is_sent_is_said_and_is_no_lost_connection(
    browser: Browser, tmp_path: Path
) -> None:
    """As a folder that was dropped."""
    chat = HandChat(cwd=str(tmp_path))
    gone = tmp_path / "gone.txt"
    gone.write_text("soon")
    async with chat_page(chat, tmp_path / "uploads") as served, window(browser) as context:
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        await tab.page.get_by_label("Choose files").set_input_files(gone)
        gone.unlink()
        await tab.say("look at this")
        await tab.see("Not sent: gone.txt cannot be read")
        await expect(tab.page.locator("#connection")).to_have_text("Connected")
        await tab.say("without it")
        assert (await chat.next_taken()).text == "without it"
        assert len(chat.taken) == 1
        assert tab.faults == []
