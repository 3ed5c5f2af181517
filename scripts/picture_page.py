"""Makes the pictures of docs/page.md: the page itself, in a real Chromium, and a conversation by hand.

    python -m scripts.picture_page

Look at them before you commit them.
"""

from __future__ import annotations

import asyncio
import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.async_api import Browser, Page, async_playwright
from tests.browser.chromium import WHY_NOT, chromium_arguments, find_chromium
from tests.browser.support import chat_page, conversation_of

from laneway.core.model import Activity, FileChange, Plan, PlanStep, Question, Tokens
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import (
    ActivityShown,
    AnyOutput,
    PlanShown,
    Said,
    StatusNow,
    TextDone,
    TurnBegan,
    TurnEnded,
)
from laneway.testing.hand_chat import HandChat, approval, field, form

DOCS = Path(__file__).resolve().parents[1] / "docs"
MAX_BYTES = 150_000
COLOURS = 128
# An empty line of a diff begins with a space, which an editor may take away: written out.
DIFF = """@@ -12,6 +12,8 @@ class Retry:
     def __init__(self, tries: int = 3) -> None:
         self.tries = tries
-        self.wait = 1
+        self.wait_s = 1.0
+        self.max_wait_s = 60.0
\x20
     def next_wait(self) -> float:
-        return self.wait * 2
+        self.wait_s = min(self.wait_s * 2, self.max_wait_s)
+        return self.wait_s
"""


def told() -> list[AnyOutput]:
    """What Codex did for Claude's user, and somebody's words from another place."""
    steps = (
        PlanStep(text="Find where the waiting time is computed", status="completed"),
        PlanStep(text="Bound it, and keep it between tries", status="completed"),
        PlanStep(text="Run the tests", status="running"),
    )
    change = FileChange(path="src/retry.py", kind="update", diff=DIFF)
    return [
        TurnBegan(lane="codex", ticket="t1", task="bound the waiting time in Retry", has_banner=True),
        TextDone(lane="codex", ticket="t1", part="h1", kind="thought", text="It doubles without an end."),
        PlanShown(lane="codex", ticket="t1", plan=Plan(turn_id="t1", steps=steps)),
        ActivityShown(lane="codex", ticket="t1", activity=_activity("c1", "rg -n next_wait src", 0)),
        ActivityShown(
            lane="codex",
            ticket="t1",
            activity=Activity(
                turn_id="t1",
                item_id="e1",
                kind="edit",
                title="Edit retry.py",
                status="completed",
                changes=(change,),
            ),
        ),
        Said(
            input_id=50,
            place=Place(platform="telegram", chat="7"),
            message_id="50",
            sender="Ana",
            platform="telegram",
            text="A minute at most, please.",
        ),
        TextDone(
            lane="codex",
            ticket="t1",
            part="p1",
            text="`next_wait` doubled the *first* wait each time, and never stopped. "
            "Now it is kept, and bounded:\n\n"
            "| try | before | now |\n|---|---|---|\n"
            "| 2 | 2 s | 2 s |\n| 5 | 2 s | 16 s |\n| 9 | 2 s | 60 s |",
        ),
    ]


def _activity(item_id: str, line: str, exit_code: int) -> Activity:
    return Activity(
        turn_id="t1",
        item_id=item_id,
        kind="command",
        title=line,
        status="completed",
        output="src/retry.py:18:    def next_wait(self) -> float:\n",
        exit_code=exit_code,
    )


def ended() -> TurnEnded:
    return TurnEnded(
        lane="codex",
        ticket="t1",
        status="completed",
        has_banner=True,
        seconds=42.0,
        tokens=Tokens(total=18_204),
        diff=f"diff --git a/src/retry.py b/src/retry.py\n--- a/src/retry.py\n+++ b/src/retry.py\n{DIFF}",
    )


async def main() -> None:
    path = find_chromium()
    if path is None:
        sys.exit(WHY_NOT)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=chromium_arguments())
        await picture(browser, "page-conversation.png", 1180, 860, "light", open_diffs=False)
        await picture(browser, "page-diff.png", 1180, 700, "dark", open_diffs=True)
        await picture(browser, "page-narrow.png", 360, 740, "light", is_form=True)
        await browser.close()


async def picture(
    browser: Browser,
    name: str,
    width: int,
    height: int,
    scheme: str,
    *,
    open_diffs: bool = False,
    is_form: bool = False,
) -> None:
    cwd = Path("/home/you/project")
    chat = HandChat(cwd=str(cwd))
    for title in ("Which tests are slow?", "Release notes for 2.4"):
        chat.add(title=title)
    with tempfile.TemporaryDirectory() as folder:
        async with chat_page(chat, Path(folder), cwd) as served:
            context = await browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,  # type: ignore[arg-type]
            )
            page = await context.new_page()
            await page.goto(f"{served.address}&to=/chat/{chat.add().record.conversation_id}")
            await page.get_by_label("Message", exact=True).fill("/codex bound the waiting time in Retry")
            await page.keyboard.press("Enter")
            await chat.next_taken()
            conversation = conversation_of(page)
            for output in [*told(), *([ended()] if open_diffs else [])]:
                chat.show(conversation, output)
            if not open_diffs:
                status = StatusNow(default_lane="claude", active_lane="codex", is_waiting=True, tokens=18_204)
                chat.show(conversation, status)
                chat.ask(conversation, _question(is_form=is_form), lane="codex")
                await page.locator(".question").wait_for()
            else:
                await page.locator(".banner.ends summary").click()
                await page.locator(".log").evaluate("(log) => { log.scrollTop = log.scrollHeight; }")
            await save(page, DOCS / name)
            await context.close()


def _question(*, is_form: bool) -> Question:
    if is_form:
        bound = field(
            "bound", "How long may it wait at most?", ("10 seconds", "60 seconds"), allows_other=True
        )
        return form(bound)
    return approval("make test", reason="The tests of retries start a server on this machine.")


async def save(page: Page, path: Path) -> None:
    keep(await page.screenshot(animations="disabled"), path)


def keep(png: bytes, path: Path) -> None:
    """Fewer colours are enough for a page, and make small files."""
    shot = Image.open(io.BytesIO(png))
    shot.convert("RGB").quantize(COLOURS).save(path, optimize=True)
    assert path.stat().st_size < MAX_BYTES, path


if __name__ == "__main__":
    asyncio.run(main())
