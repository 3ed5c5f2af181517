"""The conversations that browsers show: joined once for all browsers, and told to all of them.

Every conversation has a place of its own. `/new`, `/resume` and `/join` move a place: browsers are told
where to, and the place gets its own conversation back.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import Any

from laneway.base.errors import LanewayError
from laneway.core.ports import Clock
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outputs import (
    ActivityShown,
    OutputDelta,
    Shown,
    StatusNow,
    TextDelta,
    TextDone,
    TurnEnded,
)
from laneway.doors.chat.platforms.web.live_texts import LiveTexts
from laneway.doors.chat.platforms.web.output_json import PLATFORM, item_json, status_json
from laneway.doors.chat.ports import Chat, ChatState
from laneway.doors.page_parts import PageFeed

MAX_BACKLOG_ITEMS = 500
"""Outputs that a conversation begins with; earlier ones are asked for."""

log = logging.getLogger(__name__)


class WebView:
    """The `View` of one place."""

    def __init__(self, conversations: ShownConversations, conversation_id: str) -> None:
        self._conversations = conversations
        self.conversation_id = conversation_id

    def show(self, shown: Shown) -> None:
        self._conversations.on_shown(shown)

    def on_moved(self, conversation_id: str) -> None:
        self._conversations.on_moved(self, conversation_id)


class WebConversation:
    """One conversation that is joined."""

    def __init__(self, place: Place, view: WebView, live: LiveTexts) -> None:
        self.place = place
        self.view = view
        self.live = live
        self.cwd = ""


class ShownConversations:
    """Joins conversations when a browser first asks for them, and publishes what they show."""

    def __init__(self, chat: Chat, feed: PageFeed, clock: Clock) -> None:
        self._chat = chat
        self._feed = feed
        self._clock = clock
        self._joined: dict[str, WebConversation] = {}
        self._joining = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def new(self) -> ChatState:
        """A conversation that was not there before."""
        # Its place is named after it from the start: a message that is sent again after a restart of the
        # server has to come from the same place.
        first = Place(platform=PLATFORM, chat=secrets.token_hex(8))
        view = WebView(self, "")
        state = await self._chat.join(first, view)
        self._chat.leave(first, view)
        _, state = await self.open(state.record.conversation_id)
        self._publish(state.record.conversation_id, "began", {})
        return state

    async def open(self, conversation_id: str) -> tuple[WebConversation, ChatState]:
        """Raises `ConversationHeld`, `ConversationUnknown`, `StoreError`."""
        async with self._joining:
            joined = self._joined.get(conversation_id)
            if joined is not None:
                state = await self._chat.state(conversation_id)
            else:
                place = Place(platform=PLATFORM, chat=conversation_id)
                view = WebView(self, conversation_id)
                state = await self._chat.join(place, view, conversation_id)
                joined = self._take(state, place, view)
            joined.live.restore(state.texts)
            return joined, state

    def place_of(self, conversation_id: str) -> Place:
        joined = self._joined.get(conversation_id)
        return joined.place if joined else Place(platform=PLATFORM, chat=conversation_id)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for joined in self._joined.values():
            joined.live.close()
            self._chat.leave(joined.place, joined.view)

    # ── what the conversations tell ────────────────────────────────────────

    def on_shown(self, shown: Shown) -> None:
        joined = self._joined.get(shown.conversation_id)
        if joined is None:
            return  # its place is just being moved: whoever shows it reads it anew
        match shown.output:
            case TextDelta() as delta:
                joined.live.add(delta)
            case OutputDelta() as delta:
                joined.live.add_output(delta)
            case StatusNow() as status:
                self._publish(shown.conversation_id, "status", status_json(status))
            case _:
                self._show_item(joined, shown)

    def on_moved(self, view: WebView, conversation_id: str) -> None:
        left = view.conversation_id
        if left == conversation_id:
            return
        moved = self._joined.pop(left, None)
        if moved is not None:
            moved.live.close()
        self._spawn(self._settle(left, conversation_id))

    async def _settle(self, left: str, conversation_id: str) -> None:
        """Each conversation in a place of its own again."""
        try:
            if left:
                await self.open(left)
            await self.open(conversation_id)
        except LanewayError as problem:
            log.warning("a conversation cannot be shown: %s", problem)
        self._publish(left, "moved", {"to": conversation_id})

    def _show_item(self, joined: WebConversation, shown: Shown) -> None:
        match shown.output:
            case TextDone(part=part):
                joined.live.finish(part)
            case ActivityShown(activity=activity) if activity.status != "running":
                joined.live.finish_output(activity.item_id)
            case TurnEnded(ticket=ticket):
                joined.live.end_turn(ticket)
            case _:
                pass
        joined.live.flush()
        self._publish(shown.conversation_id, "item", item_json(shown, joined.cwd))

    def _take(self, state: ChatState, place: Place, view: WebView) -> WebConversation:
        conversation_id = state.record.conversation_id
        view.conversation_id = conversation_id

        def tell(topic: str, data: dict[str, Any]) -> None:
            self._publish(conversation_id, topic, data)

        live = LiveTexts(self._clock, tell, lambda: self._spawn(self._restore(conversation_id)))
        joined = self._joined[conversation_id] = WebConversation(place, view, live)
        joined.cwd = state.record.cwd
        return joined

    async def _restore(self, conversation_id: str) -> None:
        try:
            await self.open(conversation_id)
        except LanewayError as problem:
            log.warning("a conversation cannot be read: %s", problem)

    def _publish(self, conversation_id: str, topic: str, data: dict[str, Any]) -> None:
        self._feed.publish(topic, {"conversation": conversation_id, **data})

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
