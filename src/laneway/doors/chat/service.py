"""All conversations of one process: implements the port `Chat` of platforms.

Holds each conversation that it works in against other processes, stores every message before it is acted
upon, and passes outputs on to the views. What a message does is decided by `step`, and carried out by
`Conversation`; commands that concern more than one conversation are in `chat_controls`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import msgspec
from msgspec.structs import replace

from laneway.base.clock import LoopClock
from laneway.base.errors import ConversationUnknown
from laneway.base.ids import new_id
from laneway.base.plain import label
from laneway.core.background import TaskSet
from laneway.core.conversations import ConversationLocks, ConversationRecord, ConversationStore, InputState
from laneway.core.ports import Clock
from laneway.doors.chat import button_answers
from laneway.doors.chat.chat_controls import ChatControls
from laneway.doors.chat.conversation import Conversation
from laneway.doors.chat.conversation_letters import InputTaken, NobodyAnswers
from laneway.doors.chat.conversation_state import CutTurn
from laneway.doors.chat.conversation_turns import ConversationParts
from laneway.doors.chat.messages import Incoming, Place, Tap, TapResult
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.ordered_store import OrderedStore
from laneway.doors.chat.output_log import decoded
from laneway.doors.chat.outputs import Shown, Told
from laneway.doors.chat.ports import ChatCommand, ChatState, LaneFactory, View
from laneway.doors.chat.restoring import encode_message, stored_cut, taken_of_new
from laneway.doors.chat.routing import CONTROLS

log = logging.getLogger(__name__)


class _Viewer(msgspec.Struct, frozen=True):
    """A view, and what it shows."""

    place: Place
    view: View
    conversation_id: str


class _Held(msgspec.Struct, frozen=True):
    conversation: Conversation
    release: Callable[[], None]


class ChatService:
    """`async with ChatService(…) as chat:`."""

    def __init__(
        self,
        lanes: LaneFactory,
        store: ConversationStore,
        locks: ConversationLocks,
        options: ChatOptions,
        *,
        clock: Clock | None = None,
        wall: Callable[[], float] = time.time,
        reports: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`reports`: what was wrong with the store itself since it was opened; each is told once."""
        self._lanes = lanes
        self._port = store
        self._locks = locks
        self._options = options
        self._clock = clock or LoopClock()
        self._wall = wall
        self._reports = reports
        self._told_reports = 0
        self._held: dict[str, _Held] = {}
        self._gates: dict[str, asyncio.Lock] = {}
        """By conversation: one opens or closes it at a time."""
        self._places: dict[str, str] = {}
        """What places show, as far as it was looked up."""
        self._viewers: dict[str, _Viewer] = {}
        """By place."""
        self._tasks = TaskSet()
        self._controls = ChatControls(self)

    async def __aenter__(self) -> Self:
        self._store = OrderedStore(self._port)
        self._parts = ConversationParts(self._lanes, self._store, self._options, self._clock, self._wall)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tasks.wait()
        await asyncio.gather(*(self.close(each, by="shutdown") for each in list(self._held)))
        await self._tasks.cancel()
        await self._store.aclose()

    # ── places and views ───────────────────────────────────────────────────

    async def join(self, place: Place, view: View, conversation_id: str | None = None) -> ChatState:
        conversation = await self._conversation_of(place, conversation_id)
        if self._places.get(place.key) != conversation.conversation_id:
            await self.set_place(place, conversation.conversation_id)
        self._viewers[place.key] = _Viewer(place, view, conversation.conversation_id)
        state = conversation.now()
        self._tell_reports(conversation)
        return state

    def _tell_reports(self, conversation: Conversation) -> None:
        """Whoever looks first is told: conversations may be missing."""
        reports = self._reports()
        for report in reports[self._told_reports :]:
            conversation.tell(Told(text=label(report, 600), level="warning"))
        self._told_reports = len(reports)

    def leave(self, place: Place, view: View) -> None:
        viewer = self._viewers.get(place.key)
        if viewer is not None and viewer.view is view:
            del self._viewers[place.key]

    async def move(self, place: Place, conversation_id: str) -> Conversation:
        """The place shows another conversation from now on."""
        conversation = await self.opened(conversation_id)
        await self.set_place(place, conversation_id)
        viewer = self._viewers.get(place.key)
        if viewer is not None:
            self._viewers[place.key] = replace(viewer, conversation_id=conversation_id)
            viewer.view.on_moved(conversation_id)
        return conversation

    async def set_place(self, place: Place, conversation_id: str) -> None:
        await self._store.call(self._port.set_place, place.key, conversation_id)
        self._places[place.key] = conversation_id

    def _deliver(self, shown: Shown) -> None:
        for viewer in list(self._viewers.values()):
            if viewer.conversation_id == shown.conversation_id:
                viewer.view.show(shown)

    # ── messages ───────────────────────────────────────────────────────────

    async def take(self, message: Incoming) -> int | None:
        conversation = await self._conversation_of(message.place, message.conversation_id)
        at = self._wall()
        kept = button_answers.without_secret(conversation.state, message)
        input_id = await self._store.call(
            self._port.add_input,
            conversation.conversation_id,
            message.place.key,
            message.message_id,
            at,
            encode_message(kept),
        )
        if input_id is None:
            return None
        commands = conversation.engine_commands() if message.text.lstrip().startswith("/") else {}
        conversation.note_use(kept.text)
        conversation.post(InputTaken(taken=taken_of_new(input_id, at, message), engine_commands=commands))
        return input_id

    async def tap(self, tap: Tap) -> TapResult:
        if tap.data.startswith("/"):
            message = Incoming(
                place=tap.place,
                message_id=new_id("tap"),
                sender=tap.sender,
                text=tap.data,
                conversation_id=tap.conversation_id,
            )
            await self.take(message)
            return TapResult("Done.")
        conversation = await self._conversation_of(tap.place, tap.conversation_id)
        return button_answers.answer(conversation, tap)

    # ── what there is ──────────────────────────────────────────────────────

    async def state(self, conversation_id: str) -> ChatState:
        return (await self.opened(conversation_id)).now()

    async def outputs(self, conversation_id: str, after: int, limit: int = 500) -> list[Shown]:
        records = await self._store.call(self._port.outputs, conversation_id, after, limit)
        return [shown for shown in map(decoded, records) if shown is not None]

    async def latest(self, limit: int = 50) -> list[ConversationRecord]:
        """Those in which something was said."""
        records = await self._store.call(self._port.latest, 2 * limit)
        return [record for record in records if record.title][:limit]

    def commands(self, conversation_id: str) -> list[ChatCommand]:
        listed = [ChatCommand(name, about) for name, about in CONTROLS.items()]
        held = self._held.get(conversation_id)
        return listed if held is None else [*listed, *held.conversation.lane_commands()]

    async def wait_ready(self, conversation_id: str) -> bool:
        held = self._held.get(conversation_id)
        return False if held is None else await held.conversation.wait_ready()

    async def decline_questions(self, conversation_id: str) -> None:
        (await self.opened(conversation_id)).post(NobodyAnswers())

    def now(self) -> float:
        """Seconds since 1970."""
        return self._wall()

    async def stored_cut(self, conversation_id: str, wanted: int, asking: int) -> CutTurn | None:
        """As `restoring.stored_cut`."""
        states: tuple[InputState, ...] = ("begun", "accepted", "done", "void")
        records = await self._store.call(self._port.inputs, conversation_id, states)
        return stored_cut(records, wanted, asking)

    async def quit(self, conversation_id: str) -> None:
        await self.close(conversation_id, by="quit")

    # ── conversations ──────────────────────────────────────────────────────

    async def create(self) -> Conversation:
        now = self._wall()
        record = ConversationRecord(
            conversation_id=new_id("chat"),
            cwd=str(self._options.cwd),
            default_lane=self._options.default_lane,
            created_at=now,
            used_at=now,
        )
        await self._store.call(self._port.create, record)
        return await self.opened(record.conversation_id)

    async def opened(self, conversation_id: str) -> Conversation:
        """Held against other processes from now on."""
        held = self._held.get(conversation_id)
        if held is not None:
            return held.conversation
        async with self._gates.setdefault(conversation_id, asyncio.Lock()):
            held = self._held.get(conversation_id) or await self._hold(conversation_id)
            return held.conversation

    async def _hold(self, conversation_id: str) -> _Held:
        release = await asyncio.to_thread(self._locks.hold, conversation_id)
        try:
            record = await self._store.call(self._port.get, conversation_id)
            if record is None:
                raise ConversationUnknown(conversation_id)
            last = await self._store.call(self._port.last_output, conversation_id)
            conversation = Conversation(record, last, self._parts, self._deliver, self._controls.run)
            await conversation.start()
        except BaseException:
            release()
            raise
        held = self._held[conversation_id] = _Held(conversation, release)
        return held

    async def close(self, conversation_id: str, by: str) -> None:
        """Stop its lanes, and let it go."""
        async with self._gates.setdefault(conversation_id, asyncio.Lock()):
            held = self._held.pop(conversation_id, None)
            if held is not None:
                try:
                    await held.conversation.aclose(by)
                    await self._store.call(lambda: None)
                finally:
                    await asyncio.to_thread(held.release)

    def close_soon(self, conversation_id: str) -> None:
        """For a command of the conversation itself, which cannot wait for its own end."""
        self._tasks.spawn(self.close(conversation_id, by="quit"), f"closing {conversation_id}")

    async def _conversation_of(self, place: Place, conversation_id: str | None) -> Conversation:
        wanted = conversation_id or self._places.get(place.key)
        if wanted is None:
            async with self._gates.setdefault(place.key, asyncio.Lock()):
                return await self._look_up(place)
        return await self.opened(wanted)

    async def _look_up(self, place: Place) -> Conversation:
        found = self._places.get(place.key) or await self._store.call(self._port.place, place.key)
        if found is not None:
            self._places[place.key] = found
            return await self.opened(found)
        conversation = await self.create()
        await self.set_place(place, conversation.conversation_id)
        return conversation
