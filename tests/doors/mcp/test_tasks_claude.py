"""The real Claude Code waits for a task while its model sleeps, and wakes it with the result; offline.

Interactive, it declares the tasks extension, asks as often as the task says, and keeps the task with its
session. Headless, it does not declare it, and waits for the result of the call.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.testing.claude import ClaudeHome, say
from tests.core.support import until
from tests.doors.mcp.tapped_claude import BACKGROUND, DEADLINE_S, TappedClaude, real_claude

SERVER = Path(__file__).with_name("tasks_support.py")
MAY = ("--allowedTools", "mcp__jobs,TaskStop")
WAIT = '%tool mcp__jobs__wait {"job":"a"}'


class Stub(TappedClaude):
    """Claude Code with the stub server registered, and a tap on the line between them."""

    def __init__(self, home: ClaudeHome) -> None:
        super().__init__(home)
        self.folder = home.work.parent / "tasks"

    def finish(self, words: str) -> None:
        partial = self.folder / "partial"
        partial.write_text(words)
        partial.rename(self.folder / "task-1")

    def shown(self) -> str:
        """The end of what the model was shown in its last request."""
        return json.dumps(self.home.model.requests[-1]["messages"][-1])


@asynccontextmanager
async def stub() -> AsyncIterator[Stub]:
    async with real_claude() as home:
        here = Stub(home)
        here.folder.mkdir()
        await here.register("jobs", sys.executable, str(SERVER), str(here.folder))
        yield here


async def test_the_idle_model_is_woken_with_the_result_of_a_task() -> None:
    """The call is over at once; nobody asks the model, or is asked by it, until the task is over."""
    pytest.importorskip("pyte", reason="needs pyte, which `make setup` installs")
    async with stub() as here, here.home.interactive(*MAY) as screen:
        await here.wait_connected()
        await say(screen, WAIT)
        await screen.wait_for("● Done.")
        await until(lambda: here.methods().count("tasks/get") > 2, DEADLINE_S)
        assert BACKGROUND in here.shown()
        asked = len(here.home.model.requests)
        here.finish("the job is done, says the stub")
        await screen.wait_for("MCP task task-1 (jobs/wait) completed.")
        await until(lambda: len(here.home.model.requests) > asked, DEADLINE_S)
        assert "the job is done, says the stub" in here.shown()
        assert "<status>completed</status>" in here.shown()
        assert len(here.home.model.requests) == asked + 1
        assert here.methods().count("tools/call") == 1


async def test_a_resumed_session_is_woken_although_the_server_was_started_again() -> None:
    """It asks the new server about the id that the old one gave, and tells its model what it missed."""
    pytest.importorskip("pyte", reason="needs pyte, which `make setup` installs")
    async with stub() as here:
        async with here.home.interactive(*MAY) as screen:
            await here.wait_connected()
            await say(screen, WAIT)
            await screen.wait_for("● Done.")
            await until(lambda: "tasks/get" in here.methods(), DEADLINE_S)
        asked, begun = len(here.home.model.requests), len(here.methods())
        here.finish("done while nobody was there")
        async with here.home.interactive(*MAY, "--continue") as screen:
            await until(lambda: len(here.home.model.requests) > asked, DEADLINE_S)
            assert "done while nobody was there" in here.shown()
        assert {"server/discover", "tasks/get"} <= set(here.methods()[begun:])
        assert "tools/call" not in here.methods()[begun:]


async def test_a_model_that_stops_the_task_cancels_it() -> None:
    """By the tool that Claude Code gives it for all of its background work."""
    pytest.importorskip("pyte", reason="needs pyte, which `make setup` installs")
    async with stub() as here, here.home.interactive(*MAY) as screen:
        await here.wait_connected()
        await say(screen, WAIT)
        await screen.wait_for("● Done.")
        _, _, name = here.shown().partition(BACKGROUND)
        await say(screen, f'%tool TaskStop {{"task_id":"{name.split()[0]}"}}')
        await until(lambda: "tasks/cancel" in here.methods(), DEADLINE_S)
        # It may say so twice: when it stops asking, and to be sure.
        sent = [message["params"] for message in here.sent() if message["method"] == "tasks/cancel"]
        assert {params["taskId"] for params in sent} == {"task-1"}


async def test_without_a_person_claude_code_declares_no_tasks_and_waits() -> None:
    """As when a program drives it: the same call is answered by its result."""
    async with stub() as here:
        async with here.home.headless(*MAY) as conversation:
            await conversation.ask(WAIT)
        assert "waited for a" in json.dumps(here.home.model.results()[-1])
        (call,) = [message for message in here.sent() if message["method"] == "tools/call"]
        capabilities = call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        assert "extensions" not in capabilities
