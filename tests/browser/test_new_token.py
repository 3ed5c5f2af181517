"""Laneway was started anew: a tab that has the token of before, and one that has the new one."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from laneway.testing.hand_chat import HandChat
from tests.browser.support import Tab, chat_page, window

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_tab_with_the_token_of_before_asks_for_the_new_one_and_loses_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    """What was sent meanwhile arrives once; other tabs that have the new token are not held up."""
    chat = HandChat(cwd=str(tmp_path))
    async with chat_page(chat, tmp_path / "uploads") as served, window(browser) as context:
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        await tab.say("before")
        await tab.see("before")
        await served.stop()
        served.token = "browser-token-of-later"
        await served.start()
        banner = tab.page.get_by_role("alert")
        await expect(banner).to_contain_text("Laneway was started anew")
        await tab.say("said too early")
        await tab.see("Sending …")
        await tab.page.get_by_label("Message", exact=True).fill("a draft")
        assert len(chat.taken) == 1

        other = Tab(await context.new_page())
        await other.open(served.address)
        await expect(other.page.locator("#connection")).to_have_text("Connected")
        await expect(other.page.get_by_role("alert")).to_have_count(0)
        await expect(banner).to_be_visible()

        await banner.get_by_label("Token").fill(served.address)
        await banner.get_by_role("button", name="Open").click()
        message = await chat.next_taken(2)
        assert message.text == "said too early"
        await expect(banner).to_have_count(0)
        await expect(tab.page.locator("#connection")).to_have_text("Connected")
        await expect(tab.page.get_by_label("Message", exact=True)).to_have_value("a draft")
        await expect(tab.page.get_by_text("Sending …")).to_have_count(0)
        assert "token" not in tab.page.url
        assert len(chat.taken) == 2
        assert (tab.faults, other.faults) == ([], [])


async def test_the_address_of_another_port_leads_there(browser: Browser, tmp_path: Path) -> None:
    chat = HandChat(cwd=str(tmp_path))
    async with (
        chat_page(chat, tmp_path / "one") as one,
        chat_page(chat, tmp_path / "other") as other,
        window(browser) as context,
    ):
        page = await context.new_page()
        await page.goto(one.origin)
        await page.get_by_label("Token").fill(other.address)
        await page.get_by_role("button", name="Open").click()
        await expect(page.locator("#connection")).to_have_text("Connected")
        assert page.url.startswith(other.origin)


async def test_a_problem_is_said_once_and_only_where_it_is(browser: Browser, tmp_path: Path) -> None:
    chat = HandChat(cwd=str(tmp_path))
    async with chat_page(chat, tmp_path / "uploads") as served, window(browser) as context:
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        for place in ("#/chat/%E0%A4%A", "#/chat/%E0%A4"):
            await tab.page.evaluate("(place) => { location.hash = place; }", place)
            await expect(tab.page.get_by_role("alert")).to_have_count(1)
            await expect(tab.page.get_by_role("alert")).to_contain_text("cannot be shown")
        await tab.page.evaluate("location.hash = '#/chat'")
        await expect(tab.page.get_by_role("alert")).to_have_count(0)
        assert tab.faults == []


async def test_what_cannot_be_asked_for_now_is_said_and_can_be_tried_again(
    browser: Browser, tmp_path: Path
) -> None:
    """Search, commands, exports and earlier messages need the server: without it nothing fails silently."""
    chat = HandChat(cwd=str(tmp_path))
    async with chat_page(chat, tmp_path / "uploads") as served, window(browser) as context:
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        await tab.say("find me")
        await tab.see("find me")
        await tab.press("Search")
        await served.stop()
        await expect(tab.page.locator("#connection")).to_contain_text("Connection lost")
        words = tab.page.get_by_role("searchbox")
        await words.fill("find me")
        await words.press("Enter")
        await expect(tab.page.get_by_role("alert")).to_contain_text("cannot be reached now")
        await tab.press("Export")
        await expect(tab.page.get_by_role("alert")).to_have_count(1)
        box = tab.page.get_by_label("Message", exact=True)
        await box.press_sequentially("/")
        await served.start()
        await expect(tab.page.locator("#connection")).to_have_text("Connected")
        await words.press("Enter")
        await tab.see("Found once.")
        await box.press_sequentially("s")
        await expect(tab.page.get_by_role("option").first).to_contain_text("/s")
        assert tab.faults == []
