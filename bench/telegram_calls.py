"""Words that stream into chats of a fake Telegram, which counts calls.

`python -m bench.telegram_calls KIND CHATS WORDS SPEED`. KIND is `private` (drafts) or `group` (edits). With a
speed, the clock of both sides runs faster than time, so that minutes of streaming take seconds. The limits
are Telegram's: about one call a second for a chat, 20 a minute for a group, 30 a second for a bot.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.rig import tell
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.platforms.bots.access import bot_access
from laneway.doors.chat.platforms.bots.runtime import BotRuntime
from laneway.doors.chat.platforms.telegram.platform import TelegramOptions, TelegramPlatform
from laneway.doors.chat.service import ChatService
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn
from laneway.testing.clock import QuickClock
from laneway.testing.fake_telegram import FakeTelegram

WORD_S = 0.02
"""Between two words of one model, on the fast clock: fifty words a second."""
DEADLINE_S = 240.0
SENDING = (
    "sendMessage",
    "sendRichMessage",
    "sendMessageDraft",
    "editMessageText",
    "editMessageReplyMarkup",
    "sendDocument",
    "setMessageReaction",
)


async def measure(kind: str, chats: int, words: int, speed: float) -> dict[str, Any]:
    clock = QuickClock(speed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        locks = ConversationLockFiles(folder / "conversations")
        lanes = ScriptedLanes()
        async with asyncio.timeout(DEADLINE_S), FakeTelegram(clock=clock) as telegram:
            people = [telegram.person(f"user{number}") for number in range(chats)]
            rooms = [
                telegram.private(person) if kind == "private" else telegram.group(f"Group {person.user_id}")
                for person in people
            ]
            groups = [] if kind == "private" else [str(room.chat_id) for room in rooms]
            with Database(folder / "laneway.db") as database:
                store = StoredConversations(database, locks)
                async with ChatService(lanes, store, locks, ChatOptions(cwd=folder)) as chat:
                    options = TelegramOptions(
                        token=telegram.token,
                        access=bot_access("telegram", [each.user_id for each in people], [], groups),
                        files=folder / "files",
                        api_url=telegram.api_url,
                    )
                    platform = TelegramPlatform(
                        options, BotRuntime(store, clock=clock, tell=lambda line: None)
                    )
                    running = asyncio.create_task(platform.run(chat))
                    await telegram.wait_polled()
                    for person, room in zip(people, rooms, strict=True):
                        person.write(room, "@laneway_bot write")
                    turns = [await _turn_of(lanes, number) for number in range(chats)]
                    before = len(telegram.called(*SENDING))
                    streams = [
                        _stream(turn, words, number, clock, speed) for number, turn in enumerate(turns)
                    ]
                    ended = await asyncio.gather(*streams)
                    lags = await asyncio.gather(
                        *(_shown(telegram, number, ended, clock) for number in range(chats))
                    )
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)
            return {
                "calls": len(telegram.called(*SENDING)) - before,
                "told": telegram.limits.told,
                "inside": telegram.limits.broken,
                "refused": len(telegram.refused),
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


async def _shown(telegram: FakeTelegram, number: int, ended: list[float], clock: QuickClock) -> float:
    """How long after its end the last words of a turn were there, in a message without a Stop button."""

    def is_complete() -> bool:
        return any(
            _last(number) in message.text and not message.labels
            for room in telegram.world.chats.values()
            for message in telegram.shown(room)
        )

    await telegram.until(is_complete)
    return clock.now() - ended[number]


if __name__ == "__main__":
    tell(asyncio.run(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))))
