"""Conversations on the page, end to end: the service of conversations, scripted lanes, a real browser."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, BrowserContext, Locator, expect

from laneway.core.model import PlanStep
from laneway.doors.chat.service import ChatService
from laneway.testing.chat_script import ScriptedLane, ScriptedLanes
from tests.browser.support import ServedChat, Tab, chat_page, window
from tests.doors.chat.chats import Talk, chatting
from tests.doors.chat.platforms.terminal.stage import seat

pytestmark = pytest.mark.asyncio(loop_scope="session")


class Desk:
    """A person at the page of a real service, whose lanes the test drives."""

    def __init__(
        self, chat: ChatService, lanes: ScriptedLanes, served: ServedChat, context: BrowserContext
    ) -> None:
        self.chat, self.lanes, self.served, self.context = chat, lanes, served, context
        self.tab: Tab

    async def open(self, address: str = "") -> Tab:
        tab = Tab(await self.context.new_page())
        await tab.open(address or self.served.address)
        return tab

    async def lane(self, name: str) -> ScriptedLane:
        while not any(lane.name == name for lane in self.lanes.made):
            await asyncio.sleep(0.01)
        return self.lanes.lane(name, 0)  # of the first conversation

    @property
    def address(self) -> str:
        """Of the conversation that the first tab shows."""
        return f"{self.served.address}&to=/{self.tab.page.url.partition('#/')[2]}"


@asynccontextmanager
async def desk(browser: Browser, folder: Path, **options: Any) -> AsyncIterator[Desk]:
    lanes = ScriptedLanes()
    async with (
        asyncio.timeout(90),
        chatting(folder, lanes, **options) as chat,
        chat_page(chat, folder / "uploads") as served,
        window(browser) as context,
    ):
        here = Desk(chat, lanes, served, context)
        here.tab = await here.open()
        yield here
        assert here.tab.faults == []


@pytest.mark.covers("003-verify.5", "003-case.8", "003-case.9", "003-case.11", "003-case.15")
async def test_a_task_of_codex_is_shown_as_the_document_says(browser: Browser, tmp_path: Path) -> None:
    """Usage; banners; calls; thoughts folded; one plan that changes; the diff at the end."""
    async with desk(browser, tmp_path) as here:
        tab, page = here.tab, here.tab.page
        await tab.say("/codex")
        await tab.see("Usage: /codex <task>")
        await tab.say("/codex mend the tests")
        turn = await (await here.lane("codex")).begun()
        assert turn.given.text == "mend the tests"
        await expect(page.locator(".banner.begins")).to_contain_text("codex started")
        turn.thought("I should look first.")
        turn.plan(PlanStep(text="Look", status="running"), PlanStep(text="Mend", status="pending"))
        turn.command("make test")
        await tab.see("codex::Bash(make test)")
        turn.command("make test", status="failed", exit_code=2, output="1 failed")
        turn.plan(PlanStep(text="Look", status="completed"), PlanStep(text="Mend", status="running"))
        await expect(page.locator(".plan")).to_have_count(1)
        await expect(page.locator(".plan li").first).to_have_text("☑ Look")
        await expect(page.get_by_text("I should look first.")).to_be_hidden()
        turn.diff("diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n")
        turn.say("Mended.")
        await expect(page.locator(".banner.ends")).to_contain_text("codex is done")
        await expect(page.locator(".banner.ends summary")).to_contain_text("a.py (+1 −1)")
        await tab.see("Mended.")


@pytest.mark.covers("003-verify.7", "003-case.5")
async def test_the_answer_to_a_question_of_codex_goes_to_codex(browser: Browser, tmp_path: Path) -> None:
    """By words in the field for messages, by the form, by a button; nothing goes to Claude."""
    async with desk(browser, tmp_path) as here:
        tab = here.tab
        await tab.say("/codex paint the shed")
        turn = await (await here.lane("codex")).begun()
        asked = turn.ask_words("Which colour?", ("red", "blue"))
        await expect(tab.page.locator(".question")).to_contain_text("Which colour?")
        await tab.say("a warm green")
        assert (await turn.answered(asked)).values == {"answer": "a warm green"}
        await expect(tab.page.locator(".question")).to_have_count(0)
        asked = turn.ask_words("Which brush?", ("wide", "fine"))
        await tab.page.locator(".question").get_by_label("fine").check()
        await tab.press("Answer")
        assert (await turn.answered(asked)).values == {"answer": "fine"}
        asked = turn.approve("rm -r old-paint")
        await tab.see("rm -r old-paint")
        await tab.press("Allow once")
        assert (await turn.answered(asked)).choice_id == "accept"
        turn.say("Painted.")
        await tab.see("Painted.")
        assert [lane.name for lane in here.lanes.made if lane.turns] == ["codex"]


@pytest.mark.covers("003-verify.8", "003-verify.9", "003-case.1")
async def test_a_message_interrupts_codex_and_claude_is_told_what_it_did(
    browser: Browser, tmp_path: Path
) -> None:
    async with desk(browser, tmp_path) as here:
        await here.tab.say("/codex rewrite everything")
        turn = await (await here.lane("codex")).begun()
        turn.accept()
        turn.command("rm -r docs")
        turn.command("rm -r docs", status="completed", exit_code=0)
        await here.tab.see("codex::Bash(rm -r docs)")
        await here.tab.say("stop, what have you done?")
        await turn.interrupted()
        claude = await (await here.lane("claude")).begun()
        assert claude.given.text == "stop, what have you done?"
        assert "rm -r docs" in claude.given.context
        await here.tab.see("was stopped")
        await expect(here.tab.page.get_by_role("button", name="Continue", exact=True)).to_be_visible()
        claude.say("It has removed the documents.")
        await here.tab.see("It has removed the documents.")


@pytest.mark.covers("003-case.4")
async def test_a_crash_is_told_and_the_stop_button_ends_a_turn(browser: Browser, tmp_path: Path) -> None:
    async with desk(browser, tmp_path) as here:
        tab = here.tab
        await tab.say("/codex work")
        lane = await here.lane("codex")
        (await lane.begun()).die()
        await tab.see("The engine has ended.")
        await tab.say("/codex again")
        again = await lane.begun(2)
        await tab.press("Stop")
        await again.interrupted()
        await tab.see("was stopped")


async def test_two_tabs_and_a_terminal_share_one_conversation(browser: Browser, tmp_path: Path) -> None:
    """`/link` on the page, `/join` in the terminal: words with their names, questions answered once."""
    async with desk(browser, tmp_path) as here:
        await here.tab.say("begin here")
        (await (await here.lane("claude")).begun()).say("Begun.")
        await here.tab.see("Begun.")
        other = await here.open(here.address)
        await other.see("Begun.")
        await here.tab.say("/link")
        await expect(here.tab.page.locator(".told")).to_contain_text("/join ")
        found = re.search(r"/join (\w{10})", await here.tab.shown())
        assert found, await here.tab.shown()
        async with seat(here.chat) as person:  # type: ignore[arg-type]  # a `Chat` is all that it needs
            person.type(f"/join {found[1]}")
            person.press("enter")
            await person.see("This place shows the conversation now.")
            await person.see("Begun.")
            person.type("from the terminal")
            person.press("enter")
            turn = await (await here.lane("claude")).begun(2)
            for tab in (here.tab, other):
                await expect(tab.page.locator(".said", has_text="from the terminal")).to_contain_text(
                    "terminal"
                )
            asked = turn.approve("make shared")
            await person.see("make shared")
            await other.see("make shared")
            await here.tab.see("make shared")
            await other.press("Allow once")
            assert (await turn.answered(asked)).choice_id == "accept"
            await expect(here.tab.page.locator(".question")).to_have_count(0)
            await here.tab.see("answered by you")
            await person.until(lambda: person.conversation.front is None, "question closed in the terminal")
            await here.tab.say("from the page")
            await person.see("you (web):")
            person.type(f"/join {found[1]}")  # a code works once
            person.press("enter")
            await person.see("That code is not valid")
        # Each of the two places was told of the code, or of its refusal, and not the other.
        assert "That code is not valid" not in await here.tab.shown()


async def test_new_and_resume_lead_to_other_conversations(browser: Browser, tmp_path: Path) -> None:
    async with desk(browser, tmp_path) as here:
        await here.tab.say("the first one")
        (await (await here.lane("claude")).begun()).say("First answer.")
        await here.tab.see("First answer.")
        await here.tab.say("/new")
        await here.tab.see("A new conversation.")
        await expect(here.tab.page.locator(".log")).not_to_contain_text("First answer.")
        await here.tab.page.get_by_role("link", name=re.compile("the first one")).click()
        await expect(here.tab.page.locator(".log")).to_contain_text("First answer.")


async def test_a_conversation_that_another_process_holds_is_refused_by_its_name(
    browser: Browser, tmp_path: Path
) -> None:
    lanes = ScriptedLanes()
    async with chatting(tmp_path, lanes) as other, asyncio.timeout(60):
        talk = Talk(other)
        state = await talk.join()
        await talk.say("held by another process")
        async with desk(browser, tmp_path) as here:
            held = here.tab.page.get_by_role("link", name=re.compile("held by another process"))
            await held.click()
            await here.tab.see(f"The conversation {state.record.conversation_id} is open in")
            await expect(here.tab.page.get_by_label("Message", exact=True)).to_be_hidden()


async def test_the_server_is_killed_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    """What was sent meanwhile arrives once; the question of the dead process is void, and says so."""
    async with window(browser) as context, asyncio.timeout(90):
        tab = Tab(await context.new_page())
        async with killable(tmp_path) as (address, kill):
            await tab.open(address)
            await tab.say("ask me")
            await tab.see("Half an ans")
            await expect(tab.page.locator(".question")).to_contain_text("make something")
            await kill()
            await expect(tab.page.locator("#connection")).to_contain_text("Connection lost")
            await tab.see("Half an ans")
            await tab.say("are you there?")
            await tab.see("Sending …")
        async with killable(tmp_path, port=urlsplit(address).port or 0):
            await expect(tab.page.locator("#connection")).to_have_text("Connected")
            await tab.see("You said: are you there?")
            await expect(tab.page.locator(".question")).to_have_count(0)
            await tab.see("not answered: Laneway ended")
            await expect(tab.page.locator(".said", has_text="are you there?")).to_have_count(1)
            assert (await tab.shown()).count("You said: are you there?") == 1
        assert tab.faults == []


@asynccontextmanager
async def killable(folder: Path, port: int = 0) -> AsyncIterator[tuple[str, Callable[[], Awaitable[None]]]]:
    """A process with the page and scripted lanes; its address, and what kills it."""
    words = [sys.executable, "-m", "tests.browser.killable", str(folder), str(port)]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)

    async def kill() -> None:
        process.kill()
        await process.wait()

    assert process.stdout
    try:
        yield (await process.stdout.readline()).decode().strip(), kill
    finally:
        if process.returncode is None:
            await kill()


async def test_a_secret_is_neither_shown_nor_stored(browser: Browser, tmp_path: Path) -> None:
    async with desk(browser, tmp_path) as here:
        await here.tab.say("/codex log in")
        turn = await (await here.lane("codex")).begun()
        asked = turn.ask_words("The password?", is_secret=True)
        await here.tab.page.locator("input[type=password]").fill("correct horse battery")
        await here.tab.press("Answer")
        assert (await turn.answered(asked)).values == {"answer": "correct horse battery"}
        turn.say("Logged in.")
        await here.tab.see("Logged in.")
        assert "correct horse" not in await here.tab.page.content()
        await here.tab.page.reload()
        await here.tab.see("Logged in.")
        assert "correct horse" not in await here.tab.page.content()
        assert b"correct horse" not in everything_below(tmp_path)


def everything_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_a_conversation_stands_in_every_list_by_its_first_words(
    browser: Browser, tmp_path: Path
) -> None:
    """From the start where it is shown; elsewhere as soon as something was said; the latest is first."""
    async with desk(browser, tmp_path) as here:
        heading = here.tab.page.get_by_role("heading", level=1)
        mine, theirs = (each.get_by_role("link") for each in (lists(here.tab), lists(await here.open())))
        await expect(mine).to_have_count(1)
        await expect(mine.first).to_contain_text("New conversation")
        await here.tab.say("mend the\nroof")
        await expect(heading).to_have_text("mend the roof")
        await expect(mine.first).to_contain_text("mend the roof")
        await expect(theirs.filter(has_text="mend the roof")).to_have_count(1)

        await here.tab.press("New conversation")
        await expect(heading).to_have_text("New conversation")
        await here.tab.say("paint the door")
        await expect(heading).to_have_text("paint the door")
        await expect(theirs.first).to_contain_text("paint the door")
        await mine.filter(has_text="mend the roof").click()
        await expect(heading).to_have_text("mend the roof")
        await here.tab.say("and the gutter")
        await expect(theirs.first).to_contain_text("mend the roof")


def lists(tab: Tab) -> Locator:
    return tab.page.get_by_role("complementary", name="Conversations")


async def test_the_field_for_messages_has_room_for_a_line_and_for_a_draft(
    browser: Browser, tmp_path: Path
) -> None:
    """Also where it was filled before it came to the screen."""
    async with desk(browser, tmp_path) as here:
        box = here.tab.page.get_by_label("Message", exact=True)
        assert await box.evaluate("(box) => box.clientHeight >= box.scrollHeight")
        await box.fill("one\ntwo\nthree")
        await here.tab.page.reload()
        await expect(box).to_have_value("one\ntwo\nthree")
        await expect(box).to_be_focused()
        assert await box.evaluate("(box) => box.clientHeight >= box.scrollHeight")
