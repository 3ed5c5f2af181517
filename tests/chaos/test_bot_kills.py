"""Bots killed with SIGKILL at random instants: each message is answered, or its person told that it was cut.

Telegram may show an answer twice after a death between its sending and the note of that; Discord never does,
because a message is sent with a nonce.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from laneway.testing.fake_discord import DiscordChannel
from tests.doors.chat.platforms.discord import scene as on_discord
from tests.doors.chat.platforms.discord.test_restarts import killed_at_the_end
from tests.doors.chat.platforms.telegram.test_kills import Killable

ROUNDS = 100 if os.environ.get("LANEWAY_CHAOS") else 5
MESSAGES = 4
"""In each round."""
LATEST_KILL_S = 0.4
"""After the last message of a round: by then most have been answered."""
DEADLINE_S = 1700.0
CUT = "ended in the middle of this turn"
ECHO = "You said: "


class Census:
    """What was sent, and what became of it."""

    def __init__(self) -> None:
        self.seed = random.randrange(2**32)
        self.chance = random.Random(self.seed)
        self.sent: list[str] = []

    def next_words(self) -> list[str]:
        names = [f"m{len(self.sent) + number}." for number in range(1, MESSAGES + 1)]
        self.sent += names
        return names

    async def instant(self) -> None:
        await asyncio.sleep(self.chance.random() * LATEST_KILL_S)

    def answers(self, shown: list[str]) -> Counter[str]:
        """How often each message was answered."""
        return Counter(
            name
            for name in self.sent
            for text in shown
            for line in text.split("\n")
            if line == f"{ECHO}{name}"
        )

    def is_over(self, shown: list[str]) -> bool:
        """Whether the fate of each can be seen."""
        cut = sum(CUT in text for text in shown)
        return len(self.answers(shown)) + cut >= len(self.sent)

    def check(self, shown: list[str], *, may_repeat: int) -> None:
        answers = self.answers(shown)
        where = (f"seed {self.seed}", answers, shown)
        unanswered = [name for name in self.sent if not answers[name]]
        assert len(unanswered) <= sum(CUT in text for text in shown), where
        assert sum(count - 1 for count in answers.values()) <= may_repeat, where
        assert len(answers) > len(self.sent) // 2, where


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_on_telegram_every_message_is_answered_or_told_to_be_cut(tmp_path: Path) -> None:
    census, bot = Census(), Killable(tmp_path)

    def shown() -> list[str]:
        return [message.text for message in bot.telegram.shown(bot.chat)]

    async with asyncio.timeout(DEADLINE_S), bot.telegram:
        try:
            for _ in range(ROUNDS):
                await bot.start()
                for name in census.next_words():
                    bot.ada.write(bot.chat, f"/queue {name}")
                await census.instant()
                await bot.kill()
            await bot.start()
            await bot.telegram.until(lambda: census.is_over(shown()))
            await bot.telegram.wait_polled()
        finally:
            await bot.kill()
    census.check(shown(), may_repeat=ROUNDS)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_on_discord_every_message_is_answered_once_or_told_to_be_cut(tmp_path: Path) -> None:
    census = Census()
    async with on_discord.scene(tmp_path, deadline_s=DEADLINE_S) as place:
        discord = place.discord
        async with killed_at_the_end(place):
            await place.ada.write(place.general, f"{place.mention} hello")
            thread = await discord.thread_in(place.general)
        shown = texts_of(place, thread)
        for _ in range(ROUNDS):
            async with killed_at_the_end(place):
                for name in census.next_words():
                    await place.ada.write(thread, f"/queue {name}")
                await census.instant()
        async with killed_at_the_end(place):
            await discord.until(lambda: census.is_over(shown()))
    census.check(shown(), may_repeat=0)


def texts_of(place: on_discord.Scene, thread: DiscordChannel) -> Callable[[], list[str]]:
    return lambda: [message.content for message in place.discord.shown(thread)]
