"""Words that stream into threads of a fake Discord, which counts calls.

`python -m bench.discord_calls CHATS WORDS SPEED`. With a speed, the clock of both sides runs faster than
time, so that minutes of streaming take seconds. The limits are Discord's: five messages and five edits in
five seconds for each channel, fifty calls a second for a bot.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.rig import tell
from laneway.base.clock import LoopClock
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.platforms.bots.access import bot_access
from laneway.doors.chat.platforms.bots.runtime import BotRuntime
from laneway.doors.chat.platforms.discord.platform import DiscordOptions, DiscordPlatform
from laneway.doors.chat.service import ChatService
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn
from laneway.testing.clock import QuickClock
from laneway.testing.fake_discord import DiscordChannel, FakeDiscord

WORD_S = 0.02
"""Between two words of one model, on the fast clock: fifty words a second."""
DEADLINE_S = 240.0


async def measure(chats: int, words: int, speed: float) -> dict[str, Any]:
    clock = QuickClock(speed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        locks = ConversationLockFiles(folder / "conversations")
        lanes = ScriptedLanes()
        async with asyncio.timeout(DEADLINE_S), FakeDiscord(clock=clock, answer_clock=LoopClock()) as discord:
            ada = discord.person("ada")
            rooms = [discord.channel(f"channel-{number}") for number in range(chats)]
            with Database(folder / "laneway.db") as database:
                store = StoredConversations(database, locks)
                async with ChatService(lanes, store, locks, ChatOptions(cwd=folder)) as chat:
                    options = DiscordOptions(
                        token=discord.token,
                        access=bot_access("discord", [ada.user_id], [], [each.channel_id for each in rooms]),
                        files=folder / "files",
                        commands=(),
                        api_url=discord.api_url,
                        gateway_url=discord.gateway_url,
                    )
                    platform = DiscordPlatform(
                        options, BotRuntime(store, clock=clock, tell=lambda line: None)
                    )
                    running = asyncio.create_task(platform.run(chat))
                    await discord.wait_ready()
                    for room in rooms:
                        await ada.write(room, f"<@{discord.world.bot.user_id}> write")
                    turns = [await _turn_of(lanes, number) for number in range(chats)]
                    before = len(discord.calls)
                    streams = [
                        _stream(turn, words, number, clock, speed) for number, turn in enumerate(turns)
                    ]
                    ended = await asyncio.gather(*streams)
                    lags = await asyncio.gather(
                        *(_shown(discord, number, ended, clock) for number in range(chats))
                    )
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)
            return {
                "calls": len(discord.calls) - before,
                "told": discord.limits.told,
                "inside": discord.limits.broken,
                "refused": len(discord.refused),
                "lag_s": sorted(lags)[int(len(lags) * 0.95)],
            }


async def _turn_of(lanes: ScriptedLanes, number: int) -> ScriptedTurn:
    while len(lanes.made) <= number:  # noqa: ASYNC110  scripted lanes tell nobody that they were made
        await asyncio.sleep(0.01)
    return await lanes.made[number].begun()


async def _stream(turn: ScriptedTurn, words: int, number: int, clock: QuickClock, speed: float) -> float:
    """Returns when the turn ended."""
    turn.accept()
    began = clock.now()
    for count in range(words):
        turn.text(f"word{count} ")
        late_s = began + (count + 1) * WORD_S - clock.now()
        if late_s > 0:
            await asyncio.sleep(late_s / speed)
        elif count % 50 == 0:
            await asyncio.sleep(0)
    turn.text(_last(number))
    turn.done()
    return clock.now()


def _last(number: int) -> str:
    return f"The end of {number}."


async def _shown(discord: FakeDiscord, number: int, ended: list[float], clock: QuickClock) -> float:
    """How long after its end the last words of a turn, complete and without a Stop button, were there."""

    def is_complete(channel: DiscordChannel) -> bool:
        return any(_last(number) in each.content and not each.buttons for each in discord.shown(channel))

    await discord.until(lambda: any(is_complete(thread) for thread in discord.world.threads()))
    return clock.now() - ended[number]


if __name__ == "__main__":
    tell(asyncio.run(measure(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))))
