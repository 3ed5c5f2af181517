"""The real Claude Code is the boss of real workers: waits for a job as a task, sleeps, and is woken; offline.

Claude Code runs in a terminal and starts `laneway mcp` itself; both models are scripted on loopback.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from laneway.codex import locate
from laneway.jobs.orchestration import instructions
from laneway.rehearsal.home import throwaway_home
from laneway.rehearsal.server import ModelServer
from laneway.testing import first_start
from laneway.testing.claude import ClaudeHome, Message, say
from laneway.testing.processes import wait_gone
from laneway.testing.terminal import Terminal
from tests.core.support import until
from tests.doors.mcp.tapped_claude import BACKGROUND, DEADLINE_S, TappedClaude, real_claude

MAY = ("--permission-mode", "default", "--allowedTools", "mcp__codex")


class Boss(TappedClaude):
    """Claude Code with `laneway mcp` registered, and a tap on the line between them."""

    def __init__(self, home: ClaudeHome) -> None:
        super().__init__(home)
        self.go = home.work.parent / "go"
        """Workers wait for this file."""

    @property
    def server_pid(self) -> int:
        return int(Path(f"{self.tap}.pid").read_text())

    async def kill_server(self) -> None:
        pid = self.server_pid
        os.kill(pid, signal.SIGKILL)
        await wait_gone(pid)

    def called(self) -> list[str]:
        """The tools that were called, in their order."""
        return [each["params"]["name"] for each in self.sent() if each["method"] == "tools/call"]

    def asked(self) -> int:
        """How many times the boss's model was asked."""
        return sum(bool(request.get("tools")) for request in self.home.model.requests)

    def shown(self) -> str:
        """The end of what the model was shown in its last request."""
        requests = self.home.model.requests
        return "\n".join(_texts(requests[-1]["messages"][-1]["content"])) if requests else ""

    def is_told(self, status: str, jobs: dict[str, str]) -> bool:
        """Whether the model was shown just now that its task is over, and how each of these jobs ended."""
        shown = self.shown()
        _, _, told = shown.partition("<result>\n")
        answer = json.loads(told.partition("\n</result>")[0])
        ended = {each["jobId"]: each["status"] for each in answer["ended"]}
        return f"<status>{status}</status>" in shown and ended == jobs

    async def call(self, screen: Terminal, tool: str, **arguments: Any) -> Message:
        """Have the boss's model call a tool that answers at once."""
        before = len(self.home.model.results())
        await self.wait_connected()
        await say(screen, f"%tool mcp__codex__{tool} {json.dumps(arguments)}")
        await until(lambda: len(self.home.model.results()) > before, DEADLINE_S)
        content = self.home.model.results()[-1]["content"]
        answer: Message = json.loads(content if isinstance(content, str) else content[0]["text"])
        return answer

    def prompt(self, report: str, commands: int = 1) -> str:
        """Of a worker that ends when it may: Codex waits no longer than 10 s for each command."""
        return f"%run until test -e {self.go}; do sleep 0.05; done\n" * commands + f"%say {report}"

    async def wait_asleep(self, screen: Terminal, tool: str, *jobs: str) -> None:
        """Have the boss wait for these jobs, until it has nothing else to do."""
        polled = self.methods().count("tasks/get")
        await self.wait_connected()
        await say(screen, f"%tool mcp__codex__{tool} {json.dumps({'jobIds': jobs})}")
        await until(lambda: BACKGROUND in self.shown(), DEADLINE_S)
        await until(lambda: self.methods().count("tasks/get") > polled + 2, DEADLINE_S)


