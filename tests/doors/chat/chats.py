"""A chat service with scripted lanes for tests, and a view that remembers what it was shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from laneway.core.ports import Clock
from laneway.doors.chat.messages import Incoming, Place, ReplyTarget, Sender, Tap, TapResult
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.outputs import (
    AnyOutput,
    InputReceipt,
    QuestionShown,
    Shown,
    Told,
    TurnBegan,
    TurnEnded,
)
from laneway.doors.chat.ports import ChatState, LaneFactory
from laneway.doors.chat.service import ChatService
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database

DEADLINE_S = 10
Kind = TypeVar("Kind")
HERE = Place("terminal", "one")
ANNA = Sender(platform="terminal", user_id="anna", name="Anna", is_owner=True)
BEN = Sender(platform="terminal", user_id="ben", name="Ben")


class SeenView:
    """Remembers all that it was shown."""

    def __init__(self) -> None:
        self.shown: list[Shown] = []
        self.moved: list[str] = []
        self._changed = asyncio.Event()

    def show(self, shown: Shown) -> None:
        self.shown.append(shown)
        self._changed.set()

    def on_moved(self, conversation_id: str) -> None:
        self.moved.append(conversation_id)
        self._changed.set()

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [each.output for each in self.shown if isinstance(each.output, kind)]

    @property
    def stored(self) -> list[AnyOutput]:
        return [each.output for each in self.shown if each.number]

    async def wait(
        self, kind: type[Kind], is_it: Callable[[Kind], bool] = lambda _: True, count: int = 1
    ) -> Kind:
        """The so manyth output of this kind for which it holds."""
        while True:
            found = [each for each in self.all(kind) if is_it(each)]
            if len(found) >= count:
                return found[count - 1]
            self._changed.clear()
            await self._changed.wait()

    async def ended(self, lane: str, count: int = 1) -> TurnEnded:
        return await self.wait(TurnEnded, lambda each: each.lane == lane, count)

    async def told(self, words: str) -> Told:
        return await self.wait(Told, lambda each: words in each.text)

    async def receipt(self, input_id: int | None, kind: str | None = None) -> InputReceipt:
        return await self.wait(
            InputReceipt, lambda each: each.input_id == input_id and kind in (None, each.kind)
        )

    async def question(self, count: int = 1) -> QuestionShown:
        return await self.wait(QuestionShown, count=count)

    def receipts(self, input_id: int | None) -> list[str]:
        return [each.kind for each in self.all(InputReceipt) if each.input_id == input_id]

    @property
    def begun(self) -> list[tuple[str, str]]:
        return [(each.lane, each.task) for each in self.all(TurnBegan)]


class Talk:
    """One place of a service, and its view."""

    def __init__(self, chat: ChatService, place: Place = HERE) -> None:
        self.chat = chat
        self.place = place
        self.view = SeenView()
        self._count = 0

    async def join(self, conversation_id: str | None = None) -> ChatState:
        return await self.chat.join(self.place, self.view, conversation_id)

    async def say(
        self,
        text: str,
        *,
        sender: Sender = ANNA,
        images: tuple[Path, ...] = (),
        reply: ReplyTarget | None = None,
        origin: str = "",
        message_id: str = "",
    ) -> int:
        self._count += 1
        input_id = await self.chat.take(
            Incoming(
                place=self.place,
                message_id=message_id or f"{id(self)}-{self._count}",
                sender=replace(sender, platform=self.place.platform),
                text=text,
                images=images,
                reply=reply,
                origin=origin,
            )
        )
        assert input_id is not None
        return input_id

    async def tap(
        self, data: str, *, sender: Sender = ANNA, words: str = "", values: dict[str, object] | None = None
    ) -> TapResult:
        tap = Tap(place=self.place, sender=sender, data=data, words=words, values=values or {})
        return await self.chat.tap(tap)

    @property
    async def conversation_id(self) -> str:
        return (await self.join()).record.conversation_id


@asynccontextmanager
async def chatting(
    folder: Path, lanes: LaneFactory, *, clock: Clock | None = None, **options: Any
) -> AsyncIterator[ChatService]:
    """A service on the SQLite file of a folder."""
    locks = ConversationLockFiles(folder / "conversations")
    wall = options.pop("wall", None)
    extra = {} if wall is None else {"wall": wall}
    with Database(folder / "laneway.db") as database:
        store = StoredConversations(database, locks)
        settings = ChatOptions(**{"cwd": folder, "busy": "interrupt", **options})
        async with ChatService(lanes, store, locks, settings, clock=clock, **extra) as chat:
            yield chat


@asynccontextmanager
async def talking(
    folder: Path, lanes: LaneFactory, *, clock: Clock | None = None, **options: Any
) -> AsyncIterator[Talk]:
    async with asyncio.timeout(DEADLINE_S), chatting(folder, lanes, clock=clock, **options) as chat:
        talk = Talk(chat)
        await talk.join()
        yield talk
