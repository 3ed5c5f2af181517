"""Conversations on disk: implements `laneway.core.conversations.ConversationStore` on the shared SQLite file.

All calls block. The encoded values of the front end are bytes here, and never looked at.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.errors import ConversationHeld, ConversationUnknown, StoreError
from laneway.core.conversations import (
    ConversationLocks,
    ConversationRecord,
    DeliveryRecord,
    HandBackRecord,
    InputRecord,
    InputState,
    OutputRecord,
    QuestionRecord,
)
from laneway.store.database import Database
from laneway.store.stamps import Now, utc_now

if TYPE_CHECKING:
    import sqlite3

log = logging.getLogger(__name__)

MAX_HAND_BACKS = 64
"""Of one lane that was never told any: many more than fit into what it is told at once."""
MAX_COLLECTED = 200
"""Conversations that one `gc` looks at: it ends soon, and goes on the next day."""

_OLD_PARTS = (
    ("chat_inputs", "state IN ('done', 'void')"),
    # The last output stays: the next number follows from it.
    (
        "chat_outputs",
        "number < (SELECT max(number) FROM chat_outputs WHERE conversation_id = part.conversation_id)",
    ),
)
"""By table: what of a conversation in use is needed no more, once it is old."""
_CONVERSATION = "conversation_id, cwd, default_lane, created_at, used_at, title, lane_threads"
_INPUT = "input_id, conversation_id, place_key, message_id, at, state, message, lane, ticket"
_DELIVERY = "delivery_id, place_key, key, content, is_sent, ref"
_decode_threads = msgspec.json.Decoder(dict[str, str]).decode


class StoredConversations:
    def __init__(self, database: Database, locks: ConversationLocks, now: Now = utc_now) -> None:
        """The locks tell `gc` which conversations are in use."""
        self._database = database
        self._locks = locks
        self._now = now

    # ── conversations and their places ─────────────────────────────────────

    def create(self, record: ConversationRecord) -> None:
        statement = f"INSERT INTO conversations ({_CONVERSATION}) VALUES (?, ?, ?, ?, ?, ?, ?)"

        def write(connection: sqlite3.Connection) -> None:
            if _is_there(connection, record.conversation_id):
                raise StoreError(f"There is a conversation {record.conversation_id} already.")
            connection.execute(statement, (record.conversation_id, *_values(record)))

        self._database.write(write)

    def get(self, conversation_id: str) -> ConversationRecord | None:
        query = f"SELECT {_CONVERSATION} FROM conversations WHERE conversation_id = ?"
        rows = self._rows(query, _text(conversation_id))
        return _conversation(rows[0]) if rows else None

    def put(self, record: ConversationRecord) -> None:
        statement = (
            "UPDATE conversations SET cwd = ?, default_lane = ?, created_at = ?, used_at = ?, title = ?,"
            " lane_threads = ? WHERE conversation_id = ?"
        )
        values = (*_values(record), record.conversation_id)
        if self._database.write(lambda c: c.execute(statement, values).rowcount) == 0:
            raise ConversationUnknown(record.conversation_id)

    def latest(self, limit: int, cwd: str | None = None) -> list[ConversationRecord]:
        query = (
            f"SELECT {_CONVERSATION} FROM conversations WHERE ? IS NULL OR cwd = ?"
            " ORDER BY used_at DESC, rowid DESC LIMIT ?"
        )
        folder = None if cwd is None else os.fsencode(cwd)
        return [_conversation(row) for row in self._rows(query, folder, folder, limit)]

    def place(self, place_key: str) -> str | None:
        rows = self._rows("SELECT conversation_id FROM chat_places WHERE place_key = ?", _text(place_key))
        return str(rows[0][0]) if rows else None

    def set_place(self, place_key: str, conversation_id: str | None) -> None:
        if conversation_id is None:
            self._change("DELETE FROM chat_places WHERE place_key = ?", _text(place_key))
            return
        self._change_in(
            conversation_id,
            "INSERT INTO chat_places VALUES (?, ?)"
            " ON CONFLICT (place_key) DO UPDATE SET conversation_id = excluded.conversation_id",
            _text(place_key),
            conversation_id,
        )

    def places(self, conversation_id: str) -> list[str]:
        query = "SELECT place_key FROM chat_places WHERE conversation_id = ? ORDER BY place_key"
        return [str(row[0]) for row in self._rows(query, conversation_id)]

    # ── input ──────────────────────────────────────────────────────────────

    def add_input(
        self, conversation_id: str, place_key: str, message_id: str, at: float, message: bytes
    ) -> int | None:
        statement = (
            "INSERT INTO chat_inputs (conversation_id, place_key, message_id, at, state, message)"
            " VALUES (?, ?, ?, ?, 'waiting', ?) ON CONFLICT (place_key, message_id) DO NOTHING"
        )
        values = (conversation_id, _text(place_key), _text(message_id), at, message)

        def write(connection: sqlite3.Connection) -> int | None:
            _require(connection, conversation_id)
            cursor = connection.execute(statement, values)
            return cursor.lastrowid if cursor.rowcount else None

        return self._database.write(write)

    def mark_input(self, input_id: int, state: InputState, *, lane: str = "", ticket: str = "") -> None:
        self._change(
            "UPDATE chat_inputs SET state = ?, lane = CASE ? WHEN '' THEN lane ELSE ? END,"
            " ticket = CASE ? WHEN '' THEN ticket ELSE ? END WHERE input_id = ?",
            *(state, lane, lane, ticket, ticket, input_id),
        )

    def inputs(self, conversation_id: str, states: Sequence[InputState]) -> list[InputRecord]:
        query = (
            f"SELECT {_INPUT} FROM chat_inputs WHERE conversation_id = ?"
            " AND state IN (SELECT value FROM json_each(?)) ORDER BY input_id"
        )
        rows = self._rows(query, conversation_id, msgspec.json.encode(states).decode())
        return [InputRecord(**dict(zip(InputRecord.__struct_fields__, row, strict=True))) for row in rows]

    # ── hand-backs ─────────────────────────────────────────────────────────

    def add_hand_back(self, conversation_id: str, for_lanes: Sequence[str], at: float, block: bytes) -> None:
        def write(connection: sqlite3.Connection) -> None:
            _require(connection, conversation_id)
            for lane in for_lanes:
                connection.execute(
                    "INSERT INTO hand_backs (conversation_id, for_lane, at, block) VALUES (?, ?, ?, ?)",
                    (conversation_id, lane, at, block),
                )
                connection.execute(
                    "DELETE FROM hand_backs WHERE hand_back_id IN (SELECT hand_back_id FROM hand_backs"
                    " WHERE conversation_id = ? AND for_lane = ?"
                    " ORDER BY hand_back_id DESC LIMIT -1 OFFSET ?)",
                    (conversation_id, lane, MAX_HAND_BACKS),
                )

        self._database.write(write)

    def hand_backs(self, conversation_id: str, for_lane: str) -> list[HandBackRecord]:
        query = (
            "SELECT hand_back_id, conversation_id, for_lane, at, block, ticket FROM hand_backs"
            " WHERE conversation_id = ? AND for_lane = ? ORDER BY hand_back_id"
        )
        rows = self._rows(query, conversation_id, for_lane)
        fields = HandBackRecord.__struct_fields__
        return [HandBackRecord(**dict(zip(fields, row, strict=True))) for row in rows]

    def carry_hand_backs(self, hand_back_ids: Sequence[int], ticket: str) -> None:
        self._change(
            "UPDATE hand_backs SET ticket = ? WHERE hand_back_id IN (SELECT value FROM json_each(?))",
            *(ticket, msgspec.json.encode(hand_back_ids).decode()),
        )

    def drop_hand_backs(self, conversation_id: str, ticket: str) -> None:
        self._change(
            "DELETE FROM hand_backs WHERE conversation_id = ? AND ticket = ? AND ticket != ''",
            *(conversation_id, ticket),
        )

    # ── questions ──────────────────────────────────────────────────────────

    def open_question(self, conversation_id: str, lane: str, ticket: str) -> int:
        highest = "SELECT coalesce(max(number), 0) FROM chat_questions WHERE conversation_id = ?"

        def write(connection: sqlite3.Connection) -> int:
            _require(connection, conversation_id)
            number = int(connection.execute(highest, (conversation_id,)).fetchone()[0]) + 1
            values = (conversation_id, number, lane, ticket)
            connection.execute("INSERT INTO chat_questions VALUES (?, ?, ?, ?, 1)", values)
            return number

        return self._database.write(write)

    def close_question(self, conversation_id: str, number: int) -> None:
        self._change(
            "UPDATE chat_questions SET is_open = 0 WHERE conversation_id = ? AND number = ?",
            *(conversation_id, number),
        )

    def open_questions(self, conversation_id: str) -> list[QuestionRecord]:
        query = (
            "SELECT number, lane, ticket FROM chat_questions WHERE conversation_id = ? AND is_open"
            " ORDER BY number"
        )
        return [
            QuestionRecord(
                conversation_id=conversation_id, number=number, lane=lane, ticket=ticket, is_open=True
            )
            for number, lane, ticket in self._rows(query, conversation_id)
        ]

    # ── outputs ────────────────────────────────────────────────────────────

    def add_outputs(self, records: Sequence[OutputRecord]) -> None:
        rows = [(record.conversation_id, record.number, record.at, record.output) for record in records]

        def write(connection: sqlite3.Connection) -> None:
            import sqlite3

            try:
                connection.executemany("INSERT INTO chat_outputs VALUES (?, ?, ?, ?)", rows)
            except sqlite3.IntegrityError as problem:
                for record in records:
                    _require(connection, record.conversation_id)
                raise StoreError("An output with this number is stored already.") from problem

        if rows:
            self._database.write_soon(write)

    def outputs(self, conversation_id: str, after: int, limit: int) -> list[OutputRecord]:
        query = (
            "SELECT number, at, output FROM chat_outputs WHERE conversation_id = ? AND number > ?"
            " ORDER BY number LIMIT ?"
        )
        return [
            OutputRecord(conversation_id=conversation_id, number=number, at=at, output=output)
            for number, at, output in self._rows(query, conversation_id, after, limit)
        ]

    def last_output(self, conversation_id: str) -> int:
        query = "SELECT coalesce(max(number), 0) FROM chat_outputs WHERE conversation_id = ?"
        return int(self._rows(query, conversation_id)[0][0])

    # ── deliveries of message platforms ────────────────────────────────────

    def put_delivery(self, place_key: str, key: str, content: bytes) -> int:
        statement = (
            "INSERT INTO chat_deliveries (place_key, key, at, content) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (place_key, key) DO UPDATE SET content = excluded.content, at = excluded.at,"
            " is_sent = is_sent AND content = excluded.content"
        )
        place_key, key, at = _text(place_key), _text(key), self._now().timestamp()

        def write(connection: sqlite3.Connection) -> int:
            connection.execute(statement, (place_key, key, at, content))
            query = "SELECT delivery_id FROM chat_deliveries WHERE place_key = ? AND key = ?"
            return int(connection.execute(query, (place_key, key)).fetchone()[0])

        return self._database.write(write)

    def mark_delivered(self, delivery_id: int, ref: str, content: bytes) -> None:
        self._change(
            "UPDATE chat_deliveries SET ref = ?, is_sent = (content = ?) WHERE delivery_id = ?",
            *(_text(ref), content, delivery_id),
        )

    def deliveries(self, place_key: str, *, unsent_only: bool = True) -> list[DeliveryRecord]:
        unsent = " AND NOT is_sent" if unsent_only else ""
        query = f"SELECT {_DELIVERY} FROM chat_deliveries WHERE place_key = ?{unsent} ORDER BY delivery_id"
        return [_delivery(row) for row in self._rows(query, _text(place_key))]

    def delivery_of(self, place_key: str, ref: str) -> DeliveryRecord | None:
        query = (
            f"SELECT {_DELIVERY} FROM chat_deliveries WHERE place_key = ? AND ref = ?"
            " ORDER BY delivery_id DESC LIMIT 1"
        )
        rows = self._rows(query, _text(place_key), _text(ref)) if ref else []
        return _delivery(rows[0]) if rows else None

    def drop_delivery(self, delivery_id: int) -> None:
        self._change("DELETE FROM chat_deliveries WHERE delivery_id = ?", delivery_id)

    # ── platforms ──────────────────────────────────────────────────────────

    def cursor(self, name: str) -> str | None:
        rows = self._rows("SELECT value FROM chat_cursors WHERE name = ?", _text(name))
        return str(rows[0][0]) if rows else None

    def set_cursor(self, name: str, value: str) -> None:
        self._change(
            "INSERT INTO chat_cursors VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            *(_text(name), _text(value)),
        )

    # ── what is not needed any more ────────────────────────────────────────

    def gc(self, before: float) -> int:
        query = "SELECT conversation_id FROM conversations WHERE used_at < ? ORDER BY used_at LIMIT ?"
        unused = self._rows(query, before, MAX_COLLECTED)
        deleted = sum(self._delete_unheld(row[0], before) for row in unused)
        for table, condition in _OLD_PARTS:
            query = (
                f"SELECT DISTINCT conversation_id FROM {table} AS part WHERE at < ? AND {condition} LIMIT ?"
            )
            statement = f"DELETE FROM {table} AS part WHERE conversation_id = ? AND at < ? AND {condition}"
            for row in self._rows(query, before, MAX_COLLECTED):
                self._change(statement, row[0], before)
        self._change("DELETE FROM chat_deliveries WHERE at < ?", before)
        return deleted

    def _delete_unheld(self, conversation_id: str, before: float) -> int:
        try:
            release = self._locks.hold(conversation_id)
        except ConversationHeld:
            return 0  # it is open, if only to be read
        # Its age is looked at once more: it may have been used until we held it.
        statement = "DELETE FROM conversations WHERE conversation_id = ? AND used_at < ?"
        try:
            return self._database.write(lambda c: c.execute(statement, (conversation_id, before)).rowcount)
        finally:
            release()

    # ── helpers ────────────────────────────────────────────────────────────

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._database.read(lambda c: c.execute(query, values).fetchall())

    def _change(self, statement: str, *values: Any) -> None:
        self._database.write(lambda c: c.execute(statement, values))

    def _change_in(self, conversation_id: str, statement: str, *values: Any) -> None:
        def write(connection: sqlite3.Connection) -> None:
            _require(connection, conversation_id)
            connection.execute(statement, values)

        self._database.write(write)


def _is_there(connection: sqlite3.Connection, conversation_id: str) -> bool:
    query = "SELECT 1 FROM conversations WHERE conversation_id = ?"
    return connection.execute(query, (_text(conversation_id),)).fetchone() is not None


def _require(connection: sqlite3.Connection, conversation_id: str) -> None:
    if not _is_there(connection, conversation_id):
        raise ConversationUnknown(conversation_id)


def _values(record: ConversationRecord) -> tuple[Any, ...]:
    """In the order of the columns, without the id."""
    threads = msgspec.json.encode(record.lane_threads).decode()
    times = (record.created_at, record.used_at)
    # A folder's name may hold bytes that are no text, and must come back as it was.
    return (os.fsencode(record.cwd), record.default_lane, *times, _text(record.title), threads)


def _conversation(row: tuple[Any, ...]) -> ConversationRecord:
    conversation_id, cwd, default_lane, created_at, used_at, title, threads = row
    try:
        lane_threads = _decode_threads(threads)
    except msgspec.DecodeError:
        log.warning("the threads of conversation %s cannot be read; its lanes begin anew", conversation_id)
        lane_threads = {}
    return ConversationRecord(
        conversation_id=conversation_id,
        cwd=os.fsdecode(cwd),
        default_lane=default_lane,
        created_at=created_at,
        used_at=used_at,
        title=title,
        lane_threads=lane_threads,
    )


def _delivery(row: tuple[Any, ...]) -> DeliveryRecord:
    delivery_id, place_key, key, content, is_sent, ref = row
    return DeliveryRecord(
        delivery_id=delivery_id, place_key=place_key, key=key, content=content, is_sent=bool(is_sent), ref=ref
    )


def _text(value: str) -> str:
    """What people and platforms write may hold halves of characters; SQLite's texts cannot."""
    return value.encode("utf-8", "replace").decode()