def _texts(content: Any) -> Iterator[str]:
    """All texts of a message's content, also those in results of tools."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for block in content:
            yield from _texts(block.get("text") or block.get("content") or "")


@asynccontextmanager
async def boss() -> AsyncIterator[Boss]:
    pytest.importorskip("pyte", reason="needs pyte, which `make setup` installs")
    async with ModelServer() as model:
        with throwaway_home(model.base_url) as codex_home:
            first_start.fill(codex_home)
            codex = {"CODEX_HOME": str(codex_home), "LANEWAY_CODEX_BIN": locate.find().path}
            async with real_claude(codex) as home:
                here = Boss(home)
                await here.register("codex", sys.executable, "-m", "laneway", "mcp")
                try:
                    yield here
                finally:
                    here.go.touch()
                    await at_a_shell(home, "wait", "--timeout", "30s")


async def at_a_shell(home: ClaudeHome, *words: str) -> str:
    """What `laneway jobs` prints, started by another program of the same user."""
    argv = [sys.executable, "-m", "laneway", "jobs", *words]
    run = partial(subprocess.run, argv, env=home.environment, cwd=home.work, capture_output=True, text=True)
    return str((await asyncio.to_thread(run, timeout=DEADLINE_S)).stdout)


@pytest.mark.covers("004-boss.s", "J-tools.15")
async def test_a_boss_sleeps_until_its_job_has_ended_and_is_woken_with_the_result() -> None:
    """Its model is asked nothing and calls nothing meanwhile; then it reads what the job produced."""
    async with boss() as here, here.home.interactive(*MAY) as screen:
        spawned = await here.call(screen, "codex_spawn", prompt=here.prompt("all tests pass"))
        job_id = spawned["jobId"]
        await here.wait_asleep(screen, "codex_wait_any", job_id)
        asked = here.asked()
        here.go.touch()
        await screen.wait_for("(codex/codex_wait_any) completed.")
        await until(lambda: here.asked() > asked, DEADLINE_S)
        assert here.is_told("completed", {job_id: "succeeded"})
        result = await here.call(screen, "codex_result", jobId=job_id)
        assert (result["status"], result["lastMessage"]) == ("succeeded", "all tests pass")
        assert here.called() == ["codex_spawn", "codex_wait_any", "codex_result"]


@pytest.mark.covers("J-boss.1")
async def test_a_person_gives_claude_code_the_instructions_for_a_boss_by_a_command() -> None:
    """The prompt of the server is a command there; the model gets the whole page."""
    async with boss() as here, here.home.interactive(*MAY) as screen:
        await here.wait_connected()
        screen.type("/codex:orchestrate")
        await screen.wait_for("How to split a task among background Codex workers")
        screen.press("enter")
        await until(here.asked, DEADLINE_S)
        messages = here.home.model.requests[-1]["messages"]
        shown = [text for message in messages for text in _texts(message["content"])]
        assert instructions().strip() in [text.strip() for text in shown]
        assert here.methods().count("prompts/get") == 1


@pytest.mark.covers("J-tools.15")
async def test_the_wait_goes_on_when_the_server_was_killed_and_when_claude_code_was_closed() -> None:
    """The same wait, with three servers: a person reconnects to the second, `--continue` starts the third."""
    async with boss() as here:
        # From outside: all that a terminal of the tests has started ends with it.
        jobs = [
            (await at_a_shell(here.home, "spawn", here.prompt(each, 9))).strip() for each in ("one", "two")
        ]
        async with here.home.interactive(*MAY) as screen:
            await here.wait_asleep(screen, "codex_wait_all", *jobs)
            await here.kill_server()
            polled = here.methods().count("tasks/get")
            await say(screen, "/mcp reconnect codex")
            await screen.wait_for("reconnected to codex")
            await until(lambda: here.methods().count("tasks/get") > polled, DEADLINE_S)
        asked = here.asked()
        here.go.touch()
        await at_a_shell(here.home, "wait", "--timeout", "30s")
        async with here.home.interactive(*MAY, "--continue"):
            await until(lambda: here.asked() > asked, DEADLINE_S)
            assert here.is_told("completed", dict.fromkeys(jobs, "succeeded"))
        assert here.called() == ["codex_wait_all"]
        polled_ids = {each["params"]["taskId"] for each in here.sent() if each["method"] == "tasks/get"}
        assert len(polled_ids) == 1
