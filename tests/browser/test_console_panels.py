"""The console's panels in a real browser, with hostile texts in everything that they show."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect

from laneway.base.clock import LoopClock
from laneway.base.errors import LanewayError
from laneway.core.model import Activity, Asked, Output, Text, TurnStarted, UserSaid
from laneway.doors.console.panels.health import HealthPart
from laneway.doors.console.panels.jobs import JobsPart
from laneway.doors.console.panels.mail import MailPart
from laneway.doors.console.panels.ports import CheckRow, LiveSessionRow
from laneway.doors.console.panels.sessions import SessionsPart
from tests.browser.support import Tab, window
from tests.doors.console.panels.support import (
    HOSTILE,
    HandBoard,
    HandChecks,
    HandDesk,
    HandSessions,
    command_question,
)
from tests.doors.console.support import served_page

pytestmark = pytest.mark.asyncio(loop_scope="session")

VIEWS = {
    "sessions": "Live sessions",
    "sessions/a1": "ann busy",
    "jobs": "Background jobs",
    "jobs/job-a": "running",
    "jobs/runs/run-1": "Run run-1 open",
    "mail": "Team mail",
    "mail/crew/bob": "Inbox of bob",
    "health": "Health",
}
"""Each place of the panels, and a heading there."""


class HandConsole:
    """All panels on ports that a test drives."""

    def __init__(self) -> None:
        row = LiveSessionRow(
            agent_id="a1",
            name="ann",
            door="mcp",
            state="busy",
            last_text=HOSTILE,
            cwd="/work/" + "deep/" * 40,
        )
        self.sessions = HandSessions(row)
        self.board = HandBoard()
        self.desk = HandDesk()
        self.checks = HandChecks()
        self.checks.may_end.set()
        self.address = ""

    def parts(self) -> tuple[Any, ...]:
        clock = LoopClock()
        return (
            SessionsPart(self.sessions, clock),
            JobsPart(self.board, clock),
            MailPart(self.desk, clock),
            HealthPart(self.checks),
        )

    def act(self) -> None:
        """What happens in the watched session."""
        for event in (
            TurnStarted(turn_id="t"),
            UserSaid(turn_id="t", item_id="u", text=HOSTILE),
            Activity(turn_id="t", item_id="c", kind="command", title=HOSTILE, status="running"),
            Output(turn_id="t", item_id="c", text="x" * 500 + HOSTILE),
            Text(turn_id="t", item_id="x", text="word " * 60),
            Asked(question=command_question(message=HOSTILE, command="rm -r " + "very/long/" * 30)),
        ):
            self.sessions.show("a1", event)


@asynccontextmanager
async def console(browser: Browser, **options: object) -> AsyncIterator[tuple[HandConsole, Tab]]:
    here = HandConsole()
    async with served_page(*here.parts()) as here.address, window(browser, **options) as context:
        tab = Tab(await context.new_page())
        await tab.page.goto(here.address)
        await expect(tab.page.get_by_role("heading", name="Live sessions")).to_be_visible()
        yield here, tab
        assert tab.faults == []


async def go(tab: Tab, place: str) -> None:
    await tab.page.evaluate("place => { location.hash = `#/${place}`; }", place)
    await expect(tab.page.get_by_role("heading", name=VIEWS[place], exact=False).first).to_be_visible()


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), ("dark", 360)], ids=["wide and light", "narrow and dark"]
)
async def test_every_panel_is_accessible_and_fits_whatever_is_in_it(
    browser: Browser, scheme: str, width: int
) -> None:
    """Checked by axe-core. Nothing is markup, or scrolled sideways; no value is missing in a sentence."""
    async with console(browser, color_scheme=scheme, viewport={"width": width, "height": 800}) as (here, tab):
        for place in VIEWS:
            await go(tab, place)
            if place == "sessions/a1":
                here.act()
                await expect(tab.page.get_by_role("region", name="Question: ")).to_be_visible()
                await tab.page.locator("summary").first.click()
            if place == "jobs/runs/run-1":
                await expect(tab.page.locator(".dispute figure pre")).to_have_text(["one", "old", "two"])
                await tab.page.get_by_role("button", name="Show the difference").click()
                await expect(tab.page.locator(".shown")).to_be_visible()
            if place == "health":
                await tab.press("Run the checks")
                await tab.see("1 warning")
            found = await Axe().run(tab.page)
            assert found.violations_count == 0, (place, found.generate_report())
            overflow = await tab.page.evaluate(
                "[document.documentElement, document.getElementById('main')]"
                ".some((each) => each.scrollWidth > each.clientWidth)"
            )
            assert not overflow, place
            text = await tab.page.locator("main").inner_text()
            wrong = [word for word in ("undefined", "null", "[object", "NaN", "\u202e") if word in text]
            assert wrong == [], (place, text)
            assert await tab.page.locator("main img").count() == 0


async def test_the_keyboard_goes_everywhere_and_a_slip_of_the_hand_does_nothing(browser: Browser) -> None:
    """Whoever follows a link is at its heading; a list that is shown anew keeps the keyboard's place."""
    async with console(browser) as (here, tab):
        card = tab.page.get_by_role("link", name="ann")
        await card.focus()
        here.sessions.sessions["a2"] = LiveSessionRow(agent_id="a2", name="bob", door="acp")
        await expect(tab.page.get_by_role("link", name="bob")).to_be_visible()
        await expect(card).to_be_focused()
        await tab.page.keyboard.press("Enter")
        await expect(tab.page.get_by_role("heading", name="ann")).to_be_focused()

        await tab.page.keyboard.press("Tab")
        await expect(tab.page.get_by_role("button", name="Stop its turn")).to_be_focused()
        await tab.page.keyboard.press("Enter")
        asks = tab.page.get_by_role("button", name="Stop its turn: press again")
        await expect(asks).to_be_focused()
        await expect(tab.page.locator("#announcer")).to_have_text("Press again to do it: Stop its turn")
        assert here.sessions.stopped == []
        await tab.page.keyboard.press("Enter")
        await expect(tab.page.locator("#announcer")).to_have_text("It was stopped")
        assert here.sessions.stopped == ["a1"]

        await go(tab, "jobs/job-a")
        await tab.page.get_by_role("button", name="Cancel", exact=True).press("Enter")
        here.board.rows[0]["activity"] = "goes on"
        await tab.see("goes on")
        await tab.page.get_by_role("button", name="Cancel: press again").press("Enter")
        await expect(tab.page.get_by_role("button", name="Run again")).to_be_visible()
        assert here.board.calls == [("cancel", "job-a", False)]


