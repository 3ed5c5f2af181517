"""`DiscordIntake`: messages of people, in order in each channel, and those missed while we were down.

How far a channel was read is kept in the store, after its message was. When a connection begins anew, the
channels of our conversations are read from there on: at most fifty messages of the last day, in order, and
before anything that comes meanwhile. What cannot be taken now (no network, no disk) is tried again, and the
channel waits for it, so that nothing is overtaken.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Awaitable, Callable, Iterable

import aiohttp
import discord
from msgspec.structs import replace

from laneway.base.errors import ConversationHeld, ConversationUnknown, StoreError
from laneway.base.plain import code_label
from laneway.core.conversations import ConversationStore
from laneway.core.ports import Clock
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outbox import BACKOFF_S
from laneway.doors.chat.platforms.bots.access import BotAccess, Strangers
from laneway.doors.chat.platforms.bots.inbound import BotMessage
from laneway.doors.chat.platforms.bots.place_views import BotPlaceViews, place_of
from laneway.doors.chat.platforms.bots.words import EDITED
from laneway.doors.chat.platforms.discord.api import NO_MENTIONS, DiscordAnswer, DiscordApi, pause
from laneway.doors.chat.platforms.discord.downloads import Downloads
from laneway.doors.chat.platforms.discord.incoming_message import SeenMessage, seen, thread_name
from laneway.doors.chat.platforms.discord.places import ChannelFacts, facts_from_json
from laneway.doors.chat.platforms.discord.private_chats import PrivateChats
from laneway.doors.chat.platforms.discord.writer import NAME, open_thread

log = logging.getLogger(__name__)

MAX_MISSED = 50
"""Messages of one channel that are read after a pause."""
MISSED_S = 24 * 3600.0
"""Older ones are left alone."""
MAX_CONVERSATIONS = 200
"""Whose threads are read after a pause: those that were used last."""
MAX_WAITING = 200
"""Messages of one channel that wait to be taken. When there are more, the channel is read again later."""
FRESH_S = 300.0
"""Age of an edit; the event comes again when somebody pins a message that was edited long ago."""
EPOCH_MS = 1_420_070_400_000
NO_THREAD = (
    "I cannot open a thread here, and every conversation has one: "
    "give me the permissions “Create Public Threads” and “Send Messages in Threads”."
)

UNREACHABLE = (discord.HTTPException, aiohttp.ClientError, OSError, TimeoutError)
"""What reading a channel may raise."""

History = Callable[[str, int], Awaitable[list[discord.Message]]]
"""The newest messages of a channel, at most so many, the oldest first."""


class DiscordIntake:
    def __init__(
        self,
        views: BotPlaceViews,
        store: ConversationStore,
        access: BotAccess,
        strangers: Strangers,
        api: DiscordApi,
        downloads: Downloads,
        *,
        private: PrivateChats,
        bot_id: int,
        history: History,
        clock: Clock,
        wall: Callable[[], float],
        may_show: Callable[[Place], bool],
        tasks: asyncio.TaskGroup,
    ) -> None:
        self._views, self._store, self._access, self._strangers = views, store, access, strangers
        self._api, self._downloads, self._bot_id = api, downloads, bot_id
        self._private = private
        self._history, self._clock, self._wall = history, clock, wall
        self._may_show, self._tasks = may_show, tasks
        self._waiting: dict[str, asyncio.Queue[SeenMessage | None]] = {}
        """By channel. None: read its history."""
        self._known: dict[str, ChannelFacts] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._listing = 0
        """How many times the channels to read are being listed just now …"""
        self._held: list[SeenMessage] = []
        """… and what came meanwhile."""
        self._busy = 0
        self._is_closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    # ── what comes ─────────────────────────────────────────────────────────

    def on_message(self, message: discord.Message) -> None:
        known = seen(message, self._bot_id)
        if known is not None:
            self._come(known)

    def on_edit(self, message: discord.Message) -> None:
        known = seen(message, self._bot_id)
        is_fresh = message.edited_at is not None and self._wall() - message.edited_at.timestamp() < FRESH_S
        if known is not None and is_fresh:
            self._come(replace(known, is_edit=True))

    def _come(self, known: SeenMessage) -> None:
        if self._listing and len(self._held) < MAX_WAITING:
            self._held.append(known)
        else:
            self._put(known.channel_id, known)

    async def catch_up(self) -> None:
        """Read what the channels of ours have got since they were read last."""
        self._listing += 1
        try:
            channels = await asyncio.to_thread(self._channels)
        except StoreError as problem:
            log.warning("which channels to read again is not known: %s", problem)
            channels = sorted(self._access.chats)
        finally:
            self._listing -= 1
        for channel_id in channels:
            self._put(channel_id, None)
        held, self._held = self._held, []
        for message in held:
            self._put(message.channel_id, message)

    def _channels(self) -> list[str]:
        found = sorted(self._access.chats)
        for record in self._store.latest(MAX_CONVERSATIONS):
            for key in self._store.places(record.conversation_id):
                place = place_of(key)
                if place.platform == NAME and self._may_show(place):
                    found.append(place.topic or place.chat)
        return list(dict.fromkeys(found))

    def close(self) -> None:
        self._is_closed = True
        for task in self._workers:
            task.cancel()

    def _put(self, channel_id: str, message: SeenMessage | None) -> None:
        if self._is_closed:
            return  # it is read after the next start
        queue = self._waiting.get(channel_id)
        if queue is None:
            queue = self._waiting[channel_id] = asyncio.Queue(MAX_WAITING)
            self._workers.append(self._tasks.create_task(self._work(channel_id, queue)))
        if message is not None and queue.qsize() >= MAX_WAITING - 1:
            message = None  # it is read again with the history
        with contextlib.suppress(asyncio.QueueFull):
            queue.put_nowait(message)
            self._busy += 1
            self._idle.clear()

    async def wait_idle(self) -> None:
        """Wait until everything that came was taken."""
        await self._idle.wait()

    async def _work(self, channel_id: str, queue: asyncio.Queue[SeenMessage | None]) -> None:
        while True:
            message = await queue.get()
            try:
                await self._insist_on_taking(channel_id, message)
            except Exception:  # a door's request: one odd message must not end the platform
                log.exception("a message in channel %s could not be taken", channel_id)
            finally:
                self._busy -= 1
                if not self._busy:
                    self._idle.set()

    async def _insist_on_taking(self, channel_id: str, message: SeenMessage | None) -> None:
        """Again and again while it is not the message's own fault that it cannot be taken."""
        for count, wait_s in enumerate(_waits()):
            try:
                if message is None:
                    await self._read_missed(channel_id)
                else:
                    await self._take(message)
            except (ConversationHeld, ConversationUnknown) as problem:
                await self._say(channel_id, f"⚠️ {problem}")
            except StoreError as problem:
                log.warning("a message in channel %s was not taken: %s", channel_id, problem)
                if not count:
                    await self._say(channel_id, f"⚠️ I cannot take messages now, and try again: {problem}")
                await pause(self._clock, wait_s)
                continue
            except (discord.Forbidden, discord.NotFound) as problem:
                log.warning("channel %s could not be read: HTTP %s", channel_id, problem.status)
            except UNREACHABLE as problem:
                log.warning("channel %s could not be read: %s", channel_id, type(problem).__name__)
                await pause(self._clock, wait_s)
                continue
            return

    async def _insist(self, call: Callable[[], Awaitable[DiscordAnswer]]) -> DiscordAnswer:
        """The answer of Discord: not that it is too busy, and not that it cannot be reached."""
        for wait_s in _waits():
            answer = await call()
            if answer.retry_after_s is None and not answer.is_down:
                return answer
            log.warning("Discord has not taken a call: %s", answer.why)
            await pause(self._clock, answer.retry_after_s or wait_s)
        raise AssertionError("there is always another wait")

    # ── one message ────────────────────────────────────────────────────────

    async def _take(self, message: SeenMessage) -> None:
        facts = await self._facts(message)
        if facts is None:
            return
        is_own_thread = facts.kind == "thread" and facts.owner_id == str(self._bot_id)
        addresses_us = message.is_for_us or facts.kind == "private" or is_own_thread
        if not addresses_us:
            return
        if not facts.may_speak(self._access, message.user_id):
            what = "an edit" if message.is_edit else "a message"
            self._strangers.turned_away(message.user_id, message.name, facts.chat_id, what=what)
            return
        if not message.is_edit and await self._was_read(message):
            return
        if facts.kind == "private":
            await self._private.note(facts.channel_id, message.user_id)
        place = facts.place or await self._new_thread(message)
        if place is None:
            return
        taken = await self._views.take(await self._as_bot_message(message, place))
        if not message.is_edit:
            await self._note(message.channel_id, message.message_id)
        elif taken is None:
            self._views.say(place, EDITED, reply_to=message.message_id)

    async def _facts(self, message: SeenMessage) -> ChannelFacts | None:
        known = message.channel or self._known.get(message.channel_id)
        if known is None:
            answer = await self._insist(lambda: self._api.call("GET", f"/channels/{message.channel_id}"))
            if not answer.is_done or not isinstance(answer.body, dict):
                log.warning("channel %s is not known: %s", message.channel_id, answer.why)
                return None
            known = self._known[message.channel_id] = facts_from_json(answer.body)
        return known

    async def _new_thread(self, message: SeenMessage) -> Place | None:
        name = thread_name(message.text)
        answer = await self._insist(
            lambda: open_thread(self._api, message.channel_id, message.message_id, name)
        )
        if not answer.is_done:
            log.warning("no thread could be opened in channel %s: %s", message.channel_id, answer.why)
            await self._say(message.channel_id, NO_THREAD, reply_to=message.message_id)
            return None
        return Place(platform=NAME, chat=message.channel_id, topic=str(answer.body["id"]))

    async def _as_bot_message(self, message: SeenMessage, place: Place) -> BotMessage:
        fetched = await self._downloads.fetch(message.message_id, message.files)
        missing = [f"[Attached file {code_label(name, 80)} could not be fetched]" for name in fetched.missing]
        return BotMessage(
            place=place,
            message_id=message.message_id,
            user_id=message.user_id,
            name=message.name,
            text="\n\n".join([part for part in (message.text, *missing) if part]),
            images=fetched.images,
            files=fetched.files,
            reply_ref=message.reply_ref,
            quote=message.quote,
            quote_name=message.quote_name,
            origin=message.origin,
        )

    async def _say(self, channel_id: str, text: str, *, reply_to: str = "") -> None:
        body: dict[str, object] = {"content": text, "allowed_mentions": NO_MENTIONS}
        if reply_to:
            body["message_reference"] = {"message_id": reply_to, "fail_if_not_exists": False}
        answer = await self._api.call("POST", f"/channels/{channel_id}/messages", body)
        if not answer.is_done:
            log.warning("channel %s could not be told: %s", channel_id, answer.why)

    # ── what was read ──────────────────────────────────────────────────────

    async def prime(self, channel_ids: Iterable[str]) -> None:
        """Note where listed channels stand that were never read: what was said before was not said to us.

        To be called before anything comes.
        """
        for channel_id in channel_ids:
            if await asyncio.to_thread(self._store.cursor, _cursor_name(channel_id)) is not None:
                continue
            try:
                messages = await self._history(channel_id, 1)
            except UNREACHABLE as problem:
                log.warning("channel %s, which is listed, cannot be read: %s", channel_id, problem)
                continue
            await self._note(channel_id, str(messages[-1].id) if messages else "0")

    async def _read_missed(self, channel_id: str) -> None:
        cursor = await asyncio.to_thread(self._store.cursor, _cursor_name(channel_id))
        messages = await self._history(channel_id, MAX_MISSED)
        if cursor is None and channel_id in self._access.chats:  # it could not be read before, as in `prime`
            await self._note(channel_id, str(messages[-1].id) if messages else "0")
            return
        after = max(int(cursor or 0), _snowflake(self._wall() - MISSED_S))
        missed = [message for message in messages if message.id > after]
        if len(messages) >= MAX_MISSED and len(missed) == len(messages):
            log.warning("channel %s: more than %d messages came meanwhile", channel_id, MAX_MISSED)
            await self._say(
                channel_id, f"While I was away, more came than I read: only the last {MAX_MISSED} messages."
            )
        for message in missed:
            known = seen(message, self._bot_id)
            if known is not None:
                await self._take(known)

    async def _was_read(self, message: SeenMessage) -> bool:
        cursor = await asyncio.to_thread(self._store.cursor, _cursor_name(message.channel_id))
        return cursor is not None and int(message.message_id) <= int(cursor)

    async def _note(self, channel_id: str, message_id: str) -> None:
        await asyncio.to_thread(self._store.set_cursor, _cursor_name(channel_id), message_id)


def _waits() -> Iterable[float]:
    """Seconds before each further try, without end."""
    return itertools.chain(BACKOFF_S, itertools.repeat(BACKOFF_S[-1]))


def _cursor_name(channel_id: str) -> str:
    return f"discord:read:{channel_id}"


def _snowflake(at: float) -> int:
    """The smallest id of that time."""
    return max(0, int(at * 1000) - EPOCH_MS) << 22
