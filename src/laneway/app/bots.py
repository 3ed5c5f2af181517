"""The bots of Telegram and Discord, made of their settings: token, people, one process for each token.

A token is removed from the environment as soon as it was read, and is in no text.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

from laneway.base.errors import ConversationHeld, UsageError
from laneway.base.paths import state_home

if TYPE_CHECKING:
    from laneway.base.settings import Settings
    from laneway.core.conversations import ConversationLocks
    from laneway.doors.chat.platform import ChatPlatform
    from laneway.doors.chat.platforms.bots.access import BotAccess
    from laneway.doors.chat.platforms.bots.health import HealthLine
    from laneway.doors.chat.ports import Chat

BOTS = ("telegram", "discord")
"""The platforms that other people can reach."""
LOCKS = "bots"
"""The folder of their locks, below the state folder."""
FILES = "received"
"""The folder of what people attach, below the state folder."""


def token_of(platform: str, settings: Settings, environment: MutableMapping[str, str]) -> str:
    """The bot's token. Raises `UsageError` if there is none."""
    token = settings.value(f"chat.{platform}.token")
    for variable in variables(platform):
        environment.pop(variable, None)
    if not token:
        raise UsageError(
            f"There is no bot token for {platform}. Run `laneway setup {platform}`, "
            f"or set {variables(platform)[0]}."
        )
    return str(token)


def variables(platform: str) -> tuple[str, str]:
    """The environment variables of its token."""
    return f"LANEWAY_{platform.upper()}_TOKEN", f"LANEWAY_CHAT_{platform.upper()}_TOKEN"


def access_of(platform: str, settings: Settings) -> BotAccess:
    """Who may speak to it. Raises `UsageError` where nobody could."""
    from laneway.doors.chat.platforms.bots.access import bot_access

    users, owners, chats = (
        settings.value(f"chat.{platform}.{key}") for key in ("allowed_users", "owners", "allowed_chats")
    )
    return bot_access(platform, users, owners, chats)


def files_folder(platform: str) -> Path:
    return state_home() / FILES / platform


def bot_locks(program: str = "laneway chat") -> ConversationLocks:
    """`program`: how the holder calls itself."""
    from laneway.store.conversation_locks import ConversationLockFiles

    return ConversationLockFiles(state_home() / LOCKS, program)


def lock_name(platform: str, token: str) -> str:
    """One for each bot; says nothing of the token."""
    return f"{platform}-{hashlib.sha256(token.encode()).hexdigest()[:24]}"


def hold_bot(platform: str, token: str, locks: ConversationLocks) -> Callable[[], None]:
    """Take the bot for this process, until the result is called. Raises `UsageError` if another has it."""
    try:
        return locks.hold(lock_name(platform, token))
    except ConversationHeld as held:
        raise UsageError(f"The bot for {platform} is run by {held.holder}: end that first.") from None


def holder_of(platform: str, token: str, state: Path) -> str:
    """The process that runs this bot now; empty if there is none. Makes no file. Blocks."""
    from laneway.store.conversation_locks import ConversationLockFiles

    name = lock_name(platform, token)
    if not (state / LOCKS / f"{name}.lock").exists():
        return ""
    try:
        ConversationLockFiles(state / LOCKS).hold(name)()
    except ConversationHeld as held:
        return held.holder
    return ""


def bot_health(platform: str, state: Path) -> HealthLine | None:
    """What the bot has told of its connection last, in whatever process. Blocks. Raises `StoreError`."""
    from laneway.doors.chat.platforms.bots.health import last_health
    from laneway.store.conversation_locks import ConversationLockFiles
    from laneway.store.conversations import StoredConversations
    from laneway.store.database import Database, database_path

    path = state / database_path().name
    if not path.exists():
        return None
    with Database(path) as database:
        return last_health(platform, StoredConversations(database, ConversationLockFiles(state / LOCKS)))


class SoleBot:
    """A bot that no other process of this user runs meanwhile: each would get only some of the messages."""

    def __init__(self, platform: ChatPlatform, token: str, locks: ConversationLocks) -> None:
        self._platform = platform
        self._locks = locks
        self._token = token

    @property
    def name(self) -> str:
        return self._platform.name

    async def run(self, chat: Chat) -> int:
        release = await asyncio.to_thread(hold_bot, self.name, self._token, self._locks)
        try:
            return await self._platform.run(chat)
        finally:
            release()
