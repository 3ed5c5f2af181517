"""Shows one conversation at one place of a bot: outputs become posts, which are stored and then sent.

A view of the conversation: what comes while it works is presented together, so that a text that grows fast
costs one post. If it falls far behind, the rest is read again from the store. How far a place has come is
kept as a cursor: after a restart the outputs since then are presented, and stored posts that were not sent
are sent.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

import msgspec

from laneway.base.errors import StoreError
from laneway.core.conversations import ConversationStore, DeliveryRecord
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outbox_runner import MessageOutbox
from laneway.doors.chat.outputs import VOLATILE, Shown
from laneway.doors.chat.platforms.bots.pictures import DiffPictures, as_text, gallery_of, whole_diff
from laneway.doors.chat.platforms.bots.pieces import pieces
from laneway.doors.chat.platforms.bots.posts import BotPost, BotWriter, decode_post, encode_post
from laneway.doors.chat.platforms.bots.presenter import BotPresenter
from laneway.doors.chat.ports import Chat, ChatState

log = logging.getLogger(__name__)

MAX_SHOWN = 2000
"""Outputs that a place may fall behind by; beyond it they are read again from the store."""
MAX_KNOWN = 2000
"""Posts of an earlier process that are remembered by their keys."""
MAX_POSTS = 300
"""Posts of a place that are kept in memory; older ones are looked up in the store."""
PAGE = 500


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """What the outbox carries."""

    place: Place
    post: BotPost
    content: bytes = b""
    """As it is stored; empty if it is not."""


class BotPlaceView:
    """One place, and the conversation that it shows now."""

    def __init__(
        self,
        place: Place,
        chat: Chat,
        store: ConversationStore,
        writer: BotWriter,
        outbox: MessageOutbox,
        tasks: asyncio.TaskGroup,
        pictures: DiffPictures | None = None,
    ) -> None:
        """`pictures`: what shows diffs; without it they are text."""
        self.place = place
        self._chat = chat
        self._store = store
        self._writer = writer
        self._outbox = outbox
        self._tasks = tasks
        self._pictures = pictures
        self._drawing: set[asyncio.Task[None]] = set()
        self._shown: deque[Shown] = deque()
        self._has_news = asyncio.Event()
        self._has_missed = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._conversation_id = ""
        self._number = 0
        """Of the last output that was presented."""
        self._presenter = BotPresenter(place, "", "")
        self._by_ref: dict[str, BotPost] = {}
        self._refs: dict[str, str] = {}
        """The service's ids of messages that an earlier process has sent, by key."""
        self._done: dict[str, bytes] = {}
        """Contents that an earlier process has sent, by key: they are not sent again."""

    # ── the view ───────────────────────────────────────────────────────────

    def show(self, shown: Shown) -> None:
        if len(self._shown) >= MAX_SHOWN:
            self._has_missed = self._has_missed or not isinstance(shown.output, VOLATILE)
        else:
            self._shown.append(shown)
        self._idle.clear()
        self._has_news.set()

    def on_moved(self, conversation_id: str) -> None:
        """Nothing to do: each output names its conversation."""

    # ── beginning ──────────────────────────────────────────────────────────

    async def begin(self, state: ChatState) -> None:
        """Go on where the last process stopped. Called once, after joining, before `run`."""
        records = await asyncio.to_thread(self._store.deliveries, self.place.key, unsent_only=False)
        cursor = await asyncio.to_thread(self._store.cursor, seen_cursor(self.place))
        conversation_id = state.record.conversation_id
        self._move(conversation_id, state.record.cwd)
        self._number = state.last_number
        self._know(records[-MAX_KNOWN:])
        for record in records:
            post = decode_post(record.content)
            if record.is_sent or post is None:
                continue
            if post.kind == "gallery" and self._pictures is not None:
                self._begin_drawing(post, record.delivery_id, record.content)
            else:
                self._put(post, record.delivery_id, record.content, record.ref)
        seen = seen_number(cursor, conversation_id)
        if seen is not None:
            self._number = seen
            await self._catch_up(state.last_number, is_restart=True)
        known = {record.key for record in records}
        asked = [
            Shown(conversation_id=conversation_id, number=0, at=0.0, output=question)
            for question in state.questions
        ]
        posts = [post for shown in asked for post in self._presenter.present(shown)]
        await self._send([post for post in posts if post.key not in known])
        await self._note_number()

    def _know(self, records: list[DeliveryRecord]) -> None:
        for record in records:
            post = decode_post(record.content)
            if post is None:
                continue
            if record.ref:
                self._by_ref[record.ref] = post
                self._refs[record.key] = record.ref
            if record.is_sent:
                self._done[record.key] = record.content
            if post.question and post.buttons and post.conversation_id == self._conversation_id:
                self._presenter.know_question(post)

    # ── presenting ─────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Present what comes, for ever."""
        while True:
            await self._has_news.wait()
            await self._outbox.wait_room(self._writer.rate_key(self.place))
            self._has_news.clear()
            batch = list(self._shown)
            self._shown.clear()
            await self._present(batch)
            if self._has_missed:
                self._has_missed = False
                await self._catch_up(None, is_restart=False)
            if not (self._shown or self._has_missed):
                self._idle.set()

    @property
    def is_idle(self) -> bool:
        """Whether everything that came was handed to the outbox."""
        return self._idle.is_set() and not self._drawing

    async def wait_idle(self) -> None:
        await self._idle.wait()
        await asyncio.gather(*self._drawing)

    def close(self) -> None:
        for task in self._drawing:
            task.cancel()  # what is not drawn yet is stored, and drawn by the next process

    async def _present(self, batch: list[Shown], *, is_restart: bool = False) -> None:
        newest: dict[str, BotPost] = {}
        for shown in batch:
            if shown.conversation_id != self._conversation_id:
                state = await self._chat.state(shown.conversation_id)
                self._move(shown.conversation_id, state.record.cwd)
                self._number = max(0, shown.number - 1)
            if shown.number and shown.number <= self._number:
                continue  # it was read from the store already
            self._number = shown.number or self._number
            for post in self._presenter.present(shown):
                newest[post.key] = post
        # What a turn was doing before a restart is not news any more.
        posts = [post for post in newest.values() if post.is_stored or not is_restart]
        await self._send(posts)
        if any(post.is_stored for post in posts):
            await self._note_number()

    async def _catch_up(self, last: int | None, *, is_restart: bool) -> None:
        """Present what is stored and was not presented yet, up to this number."""
        while last is None or self._number < last:
            outputs = await self._chat.outputs(self._conversation_id, self._number, PAGE)
            if not outputs:
                return
            await self._present(outputs, is_restart=is_restart)

    def _move(self, conversation_id: str, cwd: str) -> None:
        self._conversation_id = conversation_id
        self._presenter = BotPresenter(self.place, conversation_id, cwd)

    # ── sending ────────────────────────────────────────────────────────────

    async def _send(self, posts: list[BotPost]) -> None:
        drawn = [post for post in posts if self._pictures is not None and post.kind == "diff" and post.diff]
        await self._send_texts([post for post in posts if post not in drawn])
        for post in drawn:
            await self._send_gallery(gallery_of(post))

    async def _send_texts(self, posts: list[BotPost]) -> None:
        cut = [piece for post in posts for piece in pieces(post, self._writer.limits)]
        contents = [encode_post(post) if post.is_stored else b"" for post in cut]
        ids = await self._stored(cut, contents)
        for post, delivery_id, content in zip(cut, ids, contents, strict=True):
            if not (delivery_id and self._done.get(post.key) == content):
                self._put(post, delivery_id, content, self._refs.get(post.key, ""))

    async def _send_gallery(self, post: BotPost) -> None:
        content = encode_post(post)
        (delivery_id,) = await self._stored([post], [content])
        if not (delivery_id and self._done.get(post.key) == content):
            self._begin_drawing(post, delivery_id, content)

    def _begin_drawing(self, post: BotPost, delivery_id: int, content: bytes) -> None:
        """Drawn beside everything else, and shown when that is done."""
        task = self._tasks.create_task(self._draw(post, delivery_id, content))
        self._drawing.add(task)
        task.add_done_callback(self._drawing.discard)

    async def _draw(self, post: BotPost, delivery_id: int, content: bytes) -> None:
        assert self._pictures is not None
        drawn = await self._pictures.draw(post.diff)
        if not drawn.pictures:
            await self._send_texts([as_text(post)])  # takes the place of what is stored
            return
        file = whole_diff(post)
        if not drawn.is_whole:
            await self._stored([file], [encode_post(file)])  # before the pictures can be noted as sent
        self._put(post, delivery_id, content, self._refs.get(post.key, ""))
        if not drawn.is_whole:
            await self._send_texts([file])

    async def _stored(self, posts: list[BotPost], contents: list[bytes]) -> list[int]:
        """Their ids; 0 for what is not to be stored, and for all where that fails."""
        try:
            return await asyncio.to_thread(self._store_all, posts, contents)
        except StoreError as problem:
            # Without a disk the people are told nevertheless.
            log.warning("messages of %s could not be stored: %s", self.place.platform, problem)
            return [0] * len(posts)

    def _store_all(self, posts: list[BotPost], contents: list[bytes]) -> list[int]:
        return [
            self._store.put_delivery(self.place.key, post.key, content) if content else 0
            for post, content in zip(posts, contents, strict=True)
        ]

    def _put(self, post: BotPost, delivery_id: int, content: bytes, ref: str) -> None:
        self._done.pop(post.key, None)
        self._outbox.put(
            self._writer.rate_key(self.place),
            self._writer.pace(self.place),
            f"{self.place.key}|{post.key}",
            Sending(place=self.place, post=post, content=content),
            is_question=post.kind == "question",
            delivery_id=delivery_id,
            ref=ref,
            is_partial=post.is_partial,
        )

    async def _note_number(self) -> None:
        value = f"{self._conversation_id}#{self._number}"
        try:
            await asyncio.to_thread(self._store.set_cursor, seen_cursor(self.place), value)
        except StoreError as problem:
            log.warning("what %s has shown could not be noted: %s", self.place.platform, problem)

    # ── what was sent ──────────────────────────────────────────────────────

    def on_sent(self, post: BotPost, ref: str) -> None:
        self._by_ref.pop(ref, None)
        self._by_ref[ref] = post
        while len(self._by_ref) > MAX_POSTS:
            del self._by_ref[next(iter(self._by_ref))]

    async def find(self, ref: str) -> BotPost | None:
        """The post that the service has under this id, if it is ours."""
        if ref in self._by_ref:
            return self._by_ref[ref]
        record = await asyncio.to_thread(self._store.delivery_of, self.place.key, ref)
        return decode_post(record.content) if record is not None else None

    def remove_buttons(self, ref: str) -> None:
        """Buttons that can never work again."""
        post = BotPost(
            key=f"unbutton:{ref}",
            kind="unbutton",
            conversation_id=self._conversation_id,
            target=ref,
            is_stored=False,
        )
        self._put(post, 0, b"", "")


def seen_cursor(place: Place) -> str:
    """The name of the cursor that says how much of its conversation a place has shown."""
    return f"shown:{place.key}"


def seen_number(cursor: str | None, conversation_id: str) -> int | None:
    """The number of the last output that was shown; none if it was another conversation's."""
    seen_id, _, seen = (cursor or "").rpartition("#")
    return int(seen) if seen_id == conversation_id and seen.isdigit() else None
