"""The page in a real browser: files that people attach, files of lanes, search and export."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, FilePayload, expect

from laneway.doors.chat.outputs import (
    FileShown,
)
from tests.browser.visiting import visit

pytestmark = pytest.mark.asyncio(loop_scope="session")
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def saved(path: Path) -> bytes:
    return path.read_bytes()


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
