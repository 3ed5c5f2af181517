"""`TelegramPolling`: asks Telegram for updates, hands them over in order, and then confirms them.

The offset, by which Telegram forgets updates, is kept in the store and moves only after the updates before
it were stored; what was handed over twice because of that is taken once. An album, whose messages may come
apart, is asked for again until it does not grow.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from laneway.base.errors import StoreError, UsageError
from laneway.core.conversations import ConversationStore
from laneway.core.ports import Clock
from laneway.doors.chat.outbox import BACKOFF_S
from laneway.doors.chat.platforms.bots.health import BotHealth
from laneway.doors.chat.platforms.telegram.api import TelegramApi, TelegramOffline, TelegramRefused
from laneway.doors.chat.platforms.telegram.updates import ALLOWED_UPDATES, TelegramUpdate, updates_of

log = logging.getLogger(__name__)

POLL_S = 50
"""How long Telegram holds a request for updates if there are none."""
ANSWER_S = 15.0
"""In which the answer must come after that."""
ALBUM_S = 0.7
"""After which an album that has not grown is complete."""
CONFLICT_S = 5.0
"""Between two tries while another program asks for the same bot's updates."""
MAX_WAIT_S = 60.0
"""Where Telegram asks to wait: not longer, whatever it says."""
BAD_TOKEN = (
    "Telegram refused the token of the bot. Ask @BotFather for another one (/token), "
    "and give it to `laneway setup telegram` or LANEWAY_TELEGRAM_TOKEN."
)
CONFLICT = (
    "another program asks for this bot's messages, so each of us gets only some; end the other one. "
    "We keep trying."
)
WEBHOOK = (
    "the bot's messages go to a webhook, so none reach us; `laneway setup telegram` removes it. "
    "We keep trying."
)
OFFLINE = "Telegram cannot be reached. We keep trying."

Handler = Callable[[Sequence[TelegramUpdate]], Awaitable[None]]
"""Returns when all of them are stored; raises `StoreError` if that cannot be."""


class TelegramPolling:
    def __init__(
        self,
        api: TelegramApi,
        store: ConversationStore,
        health: BotHealth,
        clock: Clock,
        handle: Handler,
        *,
        well: str,
    ) -> None:
        """`well`: the health line while all is well."""
        self._api, self._store, self._health, self._clock = api, store, health, clock
        self._handle, self._well = handle, well
        self._cursor = f"telegram:offset:{api.bot_id}"
        self._album: tuple[str, int] = ("", 0)
        """The album that was left to grow, and how many messages it had."""
        self.polls = 0
        """Answers so far; for tests."""

    async def run(self) -> None:
        """For ever. Raises `UsageError` once the token is not valid any more."""
        offset = int(await asyncio.to_thread(self._store.cursor, self._cursor) or 0)
        failures = 0
        while True:
            try:
                updates = await self._ask(offset)
                self._health.is_now(self._well, is_well=True)
                ready = self._without_growing_album(updates)
                await self._handle(ready)
                if ready:
                    offset = ready[-1].update_id + 1
                    await asyncio.to_thread(self._store.set_cursor, self._cursor, str(offset))
                failures = 0
                self.polls += 1
                if len(ready) < len(updates):
                    await sleep(self._clock, ALBUM_S)
            except TelegramOffline:
                self._health.is_now(OFFLINE, is_well=False)
                await self._back_off(failures)
                failures += 1
            except StoreError as problem:
                # Nothing is confirmed, so nothing is lost: it comes again once there is room.
                self._health.is_now(f"messages cannot be stored: {problem}", is_well=False)
                await self._back_off(failures)
                failures += 1
            except TelegramRefused as refused:
                await self._after(refused, failures)
                failures += 1

    async def _ask(self, offset: int) -> list[TelegramUpdate]:
        # At the start, and after trouble, an answer shows at once that all is well.
        is_urgent = bool(self._album[0]) or self._health.line is None or not self._health.line.is_well
        params = {
            "offset": offset,
            "timeout": 0 if is_urgent else POLL_S,
            "allowed_updates": ALLOWED_UPDATES,
        }
        return updates_of(await self._api.call("getUpdates", params, timeout_s=POLL_S + ANSWER_S))

    def _without_growing_album(self, updates: list[TelegramUpdate]) -> list[TelegramUpdate]:
        """Those before an album that may not be complete."""
        last = next((each.message for each in reversed(updates) if each.message is not None), None)
        group = None if last is None else last.media_group_id
        before, self._album = self._album, ("", 0)
        if group is None:
            return updates
        members = [
            index
            for index, each in enumerate(updates)
            if each.message is not None and each.message.media_group_id == group
        ]
        if before == (group, len(members)):
            return updates
        self._album = (group, len(members))
        return updates[: members[0]]

    async def _after(self, refused: TelegramRefused, failures: int) -> None:
        match refused.code:
            case 401 | 404:
                raise UsageError(BAD_TOKEN) from None
            case 409:
                is_webhook = "webhook" in refused.description
                self._health.is_now(WEBHOOK if is_webhook else CONFLICT, is_well=False)
                await sleep(self._clock, CONFLICT_S)
            case 429:
                wait_s = refused.retry_after_s
                await sleep(self._clock, CONFLICT_S if wait_s is None else min(wait_s, MAX_WAIT_S))
            case _:
                self._health.is_now(f"{refused} We keep trying.", is_well=False)
                await self._back_off(failures)

    async def _back_off(self, failures: int) -> None:
        await sleep(self._clock, BACKOFF_S[min(failures, len(BACKOFF_S) - 1)])


async def sleep(clock: Clock, seconds: float) -> None:
    """On the clock, which tests can turn faster."""
    over = asyncio.Event()
    cancel = clock.after(seconds, over.set)
    try:
        await over.wait()
    finally:
        cancel()
