"""A fake Telegram on loopback for tests: the Bot API, as strict as the service, with people who use it.

`async with FakeTelegram() as telegram:` serves at `telegram.api_url`. A test lets people write, press
buttons and stop drafts (`telegram.person("ada")`), reads what the bot has sent (`telegram.shown(chat)`),
and scripts rates, faults and cuts. Wrong requests get Telegram's own errors (`telegram.refused`).
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from aiohttp import web

from laneway.base.clock import LoopClock
from laneway.core.ports import Clock
from laneway.testing.call_faults import CallFaults, HeldAnswer
from laneway.testing.fake_telegram.calls import BotApiCall
from laneway.testing.fake_telegram.checks import BotApiRefusal
from laneway.testing.fake_telegram.limits import BotApiLimits, BotApiRate
from laneway.testing.fake_telegram.methods import BotApiTap
from laneway.testing.fake_telegram.people import BotApiClientError, BotApiPerson
from laneway.testing.fake_telegram.server import BotApiServer
from laneway.testing.fake_telegram.world import (
    BotApiChat,
    BotApiContent,
    BotApiDraft,
    BotApiFile,
    BotApiMessage,
    BotApiUser,
    BotApiWorld,
)

__all__ = [
    "BotApiCall",
    "BotApiChat",
    "BotApiClientError",
    "BotApiContent",
    "BotApiDraft",
    "BotApiFile",
    "BotApiMessage",
    "BotApiPerson",
    "BotApiRate",
    "BotApiRefusal",
    "BotApiTap",
    "BotApiUser",
    "FakeTelegram",
    "HeldAnswer",
]

TOKEN = "7000000001:AAfake-laneway-tests-only-token-000"


class FakeTelegram:
    """The service, from `async with` to its end. `clock` counts rates."""

    def __init__(
        self,
        *,
        token: str = TOKEN,
        clock: Clock | None = None,
        wall: Callable[[], float] = time.time,
        private: BotApiRate | None = None,
        group: BotApiRate | None = None,
    ) -> None:
        self.token = token
        self.world = BotApiWorld(wall)
        clock = clock or LoopClock()
        self.limits = BotApiLimits(clock)
        self.limits.private = private or self.limits.private
        self.limits.group = group or self.limits.group
        self.server = BotApiServer(self.world, token, clock, self.limits)
        self.server.on_change = self._tell
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.api_url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._people: dict[str, BotApiPerson] = {}
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=60 * 1024 * 1024)
        app.add_routes(self.server.routes())
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.close()
        assert self._runner is not None
        await self._runner.cleanup()

    # ── the scene ──────────────────────────────────────────────────────────

    def person(self, name: str) -> BotApiPerson:
        """The user of that name, made by the first call."""
        if name not in self._people:
            self._people[name] = BotApiPerson(self.world, self.server, self.world.add_user(name))
        return self._people[name]

    def private(self, person: BotApiPerson) -> BotApiChat:
        """The chat of that person with the bot."""
        return self.world.private(person.user)

    def group(self, title: str, *, is_forum: bool = False) -> BotApiChat:
        """The group of that title, made by the first call."""
        for chat in self.world.chats.values():
            if chat.title == title:
                return chat
        return self.world.add_group(title, is_forum=is_forum)

    # ── what came of it ────────────────────────────────────────────────────

    def shown(self, chat: BotApiChat, topic: int | None = None) -> list[BotApiMessage]:
        """The bot's messages that can be seen there."""
        return [
            message
            for message in self.world.messages.values()
            if message.chat is chat
            and message.sender is self.world.bot
            and not message.is_deleted
            and topic in (None, message.thread_id)
        ]

    def text(self, chat: BotApiChat, topic: int | None = None) -> str:
        return "\n\n".join(message.text for message in self.shown(chat, topic))

    def drafts(self, chat: BotApiChat) -> list[BotApiDraft]:
        return [draft for draft in self.world.drafts if draft.chat is chat]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that what the bot does brings about."""
        while not holds():
            await self._changed.wait()

    async def message_with(self, chat: BotApiChat, words: str, topic: int | None = None) -> BotApiMessage:
        """Wait for a message of the bot's with these words; the latest one."""

        def found() -> list[BotApiMessage]:
            return [message for message in self.shown(chat, topic) if words in message.text]

        await self.until(lambda: bool(found()))
        return found()[-1]

    async def draft_with(self, chat: BotApiChat, words: str) -> BotApiDraft:
        await self.until(lambda: any(words in draft.text for draft in self.drafts(chat)))
        return [draft for draft in self.drafts(chat) if words in draft.text][-1]

    async def answered(self, tap: BotApiTap) -> str:
        """Wait for the answer to a tap."""
        await self.until(lambda: tap.is_answered)
        return tap.answer

    async def wait_polled(self) -> None:
        """Wait until the bot has confirmed all updates and asks for more."""
        await self.until(lambda: not self.world.updates and self.server.is_polled)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def calls(self) -> list[BotApiCall]:
        return self.server.calls

    def called(self, *methods: str) -> list[BotApiCall]:
        return [call for call in self.server.calls if call.method in methods]

    @property
    def faults(self) -> CallFaults:
        return self.server.faults

    @property
    def refused(self) -> list[BotApiRefusal]:
        return self.server.refused
