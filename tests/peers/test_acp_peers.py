"""`acpx`, the headless ACP client of npm, drives `laneway acp` on the real Codex.

It knows no terminal extension: what it prints is what a plain editor shows. Its named sessions are kept by
a process of its own, which ends when nobody has asked it anything for a second.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.rehearsal.answer import Piece, answer
from laneway.testing.processes import wait_gone
from tests.cli.support import LANEWAY
from tests.doors.stage import Message, Scene, scene
from tests.peers.support import Ended, brought, node

pytestmark = pytest.mark.peers

NAME = "kept"
DEADLINE_S = 60.0


class Acpx(Scene):
    """A scene on which acpx is run, with a home of its own."""

    def __init__(self, requests: list[Message], home: Path, state: Path) -> None:
        super().__init__(requests, home, state)
        self.user = state / "user"
        self.user.mkdir()
        self.asked = asyncio.Event()
        """Set whenever the model is asked."""

    async def run(self, *words: str) -> Ended:
        script = brought("acpx-0.19.1", "node_modules/acpx/dist/cli.js")
        agent = shlex.join([*LANEWAY, "acp"])
        flags = ("--agent", agent, "--cwd", str(self.work), "--ttl", "1")
        return await node(script, *flags, *words, env={**self.environment, "HOME": str(self.user)})

    async def good(self, *words: str) -> str:
        """What it prints where all goes well."""
        ran = await self.run(*words)
        assert ran.code == 0, ran.err + ran.out
        return ran.out

    async def say(self, prompt: str) -> str:
        """A prompt in the session that is kept; only the text of the answer."""
        return await self.good("--format", "quiet", "prompt", "-s", NAME, prompt)

    async def status(self) -> Message:
        """Of the session that is kept."""
        told: Message = json.loads(await self.good("--format", "json", "status", "-s", NAME))
        return told

    async def wait_let_go(self) -> None:
        """Until the process that keeps the session has ended, and the agent with it."""
        if pid := (await self.status()).get("pid"):
            await wait_gone(pid)


@asynccontextmanager
async def acpx(state: Path) -> AsyncIterator[Acpx]:
    def noted(request: Message) -> Iterator[Piece]:
        stage.asked.set()
        return answer(request)

    async with scene(state, "", noted) as parts:
        stage = Acpx(*parts)
        try:
            yield stage
        finally:
            await stage.run("sessions", "close", NAME)


async def test_acpx_prints_the_answer(tmp_path: Path) -> None:
    """The text alone, whole and once."""
    async with acpx(tmp_path) as here:
        said = await here.good("--format", "quiet", "exec", "%stream 300 words")
    words = "one two three four five six seven eight nine ten"
    assert said.split() == words.split() * 30


async def test_acpx_shows_what_a_command_printed(tmp_path: Path) -> None:
    """As text: the official adapter shows it the id of a terminal that nobody opened."""
    async with acpx(tmp_path) as here:
        told = await here.good("exec", "%run echo seen-$((40 + 2))\n%say After.")
    assert "seen-42" in told
    assert "[terminal]" not in told
    assert "After." in told
    assert "end_turn" in told


@pytest.mark.parametrize(("flag", "written"), [("--approve-all", True), ("--deny-all", False)])
async def test_acpx_decides_about_a_command_outside_the_sandbox(
    flag: str, written: bool, tmp_path: Path
) -> None:
    """Approved, it runs; denied, it does not."""
    outside = tmp_path / "outside"
    async with acpx(tmp_path) as here:
        ran = await here.run(flag, "exec", f"%run! echo yes > {shlex.quote(str(outside))}\n%say After.")
    assert outside.exists() == written, ran.out + ran.err
    assert f"echo yes > {outside}" in ran.out
    assert ("(completed)" in ran.out) == written
    assert ("(failed)" in ran.out) != written


async def test_acpx_shows_an_edit_and_it_is_made(tmp_path: Path) -> None:
    """With the name of the file in the title."""
    async with acpx(tmp_path) as here:
        told = await here.good("--approve-all", "exec", "%patch made.txt some text\n%say After.")
        assert (here.work / "made.txt").read_text() == "some text\n"
    assert "made.txt" in told


async def test_a_session_goes_on_when_acpx_starts_the_agent_anew(tmp_path: Path) -> None:
    """The model is told in the second process what was said in the first."""
    async with acpx(tmp_path) as here:
        await here.good("sessions", "new", "--name", NAME)
        assert (await here.say("%say The first answer.")).strip() == "The first answer."
        await here.wait_let_go()
        let_go = await here.status()
        assert (await here.say("%say The second answer.")).strip() == "The second answer."
        said = json.dumps(here.requests[-1]["input"])
        again = await here.status()
        listed = await here.good("sessions", "list")
    assert let_go["status"] == "idle"
    assert let_go["acpxSessionId"] == again["acpxSessionId"]
    assert "The first answer." in said
    assert again["acpxSessionId"] in listed


async def test_acpx_cancels_a_prompt_from_another_process(tmp_path: Path) -> None:
    """The prompt is answered, and the session takes the next one."""
    async with acpx(tmp_path) as here:
        await here.good("sessions", "new", "--name", NAME)
        here.asked.clear()
        running = asyncio.create_task(here.run("prompt", "-s", NAME, "%hang"))
        async with asyncio.timeout(DEADLINE_S):
            await here.asked.wait()
        await here.good("cancel", "-s", NAME)
        ended = await running
        assert "cancelled" in ended.out, ended.out + ended.err
        assert (await here.say("%say Still here.")).strip() == "Still here."


async def test_acpx_sets_a_mode_and_a_model(tmp_path: Path) -> None:
    """Nobody is asked in the mode of full access, so nobody can deny; the model is the one that was named."""
    outside = tmp_path / "outside"
    async with acpx(tmp_path) as here:
        await here.good("sessions", "new", "--name", NAME)
        await here.good("set-mode", "-s", NAME, "full")
        await here.good("set", "-s", NAME, "model", "gpt-5.6-terra")
        command = f"%run echo yes > {shlex.quote(str(outside))}"
        await here.good("--deny-all", "prompt", "-s", NAME, command)
        asked = here.requests[-1]
    assert outside.read_text() == "yes\n"
    assert asked["model"] == "gpt-5.6-terra"


async def test_a_failed_turn_is_a_failure_of_acpx(tmp_path: Path) -> None:
    """The official adapter would end the turn as if all were well."""
    async with acpx(tmp_path) as here:
        ran = await here.run("exec", "%fail 400 The model is on holiday.")
    assert ran.code != 0
    assert "on holiday" in ran.out + ran.err
