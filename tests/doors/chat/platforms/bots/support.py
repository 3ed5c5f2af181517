"""A bot's service for tests of the shared part: takes posts, and refuses as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from laneway.base.clock import LoopClock
from laneway.core.conversations import ConversationStore
from laneway.core.ports import Clock
from laneway.doors.chat.messages import Place
from laneway.doors.chat.outbox import ChatPace, PostHeld, PostOutcome, PostSent
from laneway.doors.chat.platforms.bots.access import BotAccess, bot_access
from laneway.doors.chat.platforms.bots.pictures import DiffPictures
from laneway.doors.chat.platforms.bots.place_views import BotPlaceViews, open_place_views
from laneway.doors.chat.platforms.bots.posts import BotPost, PostLimits
from laneway.doors.chat.ports import Chat
from laneway.doors.chat.splitting import utf16_units
from laneway.rendering.diff_images.drawn import DrawnDiff

DEADLINE_S = 20.0
PLACE = Place(platform="telegram", chat="100")
ANA, BEN = "11", "22"
ACCESS = bot_access("telegram", [ANA, BEN], [ANA], [])


class BotService:
    """A `BotWriter` that remembers what people see."""

    def __init__(self, units: int = 400, edit_s: float = 0.0) -> None:
        self.limits = PostLimits(units=units, measure=utf16_units)
        self.messages: dict[str, BotPost] = {}
        """By the service's id, as they look now."""
        self.calls: list[tuple[str, str]] = []
        """The key of each, and the id of an edit."""
        self.outcomes: list[PostOutcome] = []
        """What the next calls lead to; then everything is taken."""
        self._edit_s = edit_s
        self.holds = False
        """Whether it wants no call for an hour."""

    @property
    def name(self) -> str:
        return "telegram"

    def rate_key(self, place: Place) -> str:
        return place.chat

    def pace(self, place: Place) -> ChatPace:
        return ChatPace(edit_s=self._edit_s, call_s=0.0, burst=1)

    def may_show(self, place: Place) -> bool:
        return True

    async def deliver(self, place: Place, post: BotPost, ref: str) -> PostOutcome:
        self.calls.append((post.key.partition("/")[2], ref))
        if self.outcomes:
            return self.outcomes.pop(0)
        if self.holds:
            return PostHeld(3600.0)
        if post.kind in ("receipt", "unbutton"):
            ref = f"{post.kind}-{post.target}"
        ref = ref or f"m{len(self.messages) + 1}"
        self.messages[ref] = post
        return PostSent(ref)

    @property
    def texts(self) -> list[str]:
        return [post.text for post in self.messages.values() if post.kind != "receipt"]


class HandDrawn:
    """A `DiffPictures` that draws when the test says so."""

    def __init__(self, drawn: DrawnDiff) -> None:
        self.drawn = drawn
        self.asked: list[str] = []
        self.may_draw = asyncio.Event()

    async def draw(self, diff: str) -> DrawnDiff:
        self.asked.append(diff)
        await self.may_draw.wait()
        return self.drawn


@asynccontextmanager
async def views_of(
    chat: Chat,
    store: ConversationStore,
    service: BotService,
    access: BotAccess = ACCESS,
    clock: Clock | None = None,
    pictures: DiffPictures | None = None,
) -> AsyncIterator[BotPlaceViews]:
    async with open_place_views(
        chat, store, service, access, clock or LoopClock(), pictures=pictures
    ) as views:
        yield views
