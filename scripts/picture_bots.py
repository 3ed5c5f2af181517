"""Makes the pictures of docs/telegram.md and docs/discord.md from what the fake services received.

    python -m scripts.picture_bots

All of it is real but for the lanes, which are scripted. Look at the pictures before you commit them.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, async_playwright
from scripts.bot_html import discord, telegram
from scripts.picture_page import DIFF, DOCS, keep
from tests.browser.chromium import WHY_NOT, chromium_arguments, find_chromium
from tests.doors.chat.platforms.bot_scenes import begun
from tests.doors.chat.platforms.discord import scene as on_discord
from tests.doors.chat.platforms.telegram import scene as on_telegram

from laneway.app.diff_pictures import DiffDrawer
from laneway.core.model import Activity, Choice, FileChange, PlanStep, Question
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn

CWD = Path("/home/you/project")
TASK = "bound the waiting time in Retry"
SEARCH = "rg -n next_wait src"
STEPS = ("Find where the time is computed", "Bound it", "Run the tests")
FIRST_WORDS = "`next_wait` doubled the *first* wait each time."
WORDS = "It is **bounded** now: one minute at most, and the tests pass."
TESTED = """\
import pytest

from project.retry import Retry


@pytest.mark.parametrize(
    ("tries", "waits_s"),
    [
{rows}    ],
)
def test_no_wait_is_longer_than_a_minute(tries: int, waits_s: float) -> None:
    retry = Retry(tries=tries)
    assert [retry.next_wait() for _ in range(tries)][-1] == waits_s
""".format(
    rows="".join(f"        ({tries}, {min(2.0**tries, 60.0)}),\n" for tries in range(1, 25))
).splitlines()
TEST = "\n".join(
    [
        "diff --git a/tests/test_retry.py b/tests/test_retry.py",
        "new file mode 100644",
        "--- /dev/null",
        "+++ b/tests/test_retry.py",
        f"@@ -0,0 +1,{len(TESTED)} @@",
        *(f"+{line}" for line in TESTED),
    ]
)
CHANGES = f"diff --git a/src/retry.py b/src/retry.py\n--- a/src/retry.py\n+++ b/src/retry.py\n{DIFF}"
ONCE = Choice(choice_id="accept", label="Allow once", grants="once")
SESSION = Choice(choice_id="session", label="Allow for this session", grants="session")
DECLINE = Choice(choice_id="decline", label="Decline", grants="nothing", takes_words=True)


def plan(turn: ScriptedTurn, done: int) -> None:
    states = ["completed"] * done + ["running"] + ["pending"] * 3
    turn.plan(*(PlanStep(text=text, status=state) for text, state in zip(STEPS, states, strict=False)))  # type: ignore[arg-type]


def look_around(turn: ScriptedTurn) -> None:
    """What it does before it speaks."""
    plan(turn, 0)
    turn.thought("It doubles without an end.")
    turn.command(SEARCH)
    turn.command(SEARCH, status="completed", output="src/retry.py:18\n", exit_code=0)
    change = FileChange(path="src/retry.py", kind="update", diff=DIFF)
    turn.activity(
        Activity(
            turn_id=turn.turn_id,
            item_id="edit-1",
            kind="edit",
            title="Edit src/retry.py",
            status="completed",
            changes=(change,),
        )
    )
    plan(turn, 1)


def approval(turn: ScriptedTurn) -> str:
    return turn.ask(
        Question(
            question_id="question-1",
            kind="command",
            thread_id="",
            turn_id=turn.turn_id,
            item_id=None,
            message="Run make test?",
            command="make test",
            reason="The tests of retries start a server on this machine.",
            choices=(ONCE, SESSION, DECLINE),
        )
    )


async def main() -> None:
    path = find_chromium()
    if path is None:
        sys.exit(WHY_NOT)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=chromium_arguments())
        with tempfile.TemporaryDirectory() as folder:
            await of_telegram(browser, Path(folder))
        with tempfile.TemporaryDirectory() as folder:
            await of_discord(browser, Path(folder))
        await browser.close()


async def of_telegram(browser: Browser, folder: Path) -> None:
    lanes = ScriptedLanes()
    async with (
        on_telegram.scene(folder) as place,
        place.running(lanes, pictures=DiffDrawer(), cwd=CWD) as process,
    ):
        service, chat = place.telegram, place.home

        async def save(name: str, since: int = 0) -> None:
            messages = [each for each in service.world.messages.values() if each.chat is chat]
            drafts = [each for each in service.drafts(chat) if each.is_shown]
            shown = telegram(messages[since:], service.world.files, drafts[-1] if drafts else None)
            await shoot(browser, shown, f"telegram-{name}.png", 480)

        place.ada.write(chat, f"/codex {TASK}")
        turn = await begun(lanes, "codex")
        look_around(turn)
        work = await service.message_with(chat, "Edit")
        turn.text(FIRST_WORDS)
        await service.draft_with(chat, "doubled")
        await service.until(lambda: not work.labels)
        await save("working")
        question = approval(turn)
        asked = await service.message_with(chat, "make test")
        await process.settled()
        before = len([each for each in service.world.messages.values() if each.chat is chat])
        await save("question")
        place.ada.press(asked, "Allow once")
        await turn.answered(question)
        plan(turn, 3)
        turn.text(WORDS, "text-2")
        turn.diff(CHANGES + TEST)
        turn.done(WORDS)
        await service.message_with(chat, "files changed")
        await process.settled()
        place.ada.write(chat, "Claude, is that enough?")
        (await begun(lanes)).say("Nearly: it still waits after the **last** try. Shall I change that?")
        await service.message_with(chat, "Nearly")
        await process.settled()
        await save("changes", before - 1)


async def of_discord(browser: Browser, folder: Path) -> None:
    lanes = ScriptedLanes()
    async with (
        on_discord.scene(folder) as place,
        place.running(lanes, pictures=DiffDrawer(), cwd=CWD) as process,
    ):
        service = place.discord
        asked_first = await place.ada.write(place.general, f"{place.mention} /codex {TASK}")
        await service.until(lambda: bool(service.threads(place.general)))
        (thread,) = service.threads(place.general)

        async def save(name: str, since: int = 0, dialog: dict[str, object] | None = None) -> None:
            messages = [asked_first, *service.world.visible(thread)]
            shown = discord(messages[since:], thread.name, dialog)
            await shoot(browser, shown, f"discord-{name}.png", 760)

        turn = await begun(lanes, "codex")
        look_around(turn)
        await service.message_with(thread, "Edit")
        turn.text(FIRST_WORDS)
        await service.message_with(thread, "doubled")
        await process.settled()
        await save("working")
        question = approval(turn)
        asked = await service.message_with(thread, "make test")
        await process.settled()
        opened = await (await place.ada.press(asked, "Decline and say why …")).answered()
        before = len(service.world.visible(thread)) + 1
        await save("question", before - 3, opened.modal)
        await place.ada.press(asked, "Allow once")
        await turn.answered(question)
        plan(turn, 3)
        turn.text(WORDS, "text-2")
        turn.diff(CHANGES + TEST)
        turn.done(WORDS)
        await service.message_with(thread, "files changed")
        await process.settled()
        await save("changes", before - 1)


async def shoot(browser: Browser, page_html: str, name: str, width: int) -> None:
    page = await browser.new_page(viewport={"width": width, "height": 200})
    await page.set_content(page_html)
    keep(await page.locator("body").screenshot(animations="disabled"), DOCS / name)
    await page.close()


if __name__ == "__main__":
    asyncio.run(main())
