"""`laneway ask --engine claude` in a home that lasts: threads to go on with, images, folders, interrupts."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from laneway.rehearsal.claude_home import throwaway_claude
from laneway.rehearsal.messages import ClaudeModel
from tests.claude.test_real_settings import PNG
from tests.cli.support import Ran, laneway, start
from tests.core.support import until


class Home(msgspec.Struct, frozen=True):
    """A Claude home with a scripted model, and where `laneway` keeps its own things."""

    model: ClaudeModel
    work: Path
    env: dict[str, str]

    async def ask(self, *words: str, stdin: str | None = None) -> Ran:
        return await laneway(
            "ask", "--engine", "claude", "-C", str(self.work), *words, env=self.env, stdin=stdin
        )

    def heard(self) -> str:
        """The whole conversation in the newest request to the model."""
        return json.dumps(self.model.requests[-1]["messages"], ensure_ascii=False)


@asynccontextmanager
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    model = ClaudeModel()
    async with model.server() as server:
        with throwaway_claude(server.origin) as folder:
            state = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
            yield Home(model, folder.work, {**folder.variables, **state, "HOME": str(tmp_path)})


async def test_an_earlier_thread_goes_on_by_last_and_by_its_id(tmp_path: Path) -> None:
    """Each remembers what was said; an id that nobody knows is one sentence."""
    async with home(tmp_path) as here:
        begun = await here.ask("--json", "%say remember the milk")
        assert begun.code == 0, begun.err
        events = [json.loads(line) for line in begun.out.splitlines()]
        (thread_id,) = {event["thread_id"] for event in events if "thread_id" in event}
        last = await here.ask("--last", "%say again")
        assert (last.code, last.out) == (0, "again\n")
        assert "remember the milk" in here.heard()
        named = await here.ask("--thread", thread_id, "%say and again")
        assert (named.code, named.out) == (0, "and again\n")
        assert "%say again" in here.heard()
        unknown = await here.ask("--thread", "a609a162-2226-4f7c-be80-85b3d058e61c", "%say no")
        assert (unknown.code == 0, unknown.out) == (False, "")
        assert unknown.err.startswith("laneway: Claude has no thread a609a162"), unknown.err


async def test_a_conversation_that_was_cleared_is_what_goes_on_by_last(tmp_path: Path) -> None:
    """The one before is still there under its id."""
    async with home(tmp_path) as here:
        await here.ask("%say remember the milk")
        cleared = await here.ask("--last", "/clear")
        assert cleared.code == 0, cleared.err
        assert "Claude began a new conversation" in cleared.err
        last = await here.ask("--last", "%say again")
        assert (last.code, last.out) == (0, "again\n")
        assert "remember the milk" not in here.heard()


async def test_what_a_prompt_brings_along_reaches_the_model(tmp_path: Path) -> None:
    """What is piped in, an image, a model; and a further folder can be read."""
    (tmp_path / "x.png").write_bytes(PNG)
    further = tmp_path / "further"
    further.mkdir()
    (further / "note.txt").write_text("the word is lane")
    async with home(tmp_path) as here:
        words = ("-i", str(tmp_path / "x.png"), "-m", "claude-sonnet-5", "--add-dir", str(further))
        read = f"%tool Read {json.dumps({'file_path': str(further / 'note.txt')})}"
        ran = await here.ask(*words, f"{read}\n%say done", stdin="what was piped in")
        assert (ran.code, ran.out) == (0, "done\n"), ran.err
        assert here.model.requests[-1]["model"] == "claude-sonnet-5"
        for part in ("what was piped in", '"image/png"', "the word is lane"):
            assert part in here.heard(), part


async def test_what_is_left_out_of_an_untrusted_repository_is_said(tmp_path: Path) -> None:
    """To the person, not into the answer."""
    async with home(tmp_path) as here:
        repository = tmp_path / "repository"
        (repository / ".git").mkdir(parents=True)
        (repository / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (repository / ".mcp.json").write_text("{}")
        ran = await here.ask("-C", str(repository), "%say looked")
        assert (ran.code, ran.out) == (0, "looked\n")
        told = " ".join(ran.err.split())
        assert "· Claude does not use .mcp.json of this folder: it is not trusted; `laneway config" in told


async def test_what_read_only_and_full_access_mean(tmp_path: Path) -> None:
    """Three tools that only read; or everything, unasked."""
    async with home(tmp_path) as here:
        ran = await here.ask("-s", "read-only", "%say hi")
        assert ran.code == 0, ran.err
        names = {tool["name"] for tool in here.model.requests[-1]["tools"]}
        assert names <= {"Read", "Grep", "Glob", "DeferredToolPlaceholder"}
        here.env["IS_SANDBOX"] = "1"  # without it Claude Code refuses that to root
        ran = await here.ask("-s", "danger-full-access", "-a", "never", "%run touch made.txt\n%say done")
        assert (ran.code, ran.out) == (0, "done\n"), ran.err
        assert (here.work / "made.txt").exists()


async def test_an_interrupt_and_a_timeout_stop_the_turn(tmp_path: Path) -> None:
    """As with Codex: the code says which, and nothing is left running."""
    async with home(tmp_path) as here:
        late = await here.ask("--timeout", "0.5", "%stream 1000 words over 60 seconds")
        assert late.code != 0
        assert "the turn took longer than --timeout and was stopped" in late.err
        words = ("ask", "--engine", "claude", "-C", str(here.work), "%stream 1000 words over 60 seconds")
        before = len(here.model.requests)
        process = await start(*words, env=here.env)
        async with asyncio.timeout(60):
            await until(lambda: len(here.model.requests) > before, 60)
            process.send_signal(signal.SIGINT)
            _, err = await process.communicate()
        assert process.returncode == 130, err
