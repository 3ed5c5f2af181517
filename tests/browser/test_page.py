"""The page of conversations in a real browser: what people do there, and what they see."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, FilePayload, Route, expect

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
from tests.browser.support import DEADLINE_MS, ServedChat, Tab, chat_page, conversation_of, window

pytestmark = pytest.mark.asyncio(loop_scope="session")
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
NOTICES = """
  window.notices = [];
  window.Notification = class { constructor(title, more) { notices.push([title, more.body]); } close() {} };
  Notification.permission = "granted";
  document.hasFocus = () => false;
"""

RESET = """
  new BroadcastChannel("laneway.events").postMessage({ event: { id: null, kind: "reset", data: "{}" } })
"""
"""What the tab that reads the stream tells the others when too much was missed."""


def saved(path: Path) -> bytes:
    return path.read_bytes()


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


# ── one stream, many tabs ──────────────────────────────────────────────────


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


# ── files ──────────────────────────────────────────────────────────────────


async def test_files_are_chosen_pasted_and_dropped(browser: Browser, tmp_path: Path) -> None:
    async with visit(browser, tmp_path) as here:
        page = here.tab.page
        await page.locator("input[type=file]").set_input_files(
            FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"some words")
        )
        for kind, target in (("paste", "textarea"), ("drop", ".log")):
            await page.evaluate(
                """([kind, target]) => {
                  const data = new DataTransfer();
                  const bytes = Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10, 0, 0]);
                  data.items.add(new File([bytes], kind + ".png", { type: "image/png" }));
                  const event = kind === "paste"
                    ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
                    : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
                  document.querySelector(target).dispatchEvent(event);
                }""",
                [kind, target],
            )
        chips = page.locator(".chips li")
        await expect(chips).to_have_count(3)
        await expect(chips.nth(0)).to_contain_text("notes.txt (10 B)")
        await page.get_by_role("button", name="Leave paste.png out").click()
        await expect(chips).to_have_count(2)
        await here.tab.say("look at this")
        message = await here.chat.next_taken()
        assert message.text.startswith("look at this\n[Attached file: ")
        assert message.text.endswith(" (named notes.txt)]")
        (image,) = message.images
        assert image.parent == tmp_path / "uploads"
        assert re.fullmatch(r"[0-9a-f]{24}\.png", image.name)  # a name of ours
        assert image.read_bytes().startswith(b"\x89PNG")
        assert (image.stat().st_mode & 0o777, image.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_what_is_too_much_for_a_message_is_said_before_it_is_sent(
    browser: Browser, tmp_path: Path
) -> None:
    async with visit(browser, tmp_path) as here:
        picker = here.tab.page.locator("input[type=file]")
        (tmp_path / "large.bin").touch()
        with (tmp_path / "large.bin").open("wb") as large:
            large.truncate(20 * 1024 * 1024 + 1)
        await picker.set_input_files(tmp_path / "large.bin")
        await here.tab.see("large.bin is larger than 20 MB.")
        some = [FilePayload(name=f"{n}.txt", mimeType="text/plain", buffer=b"x") for n in range(11)]
        await picker.set_input_files(some)
        await here.tab.see("A message has at most 10 files.")
        await expect(here.tab.page.locator(".chips li")).to_have_count(10)
        await here.tab.say("x" * 400_001)
        await here.tab.see("A message has at most 400,000 characters: add a longer text as a file.")
        await expect(here.tab.page.get_by_label("Message", exact=True)).to_have_value("x" * 400_001)
        assert here.chat.taken == []


async def test_a_file_of_a_lane_is_saved_and_one_that_is_ignored_only_after_a_yes(
    browser: Browser, tmp_path: Path
) -> None:
    async with visit(browser, tmp_path) as here:
        page = here.tab.page
        (tmp_path / "chart.png").write_bytes(PNG)
        outside = tmp_path.parent / f"{tmp_path.name}-outside.txt"
        outside.write_text("not below the folder")
        here.show(FileShown(lane="codex", path="chart.png", name="chart.png", caption="The chart"))
        async with page.expect_download() as download:
            await here.tab.press("Save")
        assert saved(await (await download.value).path()) == PNG
        await here.tab.press("Show")
        await expect(page.get_by_role("img", name="The chart")).to_have_attribute(
            "src", re.compile(r"^blob:")
        )
        here.show(FileShown(lane="codex", path=str(outside), name="<b>.txt"))
        await expect(page.get_by_text("<b>.txt", exact=True)).to_be_visible()
        await here.tab.press("Save")
        await here.tab.see("is outside of the conversation's folder")
        async with page.expect_download() as download:
            await here.tab.press("Send it anyway")
        assert saved(await (await download.value).path()) == b"not below the folder"
        outside.unlink()


async def test_a_conversation_is_searched_and_exported_as_one_file(browser: Browser, tmp_path: Path) -> None:
    async with visit(browser, tmp_path) as here:
        page = here.tab.page
        await here.tab.say("What about <script>alert(1)</script>?")
        for number in range(60):
            here.text(f"Answer {number}: " + ("the needle" if number == 7 else "hay ") * 3)
        await here.tab.see("Answer 59")
        await here.tab.press("Search")
        await page.get_by_label("Search in this conversation").last.fill("NEEDLE")
        await page.keyboard.press("Enter")
        await here.tab.see("Found once.")
        await page.locator(".results button").click()
        await expect(page.locator(".entry:focus")).to_contain_text("Answer 7:")
        async with page.expect_download() as download:
            await here.tab.press("Export")
        text = saved(await (await download.value).path()).decode()
        assert "<script" not in text
        assert "default-src 'none'" in text
        shown = await here.context.new_page()
        await shown.set_content(text)
        await expect(shown.locator("body")).to_contain_text("What about <script>alert(1)</script>?")
        await expect(shown.locator("body")).to_contain_text("Answer 59")


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
