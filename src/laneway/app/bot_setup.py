"""Introductions to bots, alike for every platform: what is known of a bot, who types the code, its proof.

For `laneway setup telegram` and `laneway setup discord`. A token is in no text of what is returned.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import msgspec

from laneway.app.bots import bot_locks, hold_bot
from laneway.base.errors import UsageError

if TYPE_CHECKING:
    from laneway.base.settings import Settings
    from laneway.doors.chat.platforms.discord.setting_up import DiscordIntroduction
    from laneway.doors.chat.platforms.telegram.setting_up import TelegramIntroduction

TITLES = {"telegram": "Telegram", "discord": "Discord"}
ANSWER_S = 30.0
"""For what a service knows of a token."""
GETTING_A_TOKEN = {
    "telegram": (
        "In Telegram, open @BotFather (https://t.me/BotFather), send /newbot and choose two names.",
        "It answers with a token, which is a number, a colon and 35 letters.",
    ),
    "discord": (
        "Open https://discord.com/developers/applications and press “New Application”.",
        "On its page “Bot”, switch on “Message Content Intent”, then press “Reset Token” and copy the token.",
    ),
}
"""For people, in steps."""


class BotGuest(msgspec.Struct, frozen=True, kw_only=True):
    """Who has typed the code, and where."""

    user_id: str
    name: str
    group_id: str
    """The group or channel as `allowed_chats` lists it; empty in private."""
    passed_over: int = 0
    """Other messages that had waited for the bot and are lost by this."""


class BotProblem(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the way of a code: `fix` removes it, if that can be done from here."""

    text: str
    question: str = ""
    fix: bool = False


class BotIntroduction(Protocol):
    @property
    def bot_id(self) -> str: ...

    @property
    def name(self) -> str:
        """As people find it."""
        ...

    @property
    def problem(self) -> BotProblem | None: ...

    async def solve(self) -> None:
        """Remove the problem. Raises `UsageError`."""
        ...

    def steps(self, code: str) -> tuple[str, ...]:
        """What a person does to type the code."""
        ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    async def wait_for(self, code: str) -> BotGuest:
        """Waits for ever. Raises `UsageError`."""
        ...

    async def prove(self, text: str) -> str:
        """Send it to where the code was typed. Returns why that is not possible; empty if it was."""
        ...


@asynccontextmanager
async def introduction(platform: str, token: str, settings: Settings) -> AsyncIterator[BotIntroduction]:
    """Raises `UsageError` for a wrong token, without a network, and while another process runs that bot."""
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(await _held(platform, token))
        opening = _telegram if platform == "telegram" else _discord
        try:
            async with asyncio.timeout(ANSWER_S):
                found = await stack.enter_async_context(opening(token, settings))
        except TimeoutError:
            why = f"{TITLES[platform]} has not answered within {ANSWER_S:g} s: check the network."
            raise UsageError(why) from None
        yield found


async def _held(platform: str, token: str) -> Callable[[], None]:
    return await asyncio.to_thread(hold_bot, platform, token, bot_locks("laneway setup"))


# ── Telegram ───────────────────────────────────────────────────────────────


@asynccontextmanager
async def _telegram(token: str, settings: Settings) -> AsyncIterator[BotIntroduction]:
    from laneway.doors.chat.platforms.telegram.api import API_URL
    from laneway.doors.chat.platforms.telegram.setting_up import introduced

    async with introduced(token, api_url=settings.chat_telegram_api_url or API_URL) as here:
        yield _OnTelegram(here)


class _OnTelegram:
    def __init__(self, here: TelegramIntroduction) -> None:
        from laneway.doors.chat.platforms.telegram.setting_up import TelegramNewcomer

        self._here = here
        self._newcomer: TelegramNewcomer | None = None

    @property
    def bot_id(self) -> str:
        return str(self._here.bot.bot_id)

    @property
    def name(self) -> str:
        return f"@{self._here.bot.name}"

    @property
    def problem(self) -> BotProblem | None:
        host = self._here.bot.webhook
        if not host:
            return None
        return BotProblem(
            text=f"The messages of this bot go to a webhook at {host}, so another program uses it, or did.",
            question="Remove the webhook, so that they come to Laneway?",
            fix=True,
        )

    async def solve(self) -> None:
        await self._here.remove_webhook()

    def steps(self, code: str) -> tuple[str, ...]:
        return (
            f"Open {self._here.bot.chat_url(code)} and press Start,",
            f"or send the bot {self.name} this code: {code}",
            f"(in a group: {self.name} {code}, and the group is allowed, too).",
        )

    @property
    def notes(self) -> tuple[str, ...]:
        if not self._here.bot.reads_groups:
            return ()
        return (
            "In groups this bot receives every message, and Laneway needs only those that are for it: "
            "/setprivacy at @BotFather changes that.",
        )

    async def wait_for(self, code: str) -> BotGuest:
        self._newcomer = found = await self._here.wait_for(code)
        group_id = "" if found.is_private else found.chat_id
        return BotGuest(
            user_id=found.user_id, name=found.name, group_id=group_id, passed_over=found.passed_over
        )

    async def prove(self, text: str) -> str:
        assert self._newcomer is not None, "nobody has typed the code yet"
        return await self._here.prove(self._newcomer, text)


# ── Discord ────────────────────────────────────────────────────────────────


@asynccontextmanager
async def _discord(token: str, settings: Settings) -> AsyncIterator[BotIntroduction]:
    from laneway.doors.chat.platforms.discord.gateway import API_URL, GATEWAY_URL
    from laneway.doors.chat.platforms.discord.setting_up import introduced

    addresses = {
        "api_url": settings.chat_discord_api_url or API_URL,
        "gateway_url": settings.chat_discord_gateway_url or GATEWAY_URL,
    }
    async with introduced(token, **addresses) as here:
        yield _OnDiscord(here)


class _OnDiscord:
    def __init__(self, here: DiscordIntroduction) -> None:
        from laneway.doors.chat.platforms.discord.setting_up import DiscordNewcomer

        self._here = here
        self._newcomer: DiscordNewcomer | None = None

    @property
    def bot_id(self) -> str:
        return str(self._here.bot.bot_id)

    @property
    def name(self) -> str:
        return self._here.bot.name

    @property
    def problem(self) -> BotProblem | None:
        if self._here.bot.reads_words:
            return None
        return BotProblem(
            text="This bot cannot read what people write: switch on “Message Content Intent” on its page "
            "“Bot” of https://discord.com/developers/applications, then try again."
        )

    async def solve(self) -> None:
        raise UsageError("Only its owner can do that, in Discord's developer portal.")

    def steps(self, code: str) -> tuple[str, ...]:
        return (
            f"If it is on no server yet, add it: {self._here.bot.invite_url}",
            f"In a channel of that server, write: @{self.name} {code}",
            f"(or send {code} to the bot in private, if that is where you want to talk with it).",
        )

    notes: tuple[str, ...] = ()

    async def wait_for(self, code: str) -> BotGuest:
        self._newcomer = found = await self._here.wait_for(code)
        return BotGuest(user_id=found.user_id, name=found.name, group_id=found.chat_id)

    async def prove(self, text: str) -> str:
        assert self._newcomer is not None, "nobody has typed the code yet"
        return await self._here.prove(self._newcomer, text)
