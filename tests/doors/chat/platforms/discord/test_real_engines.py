"""The document's points and cases on Discord, with the real Claude Code and the real Codex.

Their models are scripted, and the service is the fake one. Each test is one conversation of several turns,
because each start of an engine takes seconds.
"""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.app.chat_lanes import CODEX_LOGIN, ChatLanes, ChosenEngines
from laneway.app.options import ClaudeChoice, CodexChoice
from laneway.base.settings import load
from laneway.core.hand_back_tag import START
from laneway.lanes.contract import Lane
from laneway.testing.fake_discord import DiscordChannel, DiscordMessage, FakeDiscord
from tests.doors.chat.engine_lanes import EngineStage, on_claude, on_codex
from tests.doors.chat.platforms.discord.scene import Process, Scene, scene
from tests.own_processes import OwnProcesses

STREAM = "%stream 1000 words over 100 seconds"
BEGUN = "one two three four"
WORKING_S = 100.0
SEE_S = 25.0


@asynccontextmanager
async def rehearsed(tmp_path: Path) -> AsyncIterator[ChatLanes]:
    chosen = ChosenEngines(codex=CodexChoice(is_rehearsal=True), claude=ClaudeChoice(is_rehearsal=True))
    async with ChatLanes(chosen, load({}, {}, tmp_path, tmp_path), is_remote=True) as lanes:
        yield lanes


class SpiedLanes:
    """Claude and Codex, whose models' requests a test can read."""

    names = ("claude", "codex")
    problems = ()

    def __init__(self, **stages: EngineStage) -> None:
        self._stages = stages

    def make(self, name: str, cwd: Path) -> Lane:
        return self._stages[name].lane()


class Talk:
    """Ada's conversation, in a thread of its own."""

    def __init__(self, place: Scene, thread: DiscordChannel) -> None:
        self.place, self.thread = place, thread
        self.discord: FakeDiscord = place.discord

    async def say(self, *lines: str, **more: object) -> None:
        await self.place.ada.write(self.thread, "\n".join(lines), **more)  # type: ignore[arg-type]

    async def see(self, words: str, count: int = 1) -> DiscordMessage:
        """Wait for so many messages with these words; the latest of them."""

        def found() -> list[DiscordMessage]:
            return [each for each in self.discord.shown(self.thread) if words in each.content]

        try:
            async with asyncio.timeout(SEE_S):
                await self.discord.until(lambda: len(found()) >= count)
        except TimeoutError:
            raise AssertionError(f"{words!r} is not shown {count} times in: {self.text}") from None
        return found()[-1]

    @property
    def text(self) -> str:
        return self.discord.text(self.thread)


@asynccontextmanager
async def talk(tmp_path: Path, **options: Any) -> AsyncIterator[Talk]:
    """A conversation in which nothing was said to a lane yet."""
    async with (
        scene(tmp_path, deadline_s=WORKING_S) as place,
        rehearsed(tmp_path) as lanes,
        place.running(lanes, **options) as process,
    ):
        yield await begin(place, process)
        assert place.discord.refused == []
        assert place.discord.limits.told == 0


async def begin(place: Scene, process: Process) -> Talk:
    return Talk(place, await place.thread(process, "/lanes"))


def dot() -> bytes:
    """A PNG of one red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + pixels + chunk(b"IEND", b"")


@pytest.mark.covers("003-verify.4", "003-verify.5", "003-case.8", "003-case.9", "003-case.10", "003-case.11")
async def test_a_task_for_codex_is_shown_and_claude_leads_without_banners(tmp_path: Path) -> None:
    """Calls by name, thoughts, the plan changed in place, the diff at the end; within Discord's limits."""
    (tmp_path / "hello.txt").write_text("hello\n")
    async with talk(tmp_path) as here:
        await here.say("/codex")
        await here.see("Usage: /codex <task>")
        await here.say(
            "/codex greet them",
            "%think **Reading** the file",
            "%plan Read it; Change it",
            "%run cat hello.txt; exit 3",
            "%plan Change it; Say so",
            "%edit hello.txt hello => goodbye",
            "%say It is **done**.",
        )
        await here.see("**CODEX COMPLETED**")
        assert "**CODEX STARTED**: greet them" in here.text
        await here.see("It is **done**.")
        work = await here.see("codex::Bash `cat hello.txt; exit 3` ✗ Exit code 3.\n```\nhello\n")
        assert "💭 *Reading the file*" in work.content
        await here.discord.until(lambda: not work.buttons)
        plan = await here.see("**CODEX plan**")
        await here.discord.until(lambda: plan.content == "🔶 **CODEX plan**\n🔄 Change it\n⬜ Say so")
        diff = await here.see("**1 file changed** (+1 −1)")
        assert "-hello\n+goodbye" in diff.content
        assert (tmp_path / "hello.txt").read_text() == "goodbye\n"
        before = here.text.count("━━━")
        await here.say("Thanks.", "%say You are **welcome**.")
        await here.see("You are **welcome**.")
        assert here.text.count("━━━") == before


