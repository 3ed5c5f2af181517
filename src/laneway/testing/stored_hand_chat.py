"""A `Chat` that a test drives by hand: it shows what the test says, and keeps what it is given.

chat = StoredHandChat(store)
chat.show(place, Told(text="Hello"))      # a stored output; `flow` for one that is not
chat.taken, chat.taps                     # what the platform has passed on
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from laneway.core.conversations import ConversationRecord, ConversationStore, OutputRecord
from laneway.doors.chat.messages import Incoming, Place, Tap, TapResult
from laneway.doors.chat.outputs import AnyOutput, QuestionShown, Shown, StatusNow
from laneway.doors.chat.ports import Chat, ChatCommand, ChatState, View

_encoder, _decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Shown)


class StoredHandChat(Chat):
    """One conversation for each place, in a store of the test's."""

    def __init__(self, store: ConversationStore, cwd: Path = Path("/work/project")) -> None:
        self._store = store
        self._cwd = str(cwd)
        self._views: dict[str, tuple[Place, View]] = {}
        self.questions: tuple[QuestionShown, ...] = ()
        """Open ones, for whoever joins."""
        self.taken: list[Incoming] = []
        self.taps: list[Tap] = []
        self.tap_result = TapResult(text="Done.")

    # ── for the test ───────────────────────────────────────────────────────

    def show(self, place: Place, *outputs: AnyOutput) -> None:
        """Store outputs, and show them where their conversation is shown."""
        conversation_id = self._conversation(place)
        for output in outputs:
            number = self._store.last_output(conversation_id) + 1
            shown = Shown(conversation_id=conversation_id, number=number, at=0.0, output=output)
            record = OutputRecord(
                conversation_id=conversation_id, number=number, at=0.0, output=_encoder.encode(shown)
            )
            self._store.add_outputs([record])
            self._tell(conversation_id, shown)

    def flow(self, place: Place, *outputs: AnyOutput) -> None:
        """Outputs that are not stored: deltas, the status."""
        conversation_id = self._conversation(place)
        for output in outputs:
            shown = Shown(conversation_id=conversation_id, number=0, at=0.0, output=output)
            self._tell(conversation_id, shown)

    def move(self, place: Place) -> str:
        """The place shows a new conversation from now on."""
        conversation_id = self._create()
        self._store.set_place(place.key, conversation_id)
        self._views[place.key][1].on_moved(conversation_id)
        return conversation_id

    def _tell(self, conversation_id: str, shown: Shown) -> None:
        for place, view in list(self._views.values()):
            if self._store.place(place.key) == conversation_id:
                view.show(shown)

    def _conversation(self, place: Place) -> str:
        conversation_id = self._store.place(place.key)
        if conversation_id is None:
            conversation_id = self._create()
            self._store.set_place(place.key, conversation_id)
        return conversation_id

    def _create(self) -> str:
        conversation_id = f"conversation-{len(self._store.latest(1000)) + 1}"
        record = ConversationRecord(
            conversation_id=conversation_id,
            cwd=self._cwd,
            default_lane="claude",
            created_at=0.0,
            used_at=0.0,
        )
        self._store.create(record)
        return conversation_id

    # ── the port ───────────────────────────────────────────────────────────

    async def join(self, place: Place, view: View, conversation_id: str | None = None) -> ChatState:
        if conversation_id is not None:
            self._store.set_place(place.key, conversation_id)
        self._views[place.key] = (place, view)
        return await self.state(self._conversation(place))

    def leave(self, place: Place, view: View) -> None:
        if place.key in self._views and self._views[place.key][1] is view:
            del self._views[place.key]

    async def take(self, message: Incoming) -> int | None:
        conversation_id = message.conversation_id or self._conversation(message.place)
        content = message.text.encode()
        input_id = self._store.add_input(conversation_id, message.place.key, message.message_id, 0.0, content)
        if input_id is not None:
            self.taken.append(message)
        return input_id

    async def tap(self, tap: Tap) -> TapResult:
        self.taps.append(tap)
        return self.tap_result

    async def state(self, conversation_id: str) -> ChatState:
        record = self._store.get(conversation_id)
        assert record is not None
        return ChatState(
            record=record,
            last_number=self._store.last_output(conversation_id),
            status=StatusNow(default_lane="claude", active_lane=None),
            questions=self.questions,
        )

    async def outputs(self, conversation_id: str, after: int, limit: int = 500) -> list[Shown]:
        records = self._store.outputs(conversation_id, after, limit)
        return [_decoder.decode(record.output) for record in records]

    async def latest(self, limit: int = 50) -> list[ConversationRecord]:
        return self._store.latest(limit)

    def commands(self, conversation_id: str) -> list[ChatCommand]:
        return [
            ChatCommand(name="help", description="What can be typed here"),
            ChatCommand(name="stop", description="Stop the lane that works"),
            ChatCommand(
                name="codex", description="Run a task with Codex", usage="/codex <task>", kind="lane"
            ),
        ]

    async def wait_ready(self, conversation_id: str) -> bool:
        return False

    async def decline_questions(self, conversation_id: str) -> None:
        self.questions = ()

    async def quit(self, conversation_id: str) -> None:
        """There is nothing to stop."""
