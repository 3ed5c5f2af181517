"""A process of Laneway on a fake Discord, for tests that kill it.

`python -m … FOLDER API GATEWAY TOKEN USER CHAT`. Its lanes do what the words of their turns say: `ask`
asks for an approval and waits, `work` begins to speak and waits, anything else is repeated.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.platforms.bots.access import bot_access
from laneway.doors.chat.platforms.bots.runtime import BotRuntime
from laneway.doors.chat.platforms.discord.platform import DiscordOptions, DiscordPlatform
from laneway.doors.chat.service import ChatService
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn, echo
from laneway.testing.clock import QuickClock
from tests.doors.chat.platforms.bot_scenes import COMMANDS


async def play(turn: ScriptedTurn) -> None:
    if turn.given.text == "ask":
        turn.accept()
        turn.approve("make install")
    elif turn.given.text == "work":
        turn.accept()
        turn.text("I begin to work.")
    else:
        await echo(turn)


async def main(folder: Path, api_url: str, gateway_url: str, token: str, user: str, chat_id: str) -> None:
    locks = ConversationLockFiles(folder / "conversations")
    with Database(folder / "laneway.db") as database:
        store = StoredConversations(database, locks)
        async with ChatService(ScriptedLanes(play=play), store, locks, ChatOptions(cwd=folder)) as chat:
            options = DiscordOptions(
                token=token,
                access=bot_access("discord", [user], [user], [chat_id]),
                files=folder / "files",
                commands=COMMANDS,
                api_url=api_url,
                gateway_url=gateway_url,
            )
            await DiscordPlatform(options, BotRuntime(store, clock=QuickClock())).run(chat)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
