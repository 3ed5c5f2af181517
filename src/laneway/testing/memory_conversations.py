"""A store of conversations in memory, for tests that need no disk. It keeps nothing."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from laneway.core.conversations import (
    ConversationRecord,
    DeliveryRecord,
    HandBackRecord,
    InputRecord,
    InputState,
    OutputRecord,
    QuestionRecord,
)


class MemoryConversations:
    """All of the port `ConversationStore`."""

    def __init__(self) -> None:
        self._conversations: dict[str, ConversationRecord] = {}
        self._places: dict[str, str] = {}
        self._inputs: list[InputRecord] = []
        self._hand_backs: list[HandBackRecord] = []
        self._hand_back_ids = 0
        self._questions: list[QuestionRecord] = []
        self._outputs: list[OutputRecord] = []
        self._deliveries: list[DeliveryRecord] = []
        self._delivery_ids = 0
        self._cursors: dict[str, str] = {}

    # ── conversations and their places ─────────────────────────────────────

    def create(self, record: ConversationRecord) -> None:
        self.put(record)

    def get(self, conversation_id: str) -> ConversationRecord | None:
        return self._conversations.get(conversation_id)

    def put(self, record: ConversationRecord) -> None:
        self._conversations[record.conversation_id] = record

    def latest(self, limit: int, cwd: str | None = None) -> list[ConversationRecord]:
        found = [record for record in self._conversations.values() if cwd in (None, record.cwd)]
        return sorted(found, key=lambda record: record.used_at, reverse=True)[:limit]

    def place(self, place_key: str) -> str | None:
        return self._places.get(place_key)

    def set_place(self, place_key: str, conversation_id: str | None) -> None:
        if conversation_id is None:
            self._places.pop(place_key, None)
        else:
            self._places[place_key] = conversation_id

    def places(self, conversation_id: str) -> list[str]:
        return sorted(key for key, value in self._places.items() if value == conversation_id)

    # ── input ──────────────────────────────────────────────────────────────

    def add_input(
        self, conversation_id: str, place_key: str, message_id: str, at: float, message: bytes
    ) -> int | None:
        if any((record.place_key, record.message_id) == (place_key, message_id) for record in self._inputs):
            return None
        self._inputs.append(
            InputRecord(
                input_id=len(self._inputs) + 1,
                conversation_id=conversation_id,
                place_key=place_key,
                message_id=message_id,
                at=at,
                state="waiting",
                message=message,
            )
        )
        return len(self._inputs)

    def mark_input(self, input_id: int, state: InputState, *, lane: str = "", ticket: str = "") -> None:
        record = self._inputs[input_id - 1]
        self._inputs[input_id - 1] = replace(
            record, state=state, lane=lane or record.lane, ticket=ticket or record.ticket
        )

    def inputs(self, conversation_id: str, states: Sequence[InputState]) -> list[InputRecord]:
        return [
            record
            for record in self._inputs
            if record.conversation_id == conversation_id and record.state in states
        ]

    # ── hand-backs ─────────────────────────────────────────────────────────

    def add_hand_back(self, conversation_id: str, for_lanes: Sequence[str], at: float, block: bytes) -> None:
        for lane in for_lanes:
            self._hand_back_ids += 1
            self._hand_backs.append(
                HandBackRecord(
                    hand_back_id=self._hand_back_ids,
                    conversation_id=conversation_id,
                    for_lane=lane,
                    at=at,
                    block=block,
                )
            )

    def hand_backs(self, conversation_id: str, for_lane: str) -> list[HandBackRecord]:
        return [
            record
            for record in self._hand_backs
            if (record.conversation_id, record.for_lane) == (conversation_id, for_lane)
        ]

    def carry_hand_backs(self, hand_back_ids: Sequence[int], ticket: str) -> None:
        self._hand_backs = [
            replace(record, ticket=ticket) if record.hand_back_id in hand_back_ids else record
            for record in self._hand_backs
        ]

    def drop_hand_backs(self, conversation_id: str, ticket: str) -> None:
        self._hand_backs = [
            record
            for record in self._hand_backs
            if not (record.conversation_id == conversation_id and record.ticket == ticket)
        ]

    # ── questions ──────────────────────────────────────────────────────────

    def open_question(self, conversation_id: str, lane: str, ticket: str) -> int:
        asked = [record for record in self._questions if record.conversation_id == conversation_id]
        number = len(asked) + 1
        self._questions.append(
            QuestionRecord(
                conversation_id=conversation_id, number=number, lane=lane, ticket=ticket, is_open=True
            )
        )
        return number

    def close_question(self, conversation_id: str, number: int) -> None:
        self._questions = [
            replace(record, is_open=False)
            if (record.conversation_id, record.number) == (conversation_id, number)
            else record
            for record in self._questions
        ]

    def open_questions(self, conversation_id: str) -> list[QuestionRecord]:
        return [
            record
            for record in self._questions
            if record.conversation_id == conversation_id and record.is_open
        ]

    # ── outputs ────────────────────────────────────────────────────────────

    def add_outputs(self, records: Sequence[OutputRecord]) -> None:
        self._outputs += records

    def outputs(self, conversation_id: str, after: int, limit: int) -> list[OutputRecord]:
        found = [
            record
            for record in self._outputs
            if record.conversation_id == conversation_id and record.number > after
        ]
        return found[:limit]

    def last_output(self, conversation_id: str) -> int:
        numbers = [record.number for record in self._outputs if record.conversation_id == conversation_id]
        return max(numbers, default=0)

    # ── deliveries and platforms ───────────────────────────────────────────

    def put_delivery(self, place_key: str, key: str, content: bytes) -> int:
        for index, record in enumerate(self._deliveries):
            if (record.place_key, record.key) == (place_key, key):
                self._deliveries[index] = replace(record, content=content, is_sent=False)
                return record.delivery_id
        self._delivery_ids += 1
        self._deliveries.append(
            DeliveryRecord(
                delivery_id=self._delivery_ids, place_key=place_key, key=key, content=content, is_sent=False
            )
        )
        return self._delivery_ids

    def mark_delivered(self, delivery_id: int, ref: str, content: bytes) -> None:
        self._deliveries = [
            replace(record, ref=ref, is_sent=record.content == content)
            if record.delivery_id == delivery_id
            else record
            for record in self._deliveries
        ]

    def deliveries(self, place_key: str, *, unsent_only: bool = True) -> list[DeliveryRecord]:
        return [
            record
            for record in self._deliveries
            if record.place_key == place_key and not (unsent_only and record.is_sent)
        ]

    def delivery_of(self, place_key: str, ref: str) -> DeliveryRecord | None:
        return next((r for r in self._deliveries if (r.place_key, r.ref) == (place_key, ref)), None)

    def drop_delivery(self, delivery_id: int) -> None:
        self._deliveries = [record for record in self._deliveries if record.delivery_id != delivery_id]

    # ── platforms ──────────────────────────────────────────────────────────

    def cursor(self, name: str) -> str | None:
        return self._cursors.get(name)

    def set_cursor(self, name: str, value: str) -> None:
        self._cursors[name] = value

    def gc(self, before: float) -> int:
        old = [key for key, record in self._conversations.items() if record.used_at < before]
        for key in old:
            del self._conversations[key]
        return len(old)
