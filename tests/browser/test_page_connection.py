"""The page in a real browser: one stream for many tabs, lost connections, late answers, notices."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Route, expect

from laneway.doors.chat.outputs import (
    TurnEnded,
)
from laneway.testing.hand_chat import approval
from tests.browser.support import DEADLINE_MS
from tests.browser.visiting import NOTICES, visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
RESET = """
  new BroadcastChannel("laneway.events").postMessage({ event: { id: null, kind: "reset", data: "{}" } })
"""
"""What the tab that reads the stream tells the others when too much was missed."""


async def test_eight_tabs_share_one_stream_and_another_takes_over(browser: Browser, tmp_path: Path) -> None:
    async with visit(browser, tmp_path) as here:
        await here.tab.say("hello")
        conversation = here.conversation_id
        tabs = [here.tab, *[await here.open(conversation) for _ in range(7)]]
        here.text("For all of you.")
        for tab in tabs:
            await tab.see("For all of you.")
            await expect(tab.page.locator("#connection")).to_have_text("Connected")
        assert len(here.served.feed._readers) == 1
        await here.tab.page.close()  # the one that reads the stream
        here.text("And again.")
        for tab in tabs[1:]:
            await tab.see("And again.")
            assert (await tab.shown()).count("For all of you.") == 1
        assert len(here.served.feed._readers) == 1
        here.tab = tabs[1]


async def test_an_answer_that_comes_late_takes_nothing_newer_away(browser: Browser, tmp_path: Path) -> None:
    """A conversation is read twice at once; what was said between the two answers stays."""
    async with visit(browser, tmp_path) as here:
        await here.tab.say("hello")
        tab = await here.open(here.conversation_id)
        await tab.see("hello")
        both, first = asyncio.Event(), asyncio.Event()
        released = [asyncio.Event(), asyncio.Event()]
        held: list[Route] = []

        async def hold(route: Route) -> None:
            number = len(held)
            held.append(route)
            answer = await route.fetch()
            if len(held) == 2:
                both.set()
            await released[number].wait()
            await route.fulfill(response=answer)
            if number == 0:
                first.set()

        await tab.page.route(re.compile(rf"/conversations/{here.conversation_id}$"), hold)
        sibling = await here.context.new_page()
        await sibling.goto(f"{here.served.origin}/static/index.html")
        for _ in range(2):
            await sibling.evaluate(RESET)
        async with asyncio.timeout(DEADLINE_MS / 1000):
            await both.wait()
            released[0].set()
            await first.wait()
            here.text("Said between the two.")
            await here.tab.see("Said between the two.")
            async with tab.page.expect_event("requestfinished"):
                released[1].set()
        await tab.see("Said between the two.")
        await tab.page.evaluate("fetch(location.pathname).then((answer) => answer.text())")
        assert (await tab.shown()).count("Said between the two.") == 1


async def test_a_lost_connection_keeps_what_is_shown_and_goes_on_by_number(
    browser: Browser, tmp_path: Path
) -> None:
    async with visit(browser, tmp_path) as here:
        tab, page = here.tab, here.tab.page
        await tab.say("hello")
        here.text("Before.")
        await tab.see("Before.")
        here.chat.ask(here.conversation_id, approval("make open"))
        await expect(page.locator(".question")).to_have_count(1)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await here.served.stop()
        await expect(page.locator("#connection")).to_contain_text("Connection lost")
        await tab.see("Before.")
        await expect(page.locator(".question")).to_have_count(1)
        await tab.say("said while nobody listened")
        await tab.see("Sending …")
        await here.served.start()
        await expect(page.locator("#connection")).to_have_text("Connected")
        message = await here.chat.next_taken(2)
        assert message.text == "said while nobody listened"
        here.text("Afterwards.")
        await tab.see("Afterwards.")
        await expect(page.get_by_text("Sending …")).to_have_count(0)
        shown = await tab.shown()
        assert [shown.count(word) for word in ("Before.", "said while nobody", "Afterwards.")] == [1, 1, 1]
        assert len(here.chat.taken) == 2
        # It went on after the last number: nothing was read anew.
        assert [url for url in asked if re.search(r"/conversations/[^/]+$", url)] == []
        await tab.press("Decline")
        assert (await here.chat.next_tap()).data == "q:1:2"


async def test_a_notice_is_shown_once_when_a_lane_asks_or_is_done(browser: Browser, tmp_path: Path) -> None:
    async with visit(browser, tmp_path) as here:
        await here.context.add_init_script(NOTICES)
        await here.tab.page.reload()
        await expect(here.tab.page.get_by_label("Message", exact=True)).to_be_visible()
        other = await here.open(here.conversation_id)
        await expect(other.page.locator("#connection")).to_have_text("Connected")
        here.chat.ask(here.conversation_id, approval("make asked"))
        here.show(TurnEnded(lane="claude", ticket="t9", status="completed", has_banner=False))
        here.chat.ask(here.conversation_id, approval("make answered"))
        here.chat.settle(here.conversation_id, 2)
        everything = "window.notices.length"
        async with asyncio.timeout(DEADLINE_MS / 1000):
            while await here.tab.page.evaluate(everything) < 2:
                await asyncio.sleep(0.05)
        bodies = [body for _, body in await here.tab.page.evaluate("notices")]
        assert bodies[0].startswith("Claude asks") or "asks" in bodies[0]
        assert "is done" in bodies[1]
        assert await other.page.evaluate(everything) == 0
