"""A process of Laneway on the fake Telegram, to be killed: its lanes echo, and their words are long enough.

`python -m tests.doors.chat.platforms.telegram.bot_process FOLDER API_URL TOKEN USER_ID`
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

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


async def play(turn: ScriptedTurn) -> None:
    turn.accept()
    if "ask" in turn.given.text:
        turn.approve("make all")
    else:
        turn.say(f"You said: {turn.given.text}")


async def main(folder: Path, api_url: str, token: str, user_id: str) -> None:
    locks = ConversationLockFiles(folder / "conversations")
    with Database(folder / "laneway.db") as database:
        store = StoredConversations(database, locks)
        async with ChatService(ScriptedLanes(play=play), store, locks, ChatOptions(cwd=folder)) as chat:
            access = bot_access("telegram", [user_id], [], [])
            options = TelegramOptions(token=token, access=access, files=folder / "files", api_url=api_url)
            await TelegramPlatform(options, BotRuntime(store, clock=QuickClock())).run(chat)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:5]))
