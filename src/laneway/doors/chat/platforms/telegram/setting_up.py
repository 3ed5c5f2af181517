"""Setting up a bot on Telegram: what its token says of it, who types a code, and a message that proves it.

For `laneway setup telegram`, which asks the questions and writes the settings, and for `laneway doctor`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NoReturn
from urllib.parse import urlsplit

import msgspec

from laneway.base.clock import LoopClock
from laneway.base.errors import UsageError
from laneway.base.plain import code_label
from laneway.core.ports import Clock
from laneway.doors.chat.outbox import BACKOFF_S
from laneway.doors.chat.platforms.telegram.api import (
    API_URL,
    TelegramApi,
    TelegramOffline,
    TelegramRefused,
)
from laneway.doors.chat.platforms.telegram.polling import (
    ANSWER_S,
    BAD_TOKEN,
    CONFLICT_S,
    MAX_WAIT_S,
    POLL_S,
    sleep,
)
from laneway.doors.chat.platforms.telegram.updates import TelegramMessage, updates_of

UNREACHABLE = "Telegram could not be reached: check the network, or the proxy that the environment names."
NO_SERVER = "This is no server of Telegram's Bot API: correct chat.telegram.api_url."
TAKEN = (
    "Another program asks for this bot's messages, so the code would not reach us: end it, "
    "or use a bot of its own, and try again."
)


class TelegramBot(msgspec.Struct, frozen=True, kw_only=True):
    """What its token says of a bot."""

    bot_id: int
    name: str
    """Its username, without the @."""
    reads_groups: bool
    """Whether it is told every word in its groups: its privacy mode is off."""
    webhook: str
    """The host that its messages go to instead of to us; empty if there is none. Its path may be secret."""

    def chat_url(self, code: str) -> str:
        """Opens a private chat in which the code is sent by one press."""
        return f"https://t.me/{self.name}?start={code}"


class TelegramNewcomer(msgspec.Struct, frozen=True, kw_only=True):
    """Who has typed the code, and where."""

    user_id: str
    name: str
    chat_id: str
    is_private: bool
    passed_over: int
    """Other messages that had waited, and that Telegram will not tell again."""


class TelegramIntroduction:
    """Made by `introduced`. Nothing of it outlives that."""

    def __init__(self, bot: TelegramBot, api: TelegramApi, clock: Clock) -> None:
        self.bot = bot
        self._api, self._clock = api, clock

    async def remove_webhook(self) -> None:
        """So that messages come to us. Those that wait stay. Raises `UsageError`."""
        await _asked(self._api, "deleteWebhook")

    async def wait_for(self, code: str) -> TelegramNewcomer:
        """The first person who sends the code to the bot: in private, or in a group where it is told of it.

        Waits for ever. Raises `UsageError` if Telegram does not let us in, or tells somebody else.
        """
        offset = failures = passed_over = 0
        while True:
            params = {"offset": offset, "timeout": POLL_S, "allowed_updates": ["message"]}
            try:
                told = await self._api.call("getUpdates", params, timeout_s=POLL_S + ANSWER_S)
            except TelegramOffline:
                await sleep(self._clock, BACKOFF_S[min(failures, len(BACKOFF_S) - 1)])
                failures += 1
                continue
            except TelegramRefused as refused:
                if refused.code != 429:
                    _raise(refused)
                wait_s = CONFLICT_S if refused.retry_after_s is None else refused.retry_after_s
                await sleep(self._clock, min(wait_s, MAX_WAIT_S))
                continue
            failures = 0
            for update in updates_of(told):
                offset = update.update_id + 1
                if update.message is None:
                    continue
                newcomer = _newcomer(update.message, code, passed_over)
                if newcomer is not None:
                    # Confirmed: else the code would be the first words of a conversation.
                    await _asked(self._api, "getUpdates", {"offset": offset, "timeout": 0, "limit": 1})
                    return newcomer
                passed_over += 1

    async def prove(self, newcomer: TelegramNewcomer, text: str) -> str:
        """Send it to where the code was typed. Returns why that is not possible; empty if it was."""
        try:
            await self._api.call("sendMessage", {"chat_id": int(newcomer.chat_id), "text": text})
        except TelegramRefused as refused:
            return f"Telegram refused the message: {code_label(refused.description, 120)}."
        except TelegramOffline:
            return UNREACHABLE
        return ""


def _newcomer(message: TelegramMessage, code: str, passed_over: int) -> TelegramNewcomer | None:
    """Whoever has sent the code, if it is a person who can be named by an id."""
    user = message.sender
    if user is None or user.is_bot or message.sender_chat is not None or message.forward_origin is not None:
        return None
    if code not in message.words.split():
        return None
    return TelegramNewcomer(
        user_id=str(user.id),
        name=code_label(user.shown_name, 40) or str(user.id),
        chat_id=str(message.chat.id),
        is_private=message.is_private,
        passed_over=passed_over,
    )


@asynccontextmanager
async def introduced(
    token: str, *, api_url: str = API_URL, clock: Clock | None = None
) -> AsyncIterator[TelegramIntroduction]:
    """Raises `UsageError` for a token that is refused, and if Telegram cannot be reached."""
    async with TelegramApi(token, api_url) as api:
        yield TelegramIntroduction(await look_up(api), api, clock or LoopClock())


async def look_up(api: TelegramApi) -> TelegramBot:
    """What Telegram says of the token's bot. Raises `UsageError`."""
    bot = await _asked(api, "getMe")
    webhook = await _asked(api, "getWebhookInfo")
    if not isinstance(bot, dict) or not isinstance(bot.get("id"), int) or not isinstance(webhook, dict):
        raise UsageError(NO_SERVER)
    url = str(webhook.get("url") or "")
    return TelegramBot(
        bot_id=bot["id"],
        name=code_label(str(bot.get("username", "")), 40),
        reads_groups=bot.get("can_read_all_group_messages") is True,
        webhook=code_label(urlsplit(url).hostname or "an address of its own", 80) if url else "",
    )


async def _asked(api: TelegramApi, method: str, params: dict[str, Any] | None = None) -> Any:
    try:
        return await api.call(method, params)
    except TelegramOffline:
        raise UsageError(UNREACHABLE) from None
    except TelegramRefused as refused:
        _raise(refused)


def _raise(refused: TelegramRefused) -> NoReturn:
    match refused.code:
        case 401 | 404:
            raise UsageError(BAD_TOKEN) from None
        case 409:
            raise UsageError(TAKEN) from None
        case _:
            raise UsageError(f"{refused} Try again later.") from None