@pytest.mark.covers("003-verify.7", "003-verify.8", "003-case.1", "003-case.2", "003-case.3", "003-case.5")
async def test_questions_are_answered_and_messages_stop_what_works(
    tmp_path: Path, processes: OwnProcesses
) -> None:
    """A lane's question, an approval, and who is stopped for whom."""
    async with talk(tmp_path) as here:
        ada = here.place.ada
        await here.say("/codex choose", "%ask Which database? PostgreSQL | SQLite", "%say chosen")
        await here.see("**CODEX asks** · question 1")
        await here.say("SQLite")
        await here.see("✅ Answered by ada: SQLite")
        await here.see("chosen")
        await here.see("**CODEX COMPLETED**")
        assert not processes.named("stream-json"), "the answer was for Codex: Claude was not even started"

        await here.say("/codex %run! touch granted")
        asked = await here.see("question 2")
        assert asked.buttons[0]["label"] == "Allow once"
        await here.say("perhaps")
        await here.see("That is none of the choices")
        assert not (tmp_path / "granted").exists()
        tapped = await (await ada.press(asked, "Allow once")).answered()
        assert not tapped.is_late
        await here.see("**CODEX COMPLETED**", 2)
        assert (tmp_path / "granted").exists()
        assert asked.buttons == []

        await here.say(f"/codex {STREAM}")
        await here.see(BEGUN)
        await here.say("Actually, never mind.", "%say As you like.")
        await here.see("**CODEX STOPPED**")
        await here.see("As you like.")

        await here.say("Claude, go on", STREAM)
        await here.see(BEGUN, 2)
        await here.say(f"/codex {STREAM}")
        await here.see("Claude was stopped.")
        await here.see(BEGUN, 3)
        await here.say("/codex %say the second")
        await here.see("**CODEX STOPPED**", 2)
        await here.see("the second")
        await here.see("**CODEX COMPLETED**", 3)

        await here.say(f"/codex {STREAM}")
        words = await here.see(BEGUN, 4)
        await ada.press(words, "⏹ Stop")
        await here.see("**CODEX STOPPED**", 3)


@pytest.mark.covers("003-verify.6", "003-case.4", "003-case.15")
async def test_a_crash_a_compaction_and_the_end(tmp_path: Path, processes: OwnProcesses) -> None:
    """Nothing restarts by itself, and nothing is left."""
    async with talk(tmp_path) as here:
        await here.say(f"/codex {STREAM}")
        await here.see(BEGUN)
        (codex,) = processes.named("app-server")
        os.kill(codex, signal.SIGKILL)
        await here.see("The next /codex starts it again.")
        await here.see("**CODEX FAILED**")
        assert processes.named("app-server") == []
        await here.say("/codex %say I am back.")
        await here.see("I am back.")
        await here.see("**CODEX COMPLETED**")
        await here.say("/codex /compact")
        await here.see("codex has compacted its context.")
    assert processes.named("app-server") == []


@pytest.mark.covers("003-case.6")
async def test_a_silent_lane_is_told_and_then_interrupted(tmp_path: Path) -> None:
    """The times are settings."""
    async with talk(tmp_path, warn_s=1.0, silent_s=2.0) as here:
        await here.say("/codex %hang")
        await here.see("codex has been silent for 1")
        ended = await here.see("**CODEX STOPPED**")
        assert "It was silent for too long." in ended.content


@pytest.mark.covers("003-verify.9", "003-case.7", "003-case.13")
async def test_what_codex_did_is_told_to_claude_and_threads_outlive_a_restart(tmp_path: Path) -> None:
    """An image reaches the model as an image."""
    async with (
        scene(tmp_path, deadline_s=WORKING_S) as place,
        on_codex() as codex,
        on_claude() as claude,
    ):
        lanes = SpiedLanes(codex=codex, claude=claude)
        async with place.running(lanes) as process:
            here = await begin(place, process)
            files = (("dot.png", dot(), "image/png"),)
            await here.say("/codex look", "%run echo built >made.txt", "%say I see a dot.", files=files)
            await here.see("I see a dot.")
            await here.see("**CODEX COMPLETED**")
            assert "input_image" in codex.heard()
            await here.say("And you?", "%say I heard of it.")
            await here.see("I heard of it.")
            assert claude.heard().count(START) == 1
            assert "echo built >made.txt" in claude.heard()
        async with place.running(lanes) as process:
            await here.say("/codex What was it?", "%say A dot.")
            await here.see("A dot.")
            await process.settled()
            assert "I see a dot." in codex.heard(), "its thread goes on"


@pytest.mark.covers("003-case.14")
async def test_two_conversations_at_once_do_not_touch_each_other(
    tmp_path: Path, processes: OwnProcesses
) -> None:
    """One app-server serves both."""
    async with (
        scene(tmp_path, deadline_s=WORKING_S) as place,
        rehearsed(tmp_path) as lanes,
        place.running(lanes) as process,
    ):
        one, two = await begin(place, process), await begin(place, process)
        await one.say("/codex", STREAM)
        await one.see(BEGUN)
        await two.say("/codex %run echo two >two.txt", "%say Only for the second.")
        await two.see("Only for the second.")
        await two.see("**CODEX COMPLETED**")
        assert len(processes.named("app-server")) == 1
        assert "COMPLETED" not in one.text
        assert "Only for" not in one.text
        assert BEGUN not in two.text
        await one.say("/stop")
        await one.see("**CODEX STOPPED**")
        assert "STOPPED" not in two.text


@pytest.mark.covers("003-case.12")
async def test_without_a_login_codex_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    chosen = ChosenEngines(codex=CodexChoice(), claude=ClaudeChoice())
    async with (
        scene(tmp_path, deadline_s=WORKING_S) as place,
        ChatLanes(chosen, load({}, {}, tmp_path, tmp_path), is_remote=True) as lanes,
        place.running(lanes) as process,
    ):
        here = await begin(place, process)
        await here.say("/codex fix it")
        await here.see(CODEX_LOGIN)
