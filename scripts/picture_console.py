"""Makes the pictures of the console for docs/page.md: its panels, in a real Chromium, on invented facts.

    python -m scripts.picture_console

Look at them before you commit them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, Page, async_playwright
from scripts.picture_page import DOCS, save
from tests.browser.chromium import WHY_NOT, chromium_arguments, find_chromium
from tests.doors.console.panels.support import HandBoard, HandChecks, HandDesk, HandSessions, command_question
from tests.doors.console.support import served_page

from laneway.base.clock import LoopClock
from laneway.core.model import Activity, Asked, Event, Output, Text, TurnStarted, UserSaid
from laneway.doors.console.panels.health import HealthPart
from laneway.doors.console.panels.jobs import JobsPart
from laneway.doors.console.panels.mail import MailPart
from laneway.doors.console.panels.ports import LiveSessionRow
from laneway.doors.console.panels.sessions import SessionsPart

PROJECT = "/home/you/project"
RUN_ID = "run-5f0c2a9e"
LIMITS, RETRY = "Check the limits", "Bound the waiting time"
SESSIONS = (
    LiveSessionRow(
        agent_id="agent-1",
        name="reviewer",
        team="release",
        door="mcp",
        pid=4107,
        state="busy",
        engine="Codex",
        cwd=PROJECT,
        branch="retry",
        model="gpt-5.5-codex",
        turns=7,
        tokens=48_210,
        open_questions=1,
        last_text="The tests of retries need a server on this machine. May I start it?",
    ),
    LiveSessionRow(
        agent_id="agent-2",
        door="acp",
        pid=5230,
        state="busy",
        engine="Codex",
        cwd="/home/you/website",
        branch="main",
        model="gpt-5.5-codex",
        turns=2,
        tokens=12_902,
        last_text="I moved the form into a module of its own. Now the styles.",
    ),
    LiveSessionRow(
        agent_id="agent-3",
        door="chat",
        pid=5377,
        engine="Claude",
        cwd=PROJECT,
        model="claude-opus-5-5",
        turns=12,
        tokens=91_544,
        last_text="Codex has bounded the waiting time; the change is on the branch retry.",
    ),
)


def _job(job_id: str, title: str) -> dict[str, Any]:
    return {"jobId": job_id, "title": title, "status": "succeeded", "mode": "write", "run": RUN_ID}


JOBS = (_job("job-c04d1e77", RETRY), _job("job-a85f3b10", LIMITS))
MERGED = """class Retry:
    def __init__(self, tries: int = 3) -> None:
        self.tries = tries
<<<<<<< one
        self.wait_s = 1.0
        self.max_wait_s = 60.0
||||||| before
        self.wait = 1
=======
        self.wait = max(1, LIMITS.wait)
>>>>>>> other

    def next_wait(self) -> float:
"""
FILE = "src/retry.py"


def _changed(path: str, change: str = "modified", certainty: str = "patch") -> dict[str, str]:
    return {"path": path, "certainty": certainty, "change": change}


RUN: dict[str, Any] = {
    "run": RUN_ID,
    "state": "open",
    "tree": PROJECT,
    "head": "d41f70cc9a5b",
    "jobs": [
        {**JOBS[0], "modifiedFiles": [_changed(FILE), _changed("tests/test_retry.py", "added")]},
        {**JOBS[1], "modifiedFiles": [_changed(FILE), _changed("src/limits.py")]},
    ],
    "conflicts": [{"path": FILE, "kind": "overlap", "jobs": ["job-c04d1e77", "job-a85f3b10"]}],
    "changedByOthers": [],
    "unguarded": 0,
    "rollbacks": [],
    "diffs": [
        {
            "path": FILE,
            "jobs": ["job-c04d1e77", "job-a85f3b10"],
            "one": "@@ -4 +4,2 @@\n-        self.wait = 1\n+        self.wait_s = 1.0\n",
            "other": "@@ -4 +4 @@\n-        self.wait = 1\n+        self.wait = max(1, LIMITS.wait)\n",
            "merged": MERGED,
            "conflicts": 1,
        }
    ],
}


class PicturedBoard(HandBoard):
    async def run(self, run_id: str, paths: Sequence[str], job_ids: Sequence[str] = ()) -> dict[str, Any]:
        return RUN


def happenings() -> list[Event]:
    """In the session that is watched."""
    run = Activity(
        turn_id="t", item_id="c", kind="command", title="pytest tests/test_retry.py", status="running"
    )
    return [
        TurnStarted(turn_id="t"),
        UserSaid(turn_id="t", item_id="u", text="Review the branch retry, and run its tests."),
        Text(turn_id="t", item_id="x", text="The change is small: the waiting time is kept, and bounded.\n"),
        run,
        Output(turn_id="t", item_id="c", text="ConnectionRefusedError: 127.0.0.1:8025\n"),
        Text(turn_id="t", item_id="y", text="The tests of retries need a server on this machine."),
        Asked(
            question=command_question(
                message="Run this command?", command="python -m tests.mail_server --port 8025", cwd=PROJECT
            )
        ),
    ]


@asynccontextmanager
async def console(
    browser: Browser, width: int, height: int, scheme: str
) -> AsyncIterator[tuple[Page, HandSessions]]:
    clock, sessions = LoopClock(), HandSessions(*SESSIONS)
    parts = (
        SessionsPart(sessions, clock),
        JobsPart(PicturedBoard(), clock),
        MailPart(HandDesk(), clock),
        HealthPart(HandChecks()),
    )
    async with served_page(*parts) as address:
        context = await browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        page = await context.new_page()
        await page.goto(address)
        await page.get_by_role("heading", name="Live sessions").wait_for()
        yield page, sessions
        await context.close()


async def go(page: Page, place: str, shown: str) -> None:
    await page.evaluate("place => { location.hash = `#/${place}`; }", place)
    await page.get_by_text(shown).first.wait_for()


async def main() -> None:
    path = find_chromium()
    if path is None:
        sys.exit(WHY_NOT)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=chromium_arguments())
        async with console(browser, 1180, 420, "light") as (page, _):
            await page.get_by_role("link", name="reviewer").wait_for()
            await save(page, DOCS / "page-sessions.png")
        async with console(browser, 360, 740, "dark") as (page, sessions):
            await go(page, "sessions/agent-1", "What happens from now on")
            for event in happenings():
                sessions.show("agent-1", event)
            question = page.get_by_role("region", name="Question: ")
            await question.wait_for()
            await question.scroll_into_view_if_needed()
            await save(page, DOCS / "page-watched.png")
        async with console(browser, 1180, 840, "dark") as (page, _):
            await go(page, f"jobs/runs/{RUN_ID}", "One place is in dispute")
            await save(page, DOCS / "page-conflict.png")
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
