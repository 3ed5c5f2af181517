"""The console in a real browser, beside real servers and real jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.app.console.support import WORK, LiveConsole, desk
from tests.browser.support import Tab, window

pytestmark = pytest.mark.asyncio(loop_scope="session")


@asynccontextmanager
async def tab_of(browser: Browser, console: LiveConsole) -> AsyncIterator[Tab]:
    """The page as the console's address opens it: on the live sessions."""
    async with window(browser) as context:
        tab = Tab(await context.new_page())
        await tab.page.goto(console.address)
        await expect(tab.page.get_by_role("heading", name="Live sessions")).to_be_visible()
        yield tab
        assert tab.faults == []


async def press_twice(tab: Tab, label: str) -> None:
    """A button that asks before it acts."""
    button = tab.page.get_by_role("button", name=label, exact=True)
    await button.click()
    await tab.page.get_by_role("button", name=f"{label}: press again").click()


def panes(tab: Tab) -> Locator:
    return tab.page.locator(".dispute figure pre")


async def test_a_conflict_of_two_jobs_is_seen_three_ways_rolled_back_undone_and_run_again(
    browser: Browser, tmp_path: Path, run: Path
) -> None:
    """Two jobs at once wrote the same line. Each step is on the page, and in the work tree."""
    async with (
        desk(tmp_path, run) as at,
        at.server() as client,
        at.console() as console,
        tab_of(browser, console) as tab,
    ):
        run_id, (_, second) = await at.disputed_run(client)
        await tab.page.get_by_role("link", name="Jobs", exact=True).click()
        await tab.page.get_by_role("link", name="%edit menu.txt tomato soup => onion soup").click()
        await tab.see("overlap")
        await tab.see("(evidence: patch)")
        await tab.see("Thread started")
        await tab.press("What its run changed")
        await expect(panes(tab)).to_have_text(["tomato soup", "soup", "onion soup"])
        await press_twice(tab, "Accept")
        await tab.see("merge them by hand")

        await tab.page.get_by_role("checkbox", name="%edit menu.txt tomato soup => onion soup").check()
        await press_twice(tab, "Roll back")
        await tab.see("The rollback is done.")
        await tab.see("rolled back")
        assert at.menu == ["tomato soup", "bread", "cheese"]
        await press_twice(tab, "Undo the last rollback")
        await tab.see("The undo is done.")
        await expect(panes(tab)).to_have_text(["tomato soup", "soup", "onion soup"])
        assert at.menu == ["onion soup", "bread", "cheese"]

        await tab.page.get_by_role("checkbox", name="%edit menu.txt tomato soup => onion soup").uncheck()
        await press_twice(tab, "Roll back and run again")
        await tab.see(f"{second[-8:]} runs again as ")
        await expect(tab.page.get_by_role("heading", name=f"Run {run_id[-8:]} rolled back")).to_be_visible()
        await tab.page.get_by_role("status").get_by_role("link").last.click()
        await expect(tab.page.get_by_role("heading", name="onion soup succeeded")).to_be_visible()
        await tab.press("What its run changed")
        await tab.see("sequence")
        await press_twice(tab, "Accept")
        await tab.see("The acceptance is done.")
        await expect(tab.page.get_by_role("heading", name="accepted")).to_be_visible()
        assert at.menu == ["onion soup", "bread", "cheese"]


async def test_a_question_is_answered_a_job_cancelled_and_what_ends_meanwhile_says_so(
    browser: Browser, tmp_path: Path, run: Path
) -> None:
    """Of a server that somebody else started; its end is on the page without a reload."""
    async with (
        desk(tmp_path, run) as at,
        at.console() as console,
        tab_of(browser, console) as tab,
        at.server() as client,
    ):
        marker = at.work / "marker"
        call = client.start("codex", identity="ann", prompt=f"%run! touch {marker}\n%say on", **WORK)
        await tab.see("1 waiting for an answer")
        await tab.page.get_by_role("link", name="ann", exact=True).click()
        question = tab.page.get_by_role("region", name="Question: ")
        await expect(question).to_contain_text(f"touch {marker}")
        await tab.press("Allow once")
        assert (await call)["result"]["content"][0]["text"] == "on"
        await tab.see("The turn is completed")
        await expect(question).to_have_count(0)
        assert marker.exists()

        job = await at.spawned(client, "%run sleep 600")
        await tab.page.get_by_role("link", name="Jobs", exact=True).click()
        await tab.page.get_by_role("link", name="%run sleep 600").click()
        await tab.see("sleep 600")
        await press_twice(tab, "Cancel")
        await expect(tab.page.get_by_role("heading", name="%run sleep 600 cancelled")).to_be_visible()
        assert (await client.content("codex_status", jobId=job))["status"] == "cancelled"

        await tab.page.go_back()
        await tab.page.go_back()
        await expect(tab.page.get_by_role("heading", name="ann idle")).to_be_visible()
        client.process.kill()
        await tab.see(f"Process {client.process.pid}, which ran the session, has ended.")
        await expect(tab.page.get_by_role("heading", name="ann ended")).to_be_visible()
        await expect(tab.page.get_by_role("button", name="Stop its turn")).to_have_count(0)
