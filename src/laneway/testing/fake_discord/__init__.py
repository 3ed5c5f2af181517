"""A fake Discord on loopback for tests: REST and gateway, as strict as the service, with people who use it.

`async with FakeDiscord() as discord:` serves at `discord.api_url` and `discord.gateway_url`. A test lets
people write, press buttons and fill in dialogs (`discord.person("ada")`), reads what the bot has sent
(`discord.shown(channel)`), and scripts rates, faults and cuts. Interactions that are answered later than
after three seconds are refused, wrong requests get Discord's own errors (`discord.refused`).
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
from laneway.testing.fake_discord.calls import DiscordCall
from laneway.testing.fake_discord.checks import DiscordRefusal
from laneway.testing.fake_discord.gateway import DiscordGateway
from laneway.testing.fake_discord.interactions import DiscordInteraction
from laneway.testing.fake_discord.limits import DiscordLimits, DiscordRate
from laneway.testing.fake_discord.people import DiscordClientError, DiscordPerson
from laneway.testing.fake_discord.rest import DiscordRest
from laneway.testing.fake_discord.world import DiscordChannel, DiscordMessage, DiscordUser, DiscordWorld

__all__ = [
    "DiscordCall",
    "DiscordChannel",
    "DiscordClientError",
    "DiscordInteraction",
    "DiscordMessage",
    "DiscordPerson",
    "DiscordRate",
    "DiscordUser",
    "FakeDiscord",
    "HeldAnswer",
]

TOKEN = "MTIzNDU2Nzg5MDEyMzQ1Njc4.fake.laneway-tests-only-token"


class FakeDiscord:
    """The service, from `async with` to its end.

    `clock` counts rates, and `answer_clock` the seconds in which an interaction must be answered.
    `content_allowed`: the Message Content Intent is on.
    """

    def __init__(
        self,
        *,
        token: str = TOKEN,
        clock: Clock | None = None,
        answer_clock: Clock | None = None,
        wall: Callable[[], float] = time.time,
        rates: dict[str, DiscordRate] | None = None,
        content_allowed: bool = True,
    ) -> None:
        self.token = token
        self.world = DiscordWorld(wall)
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        clock = clock or LoopClock()
        answer_clock = answer_clock or clock
        self.limits = DiscordLimits(clock, rates)
        self.gateway = DiscordGateway(self.world, token, base_url, content_allowed=content_allowed)
        self.rest = DiscordRest(self.world, self.gateway, token, base_url, clock, self.limits, answer_clock)
        self.rest.on_change = self.gateway.on_change = self._tell
        self.api_url = f"{base_url}/api/v10"
        self.gateway_url = self.gateway.url
        self._base_url = base_url
        self._people: dict[str, DiscordPerson] = {}
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=30 * 1024 * 1024)
        app.add_routes(self.rest.routes())
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in list(self.gateway.connections):
            await connection.socket.close(code=1001)
        assert self._runner is not None
        await self._runner.cleanup()

    # ── the scene ──────────────────────────────────────────────────────────

    def person(self, name: str) -> DiscordPerson:
        """The user of that name, made by the first call."""
        if name not in self._people:
            user = self.world.add_user(name)
            self._people[name] = DiscordPerson(self.world, self.rest, user, self._base_url)
        return self._people[name]

    def channel(self, name: str) -> DiscordChannel:
        """The text channel of that name, made by the first call; make it before a bot connects."""
        for channel in self.world.channels.values():
            if channel.type == 0 and channel.name == name:
                return channel
        return self.world.add_channel(name)

    def dm(self, person: DiscordPerson) -> DiscordChannel:
        return self.world.dm_with(person.user)

    def threads(self, channel: DiscordChannel) -> list[DiscordChannel]:
        return self.world.threads(channel.channel_id)

    async def archive(self, thread: DiscordChannel, *, locked: bool = False) -> None:
        """The thread is closed, as Discord does after days without a message."""
        thread.is_archived, thread.is_locked = True, locked
        await self.gateway.dispatch("THREAD_UPDATE", self.world.channel_json(thread), needs=1)

    async def delete_thread(self, thread: DiscordChannel) -> None:
        thread.is_deleted = True
        gone = {
            "id": thread.channel_id,
            "guild_id": self.world.guild_id,
            "parent_id": thread.parent_id,
            "type": thread.type,
        }
        await self.gateway.dispatch("THREAD_DELETE", gone, needs=1)

    # ── what came of it ────────────────────────────────────────────────────

    def shown(self, channel: DiscordChannel, person: DiscordPerson | None = None) -> list[DiscordMessage]:
        """The bot's messages that can be seen there."""
        seen = self.world.visible(channel, "" if person is None else person.user_id)
        return [message for message in seen if message.author is self.world.bot]

    def text(self, channel: DiscordChannel, person: DiscordPerson | None = None) -> str:
        return "\n\n".join(message.content for message in self.shown(channel, person))

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that what the bot does brings about."""
        while not holds():
            await self._changed.wait()

    async def message_with(self, channel: DiscordChannel, words: str) -> DiscordMessage:
        """Wait for a message of the bot's with these words; the latest one."""

        def found() -> list[DiscordMessage]:
            return [message for message in self.shown(channel) if words in message.content]

        await self.until(lambda: bool(found()))
        return found()[-1]

    async def thread_in(self, channel: DiscordChannel, count: int = 1) -> DiscordChannel:
        """Wait for the latest of so many threads, and for a first message in it."""
        await self.until(
            lambda: len(self.threads(channel)) >= count and bool(self.shown(self.threads(channel)[count - 1]))
        )
        return self.threads(channel)[count - 1]

    async def wait_ready(self) -> None:
        """Wait until a bot has identified itself."""
        await self.until(lambda: self.gateway.is_ready)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def calls(self) -> list[DiscordCall]:
        return self.rest.calls

    @property
    def faults(self) -> CallFaults:
        return self.rest.faults

    @property
    def refused(self) -> list[DiscordRefusal]:
        return self.rest.refused

    @property
    def unanswered(self) -> list[DiscordInteraction]:
        return self.rest.interactions.unanswered
