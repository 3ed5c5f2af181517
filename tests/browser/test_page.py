"""The page of conversations in a real browser: its door, what lanes show, questions, keys and contrast."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, expect

from laneway.core.model import Activity, FileChange, Plan, PlanStep
from laneway.doors.chat.outputs import (
    ActivityShown,
    FileShown,
    OutputDelta,
    PlanShown,
    StatusNow,
    TextDelta,
    TextDone,
    Told,
    TurnBegan,
    TurnEnded,
)
from laneway.testing.hand_chat import HandChat, approval, field, form
from tests.browser.support import Tab, chat_page, window
from tests.browser.visiting import NOTICES, command, visit

pytestmark = pytest.mark.asyncio(loop_scope="session")


# ── the door ───────────────────────────────────────────────────────────────


async def test_the_token_leaves_the_address_and_no_cookie_is_set(browser: Browser, tmp_path: Path) -> None:
    async with visit(browser, tmp_path) as here:
        assert "token" not in here.tab.page.url
        assert await here.context.cookies() == []
        stored = await here.tab.page.evaluate("[{...sessionStorage}, {...localStorage}]")
        assert list(stored[0]) == ["laneway.token"]
        assert stored[1] == {}
        history = await here.tab.page.evaluate("history.length")
        assert history <= 3  # the blank page, the page, the conversation: none has the token
        await here.tab.page.evaluate("sessionStorage.clear()")
        await here.tab.page.reload()
        await here.tab.see("Laneway printed an address with a token")
        box = here.tab.page.get_by_label("Token, or the whole address")
        await box.fill("not the token")
        await box.press("Enter")
        await here.tab.see("This is not the token")
        await box.fill(here.served.address)
        await box.press("Enter")
        await expect(here.tab.page.get_by_label("Message", exact=True)).to_be_visible()


async def test_nothing_is_loaded_from_elsewhere_and_no_script_stands_in_the_page(
    browser: Browser, tmp_path: Path
) -> None:
    async with window(browser) as context, chat_page(HandChat(), tmp_path) as served:
        asked: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        tab = Tab(await context.new_page())
        await tab.open(served.address)
        assert {url.split("/")[2] for url in asked if not url.startswith("blob:")} == {
            f"127.0.0.1:{served.port}"
        }
        inline = "document.querySelectorAll('script:not([src]), [onclick], [onerror], style').length"
        assert await tab.page.evaluate(inline) == 0
        # What the browser is asked to run all the same, it refuses.
        script = "document.body.appendChild(document.createElement('script')).textContent = 'window.ran = 1'"
        await tab.page.evaluate(f"try {{ {script} }} catch {{}}")
        assert await tab.page.evaluate("window.ran") is None


# ── what lanes show ────────────────────────────────────────────────────────


async def test_a_turn_is_shown_with_plan_thoughts_commands_and_diffs(
    browser: Browser, tmp_path: Path
) -> None:
    async with visit(browser, tmp_path) as here:
        page = here.tab.page
        diff = "@@ -1,2 +1,2 @@\n one\n-old line\n+new line\n"
        steps = (PlanStep(text="Look", status="completed"), PlanStep(text="Mend", status="running"))
        edit = Activity(
            turn_id="t1",
            item_id="e1",
            kind="edit",
            title="Edit a.py",
            status="completed",
            changes=(FileChange(path="a.py", kind="update", diff=diff),),
        )
        here.show(
            TurnBegan(lane="codex", ticket="t1", task="mend it", has_banner=True, sender="you"),
            StatusNow(default_lane="claude", active_lane="codex", model="gpt-5", tokens=12_345),
            TextDone(lane="codex", ticket="t1", part="h1", text="Is it the *second* line?", kind="thought"),
            PlanShown(lane="codex", ticket="t1", plan=Plan(turn_id="t1", steps=steps)),
            ActivityShown(lane="codex", ticket="t1", activity=command("running")),
            OutputDelta(lane="codex", ticket="t1", item_id="c1", text="collecting …\n"),
        )
        await expect(page.locator(".activity.running summary")).to_contain_text("codex::Bash(make test)")
        await expect(page.locator(".activity pre")).to_contain_text("collecting …")
        await expect(page.locator(".activity pre")).not_to_be_visible()  # folded
        await expect(page.get_by_text("Is it the second line?")).not_to_be_visible()
        await page.get_by_text("Thoughts").click()
        await expect(page.get_by_text("Is it the second line?")).to_be_visible()
        await expect(page.locator(".plan li")).to_have_text(["☑ Look", "▶ Mend"])
        await expect(page.locator(".status")).to_contain_text("codex works")
        await expect(page.locator(".status")).to_contain_text("12,345 tokens")
        here.show(
            ActivityShown(lane="codex", ticket="t1", activity=command("failed", "1 failed\n", 2)),
            ActivityShown(lane="codex", ticket="t1", activity=edit),
            TurnEnded(lane="codex", ticket="t1", status="completed", has_banner=True, seconds=3.0),
            StatusNow(default_lane="claude", active_lane=None),
        )
        await expect(page.locator(".banner.ends")).to_contain_text("codex is done")
        await expect(page.locator(".activity")).to_have_count(2)
        await page.get_by_text("Changes: a.py").click()
        old, new = page.locator("tr.changed .code.old"), page.locator("tr.changed .code.new")
        await expect(old).to_have_text("old line")
        await expect(new).to_have_text("new line")
        left, right = await old.bounding_box(), await new.bounding_box()
        assert left
        assert right
        assert left["x"] + left["width"] <= right["x"] + 1
        assert abs(left["y"] - right["y"]) < 2


async def test_markdown_is_shown_as_elements_and_links_open_elsewhere(
    browser: Browser, tmp_path: Path
) -> None:
    async with visit(browser, tmp_path) as here:
        here.text("# Title\n\n- **bold** [site](https://example.org)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
        entry = here.tab.page.locator(".answer")
        await expect(entry.locator("h1")).to_have_text("Title")
        await expect(entry.locator("td")).to_have_text(["1", "2"])
        link = entry.locator("a")
        await expect(link).to_have_attribute("rel", "noopener noreferrer")
        await expect(link).to_have_attribute("target", "_blank")


async def test_the_whole_of_a_long_output_is_shown_when_asked_for(browser: Browser, tmp_path: Path) -> None:
    async with visit(browser, tmp_path) as here:
        output = "".join(f"line {number:05} of a long log\n" for number in range(10_000))
        here.show(ActivityShown(lane="claude", ticket="t1", activity=command("completed", output)))
        await here.tab.see("10,000 lines")
        pre = here.tab.page.locator(".activity pre")
        await expect(pre).not_to_contain_text("line 05000")
        await here.tab.page.locator(".activity summary").click()
        await here.tab.press("Show all of it")
        await expect(pre).to_contain_text("line 05000")


# ── questions ──────────────────────────────────────────────────────────────


async def test_a_form_takes_choices_words_and_secrets(browser: Browser, tmp_path: Path) -> None:
    async with visit(browser, tmp_path) as here:
        page = here.tab.page
        fields = (
            field("colour", "Which colour?", ("red", "blue"), allows_other=True),
            field("parts", "Which parts?", ("roof", "door"), is_multiple=True),
            field("password", "The password?", is_secret=True),
        )
        here.chat.ask(here.conversation_id, form(*fields), lane="codex")
        card = page.locator(".question")
        await expect(card).to_contain_text("asks (#1)")
        await card.get_by_label("blue").check()
        await card.get_by_label("roof").check()
        await card.get_by_label("door").check()
        secret = card.locator("input[type=password]")
        await secret.fill("hunter2")
        await card.get_by_role("button", name="Answer", exact=True).click()
        tap = await here.chat.next_tap()
        assert tap.data == "q:1"
        assert tap.values == {"colour": "blue", "parts": ["roof", "door"], "password": "hunter2"}
        await expect(secret).to_have_value("")
        here.chat.settle(here.conversation_id, 1, "blue; roof, door")
        await expect(card).to_have_count(0)
        await here.tab.see("answered by you: blue; roof, door")
        stored = await page.evaluate("JSON.stringify({...sessionStorage})")
        assert "hunter2" not in stored + await page.content()


async def test_a_no_can_carry_words_and_a_question_can_be_skipped(browser: Browser, tmp_path: Path) -> None:
    async with visit(browser, tmp_path) as here:
        here.chat.ask(here.conversation_id, form(field("name", "Which name?")))
        await here.tab.press("Skip")
        message = await here.chat.next_taken()
        assert message.reply is not None
        assert (message.text, message.reply.question) == ("skip", 1)


async def test_open_questions_survive_a_reload_and_past_ones_do_not_ask_again(
    browser: Browser, tmp_path: Path
) -> None:
    async with visit(browser, tmp_path) as here:
        await here.context.add_init_script(NOTICES)
        chat, tab = here.chat, here.tab
        first = chat.ask(here.conversation_id, approval("make first"))
        chat.ask(here.conversation_id, approval("make second"))
        await expect(tab.page.locator(".question")).to_have_count(2)
        chat.settle(here.conversation_id, first)
        await expect(tab.page.locator(".question")).to_have_count(1)
        await tab.page.reload()
        await expect(tab.page.locator(".question")).to_have_count(1)
        await expect(tab.page.locator(".question")).to_contain_text("make second")
        here.text("Something else.")
        await tab.see("Something else.")
        assert await tab.page.evaluate("notices") == []
        await tab.press("Allow once")
        assert (await chat.next_tap()).data == "q:2:0"


# ── for everybody ──────────────────────────────────────────────────────────


async def test_all_of_it_works_with_the_keyboard(browser: Browser, tmp_path: Path) -> None:
    async with visit(browser, tmp_path) as here:
        page, keys = here.tab.page, here.tab.page.keyboard
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()
        await keys.type("/co")
        await expect(page.get_by_role("option")).to_have_count(1)
        await keys.press("ArrowDown")
        await expect(page.get_by_role("option", selected=True)).to_contain_text("/codex")
        await keys.press("Enter")
        await expect(page.get_by_label("Message", exact=True)).to_have_value("/codex ")
        await keys.type("one")
        await keys.press("Shift+Enter")
        await keys.type("two")
        await keys.press("Enter")
        assert (await here.chat.next_taken()).text == "/codex one\ntwo"
        await expect(page.get_by_label("Message", exact=True)).to_have_value("")
        here.chat.ask(here.conversation_id, approval("make keys"))
        await expect(page.locator(".question")).to_have_count(1)
        await keys.press("Shift+Tab")
        for _ in range(20):
            if await page.evaluate("document.activeElement.textContent") == "Allow once":
                break
            await keys.press("Shift+Tab")
        await keys.press("Enter")
        assert (await here.chat.next_tap()).data == "q:1:0"
        here.chat.settle(here.conversation_id, 1)
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()
        await here.tab.press("Search")
        await expect(page.get_by_label("Search in this conversation").last).to_be_focused()
        await keys.press("Escape")
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
async def test_nobody_is_kept_out(browser: Browser, tmp_path: Path, scheme: str, width: int) -> None:
    """Checked by axe-core, with everything on the page that there is; nothing has to be scrolled sideways."""
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    async with visit(browser, tmp_path, **options) as here:
        page = here.tab.page
        await here.tab.say("Please mend `a.py`, which has a very_long_name_without_any_place_to_break_" * 3)
        steps = (PlanStep(text="Look", status="completed"), PlanStep(text="Mend", status="running"))
        diff = "@@ -1,2 +1,2 @@\n one\n-old line\n+new line\n"
        edit = Activity(
            turn_id="t1",
            item_id="e1",
            kind="edit",
            title="Edit a.py",
            status="completed",
            changes=(FileChange(path="a.py", kind="update", diff=diff),),
        )
        here.show(
            TurnBegan(lane="codex", ticket="t1", task="mend it", has_banner=True),
            TextDone(lane="codex", ticket="t1", part="h1", text="Is it?", kind="thought"),
            PlanShown(lane="codex", ticket="t1", plan=Plan(turn_id="t1", steps=steps)),
            ActivityShown(lane="codex", ticket="t1", activity=command("failed", "1 failed\n" * 40, 2)),
            ActivityShown(lane="codex", ticket="t1", activity=edit),
            TextDone(
                lane="codex", ticket="t1", part="p1", text="Done: `a.py`.\n\n```\n" + "x" * 300 + "\n```"
            ),
            FileShown(lane="codex", path="a.png", name="a.png"),
            Told(text="The context was compacted.", level="warning"),
            TextDelta(lane="codex", ticket="t1", part="p2", offset=0, text="More to come"),
            StatusNow(default_lane="claude", active_lane="codex", tokens=10),
        )
        here.chat.ask(here.conversation_id, approval("make test"), lane="codex")
        here.chat.ask(
            here.conversation_id,
            form(field("c", "Which?", ("red", "blue"), allows_other=True), field("s", "?", is_secret=True)),
        )
        await expect(page.locator(".question")).to_have_count(2)
        await page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        results = await Axe().run(page)
        assert results.violations_count == 0, results.generate_report()
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await page.evaluate(wide) <= 0
        assert await page.evaluate("document.querySelector('.log').scrollWidth <= innerWidth")
        if width == 360:
            await page.get_by_role("button", name="All conversations").click()
            await expect(page.get_by_role("button", name="New conversation")).to_be_visible()
