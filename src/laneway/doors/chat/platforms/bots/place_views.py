"""The places where one bot shows conversations, their outbox, and what people do there.

Every message and tap is taken with the sender that the service has told; who may speak was checked before
(`BotAccess.may_speak`). Taps are checked once more: a button must be one that we have posted, and its
presser must be one who may answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from laneway.base.errors import ConversationHeld, ConversationUnknown, StoreError
from laneway.core.conversations import ConversationStore
from laneway.core.ports import Clock
from laneway.doors.chat.messages import Incoming, Place, Sender, Tap, TapResult
from laneway.doors.chat.outbox import PostDropped, PostJob, PostOutcome
from laneway.doors.chat.outbox_runner import MessageOutbox
from laneway.doors.chat.platforms.bots import words
from laneway.doors.chat.platforms.bots.access import BotAccess
from laneway.doors.chat.platforms.bots.inbound import BotMessage, BotTap, incoming
from laneway.doors.chat.platforms.bots.pictures import DiffPictures
from laneway.doors.chat.platforms.bots.place_view import BotPlaceView, Sending, seen_cursor, seen_number
from laneway.doors.chat.platforms.bots.posts import STOP_DATA, BotPost, BotWriter
from laneway.doors.chat.ports import Chat

log = logging.getLogger(__name__)

MAX_RESTORED = 200
"""Conversations that are looked through at the start for what is still to be done."""
STALE = "This button is of an earlier time and does nothing any more."
NOT_OWNER = "Only owners of this bot can answer this."
NOT_STARTER = "Only owners, or who asked for this, can answer it."


class BotPlaceViews:
    """Made by `open_place_views`."""

    def __init__(
        self,
        chat: Chat,
        store: ConversationStore,
        writer: BotWriter,
        access: BotAccess,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        *,
        any_call_s: float,
        pictures: DiffPictures | None,
    ) -> None:
        self._chat = chat
        self._pictures = pictures
        self._store = store
        self._writer = writer
        self._access = access
        self._tasks = tasks
        self._views: dict[Place, BotPlaceView] = {}
        self._joining = asyncio.Lock()
        self._running: list[asyncio.Task[None]] = []
        self.outbox = MessageOutbox(
            clock, self._deliver, on_sent=self._on_sent, on_dropped=self._on_dropped, any_call_s=any_call_s
        )

    # ── places ─────────────────────────────────────────────────────────────

    async def restore(self) -> None:
        """Show the places again in which something is left to do: outputs, unsent posts, input, questions."""
        for place in await asyncio.to_thread(self._unfinished):
            try:
                await self.view_of(place)
            except (ConversationHeld, ConversationUnknown) as problem:
                log.warning("%s: %s", self._writer.name, problem)

    def _unfinished(self) -> list[Place]:
        found = []
        for record in self._store.latest(MAX_RESTORED):
            conversation_id = record.conversation_id
            has_work = bool(
                self._store.inputs(conversation_id, ("waiting", "begun", "accepted"))
                or self._store.open_questions(conversation_id)
            )
            last = self._store.last_output(conversation_id)
            for key in self._store.places(conversation_id):
                place = place_of(key)
                if place.platform != self._writer.name or not self._writer.may_show(place):
                    continue
                shown = seen_number(self._store.cursor(seen_cursor(place)), conversation_id)
                is_behind = shown is not None and shown < last
                if has_work or is_behind or self._store.deliveries(key):
                    found.append(place)
        return found

    async def view_of(self, place: Place) -> BotPlaceView:
        """The place, joined. Raises what `Chat.join` raises."""
        if place in self._views:
            return self._views[place]
        async with self._joining:
            if place not in self._views:
                view = BotPlaceView(
                    place, self._chat, self._store, self._writer, self.outbox, self._tasks, self._pictures
                )
                state = await self._chat.join(place, view)
                await view.begin(state)
                self._views[place] = view
                self._running.append(self._tasks.create_task(view.run()))
            return self._views[place]

    async def wait_idle(self) -> None:
        """Wait until everything that was shown so far has been sent; for tests and for the end."""
        while self.outbox.waiting or not all(view.is_idle for view in self._views.values()):
            for view in list(self._views.values()):
                await view.wait_idle()
            await self.outbox.wait_idle()

    def close(self) -> None:
        for place, view in self._views.items():
            self._chat.leave(place, view)
            view.close()
        for task in self._running:
            task.cancel()

    # ── people ─────────────────────────────────────────────────────────────

    async def take(self, message: BotMessage) -> int | None:
        """Store a message of somebody who may speak. When this returns, it cannot get lost any more."""
        view = await self.view_of(message.place)
        replied = await view.find(message.reply_ref) if message.reply_ref else None
        sender = self._sender(message.user_id, message.name)
        return await self._chat.take(incoming(message, sender, replied))

    async def tap(self, tap: BotTap) -> TapResult:
        """Act on a button that somebody who may speak has pressed. Stale ones are removed."""
        view = await self.view_of(tap.place)
        post = await view.find(tap.ref)
        sender = self._sender(tap.user_id, tap.name)
        offered = () if post is None else (*post.buttons, *post.dialogs)
        if post is None or tap.data not in [button.data for button in offered]:
            if not offered:
                view.remove_buttons(tap.ref)
            return TapResult(text=STALE, is_done=False, is_stale=True)
        if tap.data == STOP_DATA:
            await self.stop(tap.place, tap.tap_id, sender, post.conversation_id)
            return TapResult(text="Stopping …")
        if post.question and not self._access.may_answer(
            tap.user_id, for_owners=post.for_owners, asked_by=post.asked_by
        ):
            return TapResult(text=NOT_OWNER if post.for_owners else NOT_STARTER, is_done=False)
        result = await self._chat.tap(
            Tap(
                place=tap.place,
                sender=sender,
                data=tap.data,
                words=tap.words,
                values=tap.values,
                conversation_id=post.conversation_id,
            )
        )
        if result.is_stale:
            view.remove_buttons(tap.ref)
        return result

    async def stop(
        self, place: Place, tap_id: str, sender: Sender, conversation_id: str | None = None
    ) -> None:
        """What our Stop buttons do: any user who may speak stops the turn."""
        await self._chat.take(
            Incoming(
                place=place,
                message_id=f"stop:{tap_id}",
                sender=sender,
                text="/stop",
                conversation_id=conversation_id,
            )
        )

    def say(self, place: Place, text: str, *, reply_to: str) -> None:
        """Answer a message that was not taken: there may be no conversation to say it in."""
        self._tell(place, f"answer:{reply_to}", text, target=reply_to)

    def _tell(self, place: Place, key: str, text: str, *, target: str = "") -> None:
        """Not stored: a second one with this key takes the place of one that waits."""
        post = BotPost(key=key, kind="told", conversation_id="", text=text, target=target, is_stored=False)
        pace, chat = self._writer.pace(place), self._writer.rate_key(place)
        self.outbox.put(chat, pace, f"{place.key}|{post.key}", Sending(place=place, post=post))

    async def post_of(self, place: Place, ref: str) -> BotPost | None:
        """What we have posted there under this id."""
        return await (await self.view_of(place)).find(ref)

    def _sender(self, user_id: str, name: str) -> Sender:
        return Sender(
            platform=self._writer.name,
            user_id=user_id,
            name=name,
            is_owner=self._access.is_owner(user_id),
        )

    # ── the outbox ─────────────────────────────────────────────────────────

    async def _deliver(self, chat: str, job: PostJob) -> PostOutcome:
        sending: Sending = job.post
        return await self._writer.deliver(sending.place, sending.post, job.ref)

    async def _on_sent(self, chat: str, job: PostJob, ref: str) -> None:
        sending: Sending = job.post
        view = self._views.get(sending.place)
        if view is not None:
            view.on_sent(sending.post, ref)
        if job.delivery_id:
            await asyncio.to_thread(self._store.mark_delivered, job.delivery_id, ref, sending.content)

    def _on_dropped(self, dropped: PostDropped) -> None:
        place = dropped.job.post.place
        log.warning("%s: a message to %s was not sent: %s", self._writer.name, place.key, dropped.why)
        if dropped.job.delivery_id:
            self._tasks.create_task(self._forget(dropped))

    async def _forget(self, dropped: PostDropped) -> None:
        """What will never arrive is not kept; whoever waits for it is told, if the place takes anything."""
        try:
            await asyncio.to_thread(self._store.drop_delivery, dropped.job.delivery_id)
        except StoreError as problem:
            log.warning("a message that cannot be sent is still stored: %s", problem)
        sending: Sending = dropped.job.post
        if sending.post.kind != "receipt" and not dropped.is_chat_gone:
            text = words.refused(self._writer.name, dropped.why)
            self._tell(sending.place, f"refused:{sending.post.key}", text)


@asynccontextmanager
async def open_place_views(
    chat: Chat,
    store: ConversationStore,
    writer: BotWriter,
    access: BotAccess,
    clock: Clock,
    *,
    any_call_s: float = 0.0,
    pictures: DiffPictures | None = None,
) -> AsyncIterator[BotPlaceViews]:
    """`pictures`: what draws the changes of turns; without it they are shown as text."""
    async with asyncio.TaskGroup() as tasks:
        views = BotPlaceViews(
            chat, store, writer, access, clock, tasks, any_call_s=any_call_s, pictures=pictures
        )
        async with views.outbox:
            try:
                await views.restore()
                yield views
            finally:
                views.close()


def place_of(key: str) -> Place:
    """The opposite of `Place.key`."""
    platform, _, rest = key.partition(":")
    chat, _, topic = rest.partition(":")
    return Place(platform=platform, chat=chat, topic=topic)