async def test_mail_is_written_and_what_is_refused_is_said(browser: Browser) -> None:
    """The text stays for whoever has to correct the rest."""
    async with console(browser) as (here, tab):
        await go(tab, "mail/crew/bob")
        await tab.page.get_by_text("Write to bob").click()
        await tab.page.get_by_label("From (a name that nobody else holds)").fill("taken")
        await tab.page.get_by_label("Message").fill("hi")
        await tab.press("Send")
        alert = tab.page.get_by_role("alert")
        await expect(alert).to_contain_text("taken belongs to another process.")
        await expect(tab.page.get_by_label("Message")).to_have_value("hi")
        await tab.page.get_by_label("From (a name that nobody else holds)").fill("ann")
        await tab.press("Send")
        await tab.see("Delivered to bob.")
        assert [(team, letter.sender, letter.text) for team, letter in here.desk.sent] == [
            ("crew", "ann", "hi")
        ]


async def test_commands_in_what_laneway_says_stand_out(browser: Browser) -> None:
    """In checks and in refusals; a backtick that is never closed is itself."""
    async with console(browser) as (here, tab):
        here.checks.rows = [
            CheckRow("login", "warning", "Nobody is logged in.", "Run `laneway login`, or `x")
        ]
        await go(tab, "health")
        await tab.press("Run the checks")
        await expect(tab.page.locator(".card code")).to_have_text(["laneway login"])
        await tab.see("Run laneway login, or `x")
        here.checks.problem = LanewayError("It broke: run `laneway doctor`.")
        await tab.press("Run the checks")
        await expect(tab.page.get_by_role("status").locator("code")).to_have_text("laneway doctor")


async def test_what_is_not_there_is_said_once_at_its_place(browser: Browser) -> None:
    """However often the page asks again."""
    async with console(browser) as (here, tab):
        await tab.page.evaluate("location.hash = '#/jobs/job-z'")
        alert = tab.page.get_by_role("alert")
        await expect(alert).to_have_text("There is no such job")
        here.board.rows[0]["status"] = "succeeded"
        for place, text in (("jobs/runs/run-9", "There is no run run-9."), ("mail/nobody", "nobody")):
            await tab.page.evaluate("place => { location.hash = `#/${place}`; }", place)
            await expect(alert).to_contain_text(text)
            await expect(alert).to_have_count(1)
        await tab.page.evaluate("location.hash = '#/sessions/a9'")
        await expect(tab.page.get_by_role("heading", name="This session has ended")).to_be_visible()
