"""Records of conversations, from which a restarted Laneway goes on with them, and the port of their store.

`laneway.store.conversations` implements the port on the shared SQLite file. What is stored: the
conversation and its places, the thread of each lane, the input of people before it is acted upon, what
lanes are still to be told, open questions, the outputs, what platforms have sent of them, and the
platforms' own cursors. Engines keep their transcripts. No secret answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec


class ConversationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Times are seconds since 1970."""

    conversation_id: str
    cwd: str
    default_lane: str
    created_at: float
    used_at: float
    title: str = ""
    """The first words that were said in it."""
    lane_threads: dict[str, str] = {}
    """By lane: what `Lane.open` takes as `resume`."""


InputState: TypeAlias = Literal["waiting", "begun", "accepted", "done", "void"]
"""Stored and not acted upon; given to a lane; recorded by its engine; over (its turn, or the command that it
was); not to be acted upon any more."""


class InputRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a person."""

    input_id: int
    """Rises within the database."""
    conversation_id: str
    place_key: str
    message_id: str
    at: float
    state: InputState
    message: bytes
    """The `Incoming`, encoded by the front end."""
    lane: str = ""
    ticket: str = ""
    """Of the turn that it began or was steered into."""


class QuestionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A question that was asked. `number` is 0 or less for none."""

    conversation_id: str
    number: int
    lane: str
    ticket: str
    is_open: bool


class HandBackRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a turn of one lane has done, for another lane that was not told yet."""

    hand_back_id: int
    conversation_id: str
    for_lane: str
    at: float
    block: bytes
    """Encoded by the front end."""
    ticket: str = ""
    """Of the turn whose input carries it; empty if none does yet. Gone once that input is accepted."""


class OutputRecord(msgspec.Struct, frozen=True, kw_only=True):
    conversation_id: str
    number: int
    at: float
    output: bytes


class DeliveryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A message that a platform is to send, or has sent."""

    delivery_id: int
    place_key: str
    key: str
    """Names the message in its place: a later content under the same key is an edit of it."""
    content: bytes
    is_sent: bool
    ref: str = ""
    """The platform's id of the message, once it was sent."""


class ConversationLocks(Protocol):
    """Who may work in a conversation: one process at a time."""

    def hold(self, conversation_id: str) -> Callable[[], None]:
        """Hold it until the returned function is called (twice does no harm), or this process ends.

        Blocks shortly. Raises `ConversationHeld`, which names the process, and `StoreError`. Read the
        conversation's record only afterwards: until then another process may change it, or delete it.
        """
        ...


class ConversationStore(Protocol):
    """All calls block, and raise `StoreError`. Each is one transaction.

    What returns is on disk, also after a power cut; only the newest outputs may miss then. Whoever writes
    for a conversation that is not there gets `ConversationUnknown`.
    """

    # conversations and their places
    def create(self, record: ConversationRecord) -> None: ...
    def get(self, conversation_id: str) -> ConversationRecord | None: ...
    def put(self, record: ConversationRecord) -> None: ...
    def latest(self, limit: int, cwd: str | None = None) -> list[ConversationRecord]: ...
    def place(self, place_key: str) -> str | None:
        """The conversation that a place shows."""
        ...

    def set_place(self, place_key: str, conversation_id: str | None) -> None: ...
    def places(self, conversation_id: str) -> list[str]: ...

    # input
    def add_input(
        self, conversation_id: str, place_key: str, message_id: str, at: float, message: bytes
    ) -> int | None:
        """Store it; returns its id, none if a message with this place and id was stored before."""
        ...

    def mark_input(self, input_id: int, state: InputState, *, lane: str = "", ticket: str = "") -> None:
        """An empty lane or ticket leaves what was marked before."""
        ...

    def inputs(self, conversation_id: str, states: Sequence[InputState]) -> list[InputRecord]: ...

    # hand-backs
    def add_hand_back(self, conversation_id: str, for_lanes: Sequence[str], at: float, block: bytes) -> None:
        """For each of these lanes. Of very many that a lane was never told, the oldest are dropped."""
        ...

    def hand_backs(self, conversation_id: str, for_lane: str) -> list[HandBackRecord]:
        """Those that the lane's engine has not recorded yet, the oldest first."""
        ...

    def carry_hand_backs(self, hand_back_ids: Sequence[int], ticket: str) -> None: ...
    def drop_hand_backs(self, conversation_id: str, ticket: str) -> None:
        """The engine has recorded the input that carried them."""
        ...

    # questions
    def open_question(self, conversation_id: str, lane: str, ticket: str) -> int:
        """Returns its number, which rises within the conversation."""
        ...

    def close_question(self, conversation_id: str, number: int) -> None: ...
    def open_questions(self, conversation_id: str) -> list[QuestionRecord]: ...

    # outputs
    def add_outputs(self, records: Sequence[OutputRecord]) -> None: ...
    def outputs(self, conversation_id: str, after: int, limit: int) -> list[OutputRecord]: ...
    def last_output(self, conversation_id: str) -> int: ...

    # deliveries of message platforms
    def put_delivery(self, place_key: str, key: str, content: bytes) -> int:
        """Store what is to be sent; the same content once more changes nothing. Returns its id."""
        ...

    def mark_delivered(self, delivery_id: int, ref: str, content: bytes) -> None:
        """Sent with this content. A newer content that was put meanwhile is still to be sent."""
        ...

    def deliveries(self, place_key: str, *, unsent_only: bool = True) -> list[DeliveryRecord]: ...
    def delivery_of(self, place_key: str, ref: str) -> DeliveryRecord | None: ...
    def drop_delivery(self, delivery_id: int) -> None: ...

    # platforms
    def cursor(self, name: str) -> str | None: ...
    def set_cursor(self, name: str, value: str) -> None: ...

    def gc(self, before: float) -> int:
        """Delete what is older than this time, with a transaction for each conversation; of very much a part.

        Conversations that were used last before it, unless a process holds them, and of all others the
        outputs, the messages that are over and the deliveries from before. Returns how many conversations.
        """
        ...
