"""A bot that is killed at the worst moments goes on at its next start, and nothing is lost."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.testing.clock import QuickClock
from laneway.testing.fake_telegram import FakeTelegram

DEADLINE_S = 60.0


class Killable:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.telegram = FakeTelegram(clock=QuickClock())
        self.ada = self.telegram.person("ada")
        self.chat = self.telegram.private(self.ada)
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.doors.chat.platforms.telegram.bot_process"),
            *(str(self._folder), self.telegram.api_url, self.telegram.token, self.ada.user_id),
            stderr=asyncio.subprocess.DEVNULL,
        )
        polls = self.telegram.server.polls
        await self.telegram.until(lambda: self.telegram.server.polls > polls)

    async def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def said(self, words: str) -> int:
        return sum(words in message.text for message in self.telegram.shown(self.chat))


@asynccontextmanager
async def killable(folder: Path) -> AsyncIterator[Killable]:
    bot = Killable(folder)
    async with asyncio.timeout(DEADLINE_S), bot.telegram:
        try:
            yield bot
        finally:
            await bot.kill()


@pytest.mark.parametrize("takes_effect", [True, False], ids=["after the send", "before the send"])
async def test_a_kill_in_the_middle_of_a_send_loses_nothing(tmp_path: Path, *, takes_effect: bool) -> None:
    """Between send and note it may be shown twice; that is the one case."""
    async with killable(tmp_path) as bot:
        await bot.start()
        if takes_effect:
            held = bot.telegram.faults.hold("sendMessage")
            bot.ada.write(bot.chat, "hello")
            await held.reached.wait()
        else:
            held = None
            bot.telegram.faults.fail("sendMessage", 502, times=1000)
            bot.ada.write(bot.chat, "hello")
            await bot.telegram.until(lambda: bool(bot.telegram.called("sendMessage")))
        await bot.kill()
        if held is None:
            while bot.telegram.faults.take("sendMessage"):
                pass
        else:
            held.release.set()
        before = bot.said("You said: hello")
        assert before == (1 if takes_effect else 0)
        await bot.start()
        await bot.telegram.until(lambda: bot.said("You said: hello") > before)
        bot.ada.write(bot.chat, "and now")
        await bot.telegram.message_with(bot.chat, "You said: and now")
        assert bot.said("You said: hello") == before + 1
        assert bot.said("You said: and now") == 1


async def test_a_kill_with_an_open_question_voids_it_and_input_that_waits_is_run(tmp_path: Path) -> None:
    async with killable(tmp_path) as bot:
        await bot.start()
        bot.ada.write(bot.chat, "/codex ask me")
        asked = await bot.telegram.message_with(bot.chat, "make all")
        queued = bot.ada.write(bot.chat, "/queue then go on")
        # A later call of that chat: by then it is noted that the question was sent, so it is not sent again.
        await bot.telegram.until(lambda: bool(queued.reactions))
        await bot.telegram.wait_polled()
        await bot.kill()
        bot.ada.write(bot.chat, "/queue while you were away")  # alone it would stop the other one
        tap = bot.ada.press(asked, "Allow once")
        await bot.start()
        await bot.telegram.until(lambda: not asked.labels)
        assert "program that asked has ended" in asked.text
        assert await bot.telegram.answered(tap)
        await bot.telegram.message_with(bot.chat, "You said: then go on")
        await bot.telegram.message_with(bot.chat, "You said: while you were away")
        cut = await bot.telegram.message_with(bot.chat, "ended in the middle of this turn")
        assert cut.labels == ["Continue"]
        await bot.telegram.wait_polled()
        assert [bot.said(f"You said: {words}") for words in ("then go on", "while you were away")] == [1, 1]
