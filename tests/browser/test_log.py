"""The log of a conversation in a real browser: where it stands, and what earlier things look like."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.async_api import Browser, expect

from laneway.core.model import Activity, FileChange, Plan, PlanStep
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import (
    ActivityShown,
    InputReceipt,
    PlanShown,
    QuestionOver,
    Said,
    TextDone,
    TurnBegan,
    TurnEnded,
)
from laneway.testing.hand_chat import HandChat, approval, field, form
from tests.browser.support import Tab, chat_page, conversation_of, window

pytestmark = pytest.mark.asyncio(loop_scope="session")


def command(name: str, status: str, output: str = "") -> ActivityShown:
    activity = Activity(
        turn_id="t1",
        item_id=name,
        kind="command",
        title=name,
        status=status,  # type: ignore[arg-type]
        output=output,
    )
    return ActivityShown(lane="codex", ticket="t1", activity=activity)


def plan(status: str) -> PlanShown:
    steps = (PlanStep(text="Look", status=status),)  # type: ignore[arg-type]
    return PlanShown(lane="codex", ticket="t1", plan=Plan(turn_id="t1", steps=steps))


def talk(chat: HandChat, conversation: str, count: int) -> None:
    for number in range(count):
        text = TextDone(lane="codex", ticket="t1", part=f"p{number}", text=f"Line {number}\n\n" * 3)
        chat.show(conversation, text)


async def test_what_ends_a_turn_is_on_the_screen_unless_somebody_reads_above(
    browser: Browser, tmp_path: Path
) -> None:
    """Entries get their real height when they are first on the screen: the end is followed all the same."""
    chat = HandChat(cwd=str(tmp_path))
    async with chat_page(chat, tmp_path / "uploads") as served, window(browser) as context:
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        conversation = conversation_of(tab.page)
        chat.show(conversation, TurnBegan(lane="codex", ticket="t1", task="long\n" * 12, has_banner=True))
        for number in range(12):
            chat.show(conversation, command(f"c{number}", "completed", "x\n" * 500))
        talk(chat, conversation, 30)
        chat.show(conversation, TurnEnded(lane="codex", ticket="t1", status="completed", has_banner=True))
        ends = tab.page.locator(".banner.ends")
        await expect(ends).to_be_in_viewport(ratio=1)
        await expect(tab.page.get_by_role("button", name="Newest")).to_be_hidden()

        await tab.page.get_by_text("Line 20").first.scroll_into_view_if_needed()
        await tab.page.locator(".log").press("Home")
        await expect(tab.page.locator(".banner.begins")).to_be_in_viewport()
        talk(chat, conversation, 1)
        newest = tab.page.get_by_role("button", name="Newest")
        await expect(newest).to_be_visible()
        await expect(ends).not_to_be_in_viewport()
        await newest.click()
        await expect(tab.page.locator(".entry").last).to_be_in_viewport()
        assert tab.faults == []


async def test_earlier_things_are_shown_as_they_ended(browser: Browser, tmp_path: Path) -> None:
    """Each in its place, once; what changed it may have been read before."""
    chat = HandChat(cwd=str(tmp_path))
    chat.add("c9")
    chat.show(
        "c9",
        Said(
            input_id=7,
            place=Place(platform="telegram", chat="7"),
            message_id="m7",
            sender="Ana",
            platform="telegram",
            text="Please look.",
        ),
    )
    chat.ask("c9", approval("make test"), lane="codex")
    for output in (plan("pending"), plan("running"), command("early", "running"), command("early", "failed")):
        chat.show("c9", output)
    chat.show("c9", command("late", "running"))
    talk(chat, "c9", 500)
    chat.show("c9", command("late", "completed"))
    chat.show("c9", plan("completed"))
    chat.show("c9", QuestionOver(number=1, lane="codex", how="answered", by="Ben", text="Allow once"))
    receipt = InputReceipt(
        input_id=7, message_id="m7", place=Place(platform="telegram", chat="7"), kind="kept"
    )
    chat.show("c9", receipt)
    async with chat_page(chat, tmp_path / "uploads") as served, window(browser) as context:
        tab = Tab(await context.new_page())
        await tab.open(f"{served.address}&to=/chat/c9")
        page = tab.page
        await expect(page.get_by_text("Please look.")).to_have_count(0)
        await tab.press("Show earlier")
        await expect(page.locator(".said")).to_contain_text("Kept for your next message")
        await expect(page.locator(".entry.asked")).to_contain_text("answered by Ben: Allow once")
        await expect(page.locator(".activity.failed")).to_contain_text("early")
        await expect(page.locator(".activity.completed")).to_contain_text("late")
        await expect(page.locator(".activity")).to_have_count(2)
        await expect(page.locator(".plan li")).to_have_text(["☑ Look"])
        texts = await page.locator(".answer .text").all_text_contents()
        assert texts == [f"Line {number}" * 3 for number in range(500)]
        await expect(page.locator(".entry").first).to_contain_text("Please look.")
        assert tab.faults == []


async def test_the_list_on_a_telephone_opens_and_closes_in_every_way(
    browser: Browser, tmp_path: Path
) -> None:
    """Escape, its button, a press beside it (which does nothing else), and the conversation that is open."""
    chat = HandChat(cwd=str(tmp_path))
    size = {"width": 360, "height": 740}
    async with (
        chat_page(chat, tmp_path / "uploads") as served,
        window(browser, viewport=size) as context,
    ):
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        side = tab.page.get_by_role("complementary", name="Conversations")
        opener = tab.page.get_by_role("button", name="All conversations")
        await expect(side).to_be_hidden()
        await opener.click()
        await expect(side).to_be_visible()
        await tab.page.keyboard.press("Escape")
        await expect(side).to_be_hidden()
        await expect(opener).to_be_focused()
        await opener.click()
        await side.get_by_role("button", name="Close").click()
        await expect(side).to_be_hidden()
        await opener.click()
        await side.get_by_role("link").first.click()
        await expect(side).to_be_hidden()
        await tab.page.get_by_label("Message", exact=True).fill("not yet")
        await opener.click()
        await tab.page.get_by_role("button", name="Send").click()
        await expect(side).to_be_hidden()
        await expect(tab.page.get_by_label("Message", exact=True)).to_have_value("not yet")
        assert chat.taken == []
        assert tab.faults == []


async def test_files_below_the_folder_are_named_as_they_are_there_and_a_hint_is_not_said_twice(
    browser: Browser, tmp_path: Path
) -> None:
    chat = HandChat(cwd=str(tmp_path))
    async with chat_page(chat, tmp_path / "uploads") as served, window(browser) as context:
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        conversation = conversation_of(tab.page)
        changes = tuple(
            FileChange(path=path, kind="add", diff="hello\n")
            for path in (f"{tmp_path}/src/a.py", "/etc/b.conf")
        )
        edit = Activity(
            turn_id="t1", item_id="e1", kind="edit", title="Edit", status="completed", changes=changes
        )
        chat.show(conversation, ActivityShown(lane="codex", ticket="t1", activity=edit))
        await expect(tab.page.locator(".diffs summary")).to_have_text(
            "Changes: src/a.py (+1 −0), /etc/b.conf (+1 −0)"
        )
        question = form(field("colour", "Which colour?", ("red", "blue")), message="Which colour?")
        chat.ask(conversation, question)
        await expect(tab.page.locator(".question").get_by_text("Which colour?")).to_have_count(1)
        assert tab.faults == []


@pytest.mark.parametrize("size", [(1280, 800), (360, 740)], ids=["wide", "narrow"])
async def test_the_buttons_of_a_question_are_on_the_screen_however_much_it_shows(
    browser: Browser, tmp_path: Path, size: tuple[int, int]
) -> None:
    """A new file of a thousand lines, or a command of a hundred. A new file has no empty left side."""
    chat = HandChat(cwd=str(tmp_path))
    width, height = size
    async with (
        chat_page(chat, tmp_path / "uploads") as served,
        window(browser, viewport={"width": width, "height": height}) as context,
    ):
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        conversation = conversation_of(tab.page)
        change = FileChange(path="big.txt", kind="add", diff="".join(f"line {n}\n" for n in range(1000)))
        chat.ask(conversation, replace(approval("make big"), kind="patch", changes=(change,)))
        question = tab.page.locator(".question")
        await expect(question.locator(".new.code").first).to_have_text("line 0")
        await expect(question.locator(".old")).to_have_count(0)
        buttons = question.get_by_role("button")
        for at in range(await buttons.count()):
            await expect(buttons.nth(at)).to_be_in_viewport(ratio=1)
        chat.show(conversation, QuestionOver(number=1, lane="claude", how="declined"))
        chat.ask(conversation, approval("\n".join(f"echo {n}" for n in range(100))))
        await expect(question).to_contain_text("echo 99")
        for at in range(await buttons.count()):
            await expect(buttons.nth(at)).to_be_in_viewport(ratio=1)
        assert tab.faults == []


async def test_a_diff_on_a_telephone_has_the_width_of_the_screen(browser: Browser, tmp_path: Path) -> None:
    """Before and after stand below each other; a line of usual length is one line."""
    chat = HandChat(cwd=str(tmp_path))
    async with (
        chat_page(chat, tmp_path / "uploads") as served,
        window(browser, viewport={"width": 360, "height": 740}) as context,
    ):
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        conversation = conversation_of(tab.page)
        changed = "@@ -1,2 +1,2 @@\n one line of text\n-another line\n+a new line\n"
        changes = (
            FileChange(path="a.py", kind="update", diff=changed),
            FileChange(path="b.py", kind="add", diff="the only line\n"),
        )
        edit = Activity(
            turn_id="t1", item_id="e1", kind="edit", title="Edit", status="completed", changes=changes
        )
        chat.show(conversation, ActivityShown(lane="codex", ticket="t1", activity=edit))
        await tab.page.get_by_text("Changes: ").click()
        for text in ("one line of text", "another line", "a new line", "the only line"):
            cell = tab.page.locator(".diff .code:visible", has_text=text)
            await expect(cell).to_have_count(1)
            box = await cell.bounding_box()
            assert box
            assert box["width"] > 240, text
            assert box["height"] < 30, text
        assert tab.faults == []
