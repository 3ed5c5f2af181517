"""Conversations on the shared SQLite file: what was stored comes back, once, in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from laneway.base.errors import ConversationUnknown, StoreError
from laneway.core.conversations import (
    ConversationRecord,
    ConversationStore,
    HandBackRecord,
    InputRecord,
    OutputRecord,
    QuestionRecord,
)
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import MAX_HAND_BACKS, StoredConversations
from laneway.store.database import Database
from tests.store.support import WallClock, Worker

DAY_S = 86_400.0


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "laneway.db") as database:
        yield database


@pytest.fixture
def locks(tmp_path: Path) -> ConversationLockFiles:
    return ConversationLockFiles(tmp_path / "conversations")


@pytest.fixture
def store(database: Database, locks: ConversationLockFiles) -> StoredConversations:
    return StoredConversations(database, locks, WallClock())


def record(conversation_id: str = "c", used_at: float = 5.0, cwd: str = "/work") -> ConversationRecord:
    return ConversationRecord(
        conversation_id=conversation_id, cwd=cwd, default_lane="claude", created_at=1.0, used_at=used_at
    )


def output(number: int, conversation_id: str = "c", at: float = 1.0) -> OutputRecord:
    return OutputRecord(conversation_id=conversation_id, number=number, at=at, output=b"%d" % number)


def numbers(
    store: ConversationStore, conversation_id: str = "c", after: int = 0, limit: int = 100
) -> list[int]:
    return [each.number for each in store.outputs(conversation_id, after, limit)]


def test_a_conversation_comes_back_as_it_was_stored(store: StoredConversations) -> None:
    """Also in a folder whose name is no text, and with words that no database takes."""
    made = msgspec.structs.replace(
        record(cwd="/work/\udcff"), title="half a \ud83d", lane_threads={"codex": "thread", "claude": ""}
    )
    assert store.get("c") is None
    store.create(made)
    assert store.get("c") == msgspec.structs.replace(made, title="half a ?")
    assert store.get("\ud800") is None
    changed = msgspec.structs.replace(made, title="", default_lane="codex", used_at=7.5, lane_threads={})
    store.put(changed)
    assert store.get("c") == changed


def test_a_conversation_is_made_once_and_only_what_is_there_can_be_changed(
    store: StoredConversations,
) -> None:
    """Nothing comes back to life by a late write."""
    with pytest.raises(ConversationUnknown):
        store.put(record())
    store.create(record())
    with pytest.raises(StoreError, match="already"):
        store.create(record())


def test_nothing_is_stored_for_a_conversation_that_is_not_there(store: StoredConversations) -> None:
    writes: tuple[Callable[[], object], ...] = (
        lambda: store.set_place("terminal:1", "c"),
        lambda: store.add_input("c", "terminal:1", "1", 1.0, b""),
        lambda: store.add_hand_back("c", ("claude",), 1.0, b""),
        lambda: store.open_question("c", "codex", "t"),
        lambda: store.add_outputs([output(1)]),
    )
    for write in writes:
        with pytest.raises(ConversationUnknown):
            write()


def test_conversations_are_listed_by_their_last_use(store: StoredConversations) -> None:
    for name, used_at, cwd in (("a", 3.0, "/work"), ("b", 9.0, "/else"), ("d", 6.0, "/work")):
        store.create(record(name, used_at, cwd))
    assert [each.conversation_id for each in store.latest(10)] == ["b", "d", "a"]
    assert [each.conversation_id for each in store.latest(2)] == ["b", "d"]
    assert [each.conversation_id for each in store.latest(10, "/work")] == ["d", "a"]


def test_a_place_shows_one_conversation_and_a_conversation_has_several_places(
    store: StoredConversations,
) -> None:
    store.create(record("c"))
    store.create(record("d"))
    store.set_place("web:1", "c")
    store.set_place("terminal:1", "c")
    assert store.places("c") == ["terminal:1", "web:1"]
    store.set_place("web:1", "d")
    assert (store.place("web:1"), store.places("c")) == ("d", ["terminal:1"])
    store.set_place("web:1", None)
    assert store.place("web:1") is None


def test_a_message_is_stored_once_for_its_place(store: StoredConversations) -> None:
    """Another place, or another conversation, may use the same message ids; one place may not twice."""
    store.create(record("c"))
    store.create(record("d"))
    first = store.add_input("c", "telegram:1", "77", 2.0, b"words")
    assert first is not None
    assert store.add_input("c", "telegram:1", "77", 3.0, b"again") is None
    assert store.add_input("d", "telegram:1", "77", 3.0, b"again") is None
    second = store.add_input("c", "telegram:2", "77", 3.0, b"other")
    assert second is not None
    assert second > first
    assert store.inputs("c", ("waiting",)) == [
        InputRecord(
            input_id=first,
            conversation_id="c",
            place_key="telegram:1",
            message_id="77",
            at=2.0,
            state="waiting",
            message=b"words",
        ),
        InputRecord(
            input_id=second,
            conversation_id="c",
            place_key="telegram:2",
            message_id="77",
            at=3.0,
            state="waiting",
            message=b"other",
        ),
    ]
    assert store.inputs("d", ("waiting", "begun", "accepted", "done", "void")) == []


def test_a_message_keeps_its_lane_and_turn_when_only_its_state_changes(store: StoredConversations) -> None:
    store.create(record())
    input_id = store.add_input("c", "terminal:1", "1", 2.0, b"words")
    assert input_id is not None
    store.mark_input(input_id, "begun", lane="codex", ticket="t1")
    store.mark_input(input_id, "accepted")
    (found,) = store.inputs("c", ("begun", "accepted"))
    assert (found.state, found.lane, found.ticket) == ("accepted", "codex", "t1")
    assert store.inputs("c", ("waiting", "begun", "done")) == []


def test_a_hand_back_is_there_until_the_turn_that_carries_it_is_recorded(store: StoredConversations) -> None:
    """A turn that was never recorded leaves it for the next one."""
    store.create(record())
    store.add_hand_back("c", ("claude", "aider"), 2.0, b"first")
    store.add_hand_back("c", ("claude",), 3.0, b"second")
    told = store.hand_backs("c", "claude")
    assert [(each.block, each.at, each.ticket) for each in told] == [
        (b"first", 2.0, ""),
        (b"second", 3.0, ""),
    ]
    store.carry_hand_backs([each.hand_back_id for each in told], "t1")
    store.carry_hand_backs([each.hand_back_id for each in told], "t2")
    store.add_hand_back("c", ("claude",), 4.0, b"third")
    store.drop_hand_backs("c", "t1")
    store.drop_hand_backs("c", "")
    assert [each.block for each in store.hand_backs("c", "claude")] == [b"first", b"second", b"third"]
    store.drop_hand_backs("c", "t2")
    assert [each.block for each in store.hand_backs("c", "claude")] == [b"third"]
    (other,) = store.hand_backs("c", "aider")
    assert other == HandBackRecord(
        hand_back_id=other.hand_back_id, conversation_id="c", for_lane="aider", at=2.0, block=b"first"
    )


def test_a_lane_that_is_never_told_anything_does_not_fill_the_disk(store: StoredConversations) -> None:
    store.create(record())
    for number in range(MAX_HAND_BACKS + 3):
        store.add_hand_back("c", ("claude", "aider"), 1.0, b"%d" % number)
    assert [each.block for each in store.hand_backs("c", "aider")] == [
        b"%d" % number for number in range(3, MAX_HAND_BACKS + 3)
    ]


def test_numbers_of_questions_rise_within_their_conversation(store: StoredConversations) -> None:
    store.create(record("c"))
    store.create(record("d"))
    assert [store.open_question("c", "codex", "t1"), store.open_question("c", "claude", "t2")] == [1, 2]
    assert store.open_question("d", "codex", "t3") == 1
    store.close_question("c", 2)
    assert store.open_question("c", "codex", "t1") == 3
    assert store.open_questions("c") == [
        QuestionRecord(conversation_id="c", number=1, lane="codex", ticket="t1", is_open=True),
        QuestionRecord(conversation_id="c", number=3, lane="codex", ticket="t1", is_open=True),
    ]


def test_outputs_come_back_in_order_and_from_any_number_on(store: StoredConversations) -> None:
    store.create(record())
    assert store.last_output("c") == 0
    store.add_outputs([])
    store.add_outputs([output(1), output(2)])
    store.add_outputs([output(3)])
    assert store.outputs("c", 1, 1) == [output(2)]
    assert (numbers(store, after=1), store.last_output("c")) == ([2, 3], 3)
    with pytest.raises(StoreError, match="already"):
        store.add_outputs([output(4), output(3)])
    assert numbers(store) == [1, 2, 3]


def test_a_changed_message_is_sent_again_and_an_unchanged_one_is_not(store: StoredConversations) -> None:
    first = store.put_delivery("telegram:1", "plan", b"one")
    second = store.put_delivery("telegram:1", "text", b"words")
    assert [each.delivery_id for each in store.deliveries("telegram:1")] == [first, second]
    store.mark_delivered(first, "m1", b"one")
    assert store.put_delivery("telegram:1", "plan", b"one") == first
    assert [each.key for each in store.deliveries("telegram:1")] == ["text"]
    assert store.put_delivery("telegram:1", "plan", b"two") == first
    assert store.put_delivery("telegram:1", "plan", b"three") == first
    store.mark_delivered(first, "m1", b"two")
    (plan, _) = store.deliveries("telegram:1")
    assert (plan.content, plan.ref, plan.is_sent) == (b"three", "m1", False)
    store.mark_delivered(first, "m1", b"three")
    found = store.delivery_of("telegram:1", "m1")
    assert found is not None
    assert (found.key, found.is_sent) == ("plan", True)
    assert store.delivery_of("telegram:2", "m1") is None
    assert store.delivery_of("telegram:1", "") is None
    store.drop_delivery(second)
    assert store.deliveries("telegram:1") == []
    assert [each.key for each in store.deliveries("telegram:1", unsent_only=False)] == ["plan"]


def test_cursors_are_kept_by_name(store: StoredConversations) -> None:
    assert store.cursor("telegram") is None
    store.set_cursor("telegram", "1")
    store.set_cursor("telegram", "2")
    assert (store.cursor("telegram"), store.cursor("discord")) == ("2", None)


def test_two_processes_take_each_message_once(database: Database, store: StoredConversations) -> None:
    """Whichever is first; the other is told that it was there."""
    store.create(record())
    with (
        Worker("take", database.path, "c", 200) as one,
        Worker("take", database.path, "c", 200) as other,
    ):
        assert (one.hear(), other.hear()) == ("ready", "ready")
        one.go()
        other.go()
        taken = [*one.hear(), *other.hear()]
    assert sorted(taken) == list(range(200))
    assert len(store.inputs("c", ("waiting",))) == 200


def fill(store: StoredConversations, conversation_id: str, used_at: float) -> None:
    """A conversation with something of everything, all from the time 1."""
    store.create(record(conversation_id, used_at))
    store.set_place(f"web:{conversation_id}", conversation_id)
    done = store.add_input(conversation_id, f"web:{conversation_id}", "1", 1.0, b"")
    assert done is not None
    store.mark_input(done, "done")
    store.add_input(conversation_id, f"web:{conversation_id}", "2", 1.0, b"")
    store.add_hand_back(conversation_id, ("claude",), 1.0, b"")
    store.open_question(conversation_id, "codex", "t")
    store.add_outputs([output(1, conversation_id), output(2, conversation_id)])


def owners_in(connection: sqlite3.Connection, table: str) -> list[tuple[str]]:
    return connection.execute(f"SELECT DISTINCT conversation_id FROM {table}").fetchall()


def test_a_conversation_that_was_unused_for_long_goes_with_everything_of_it(
    database: Database, store: StoredConversations
) -> None:
    fill(store, "old", used_at=10 * DAY_S)
    fill(store, "new", used_at=40 * DAY_S)
    assert store.gc(30 * DAY_S) == 1
    assert [each.conversation_id for each in store.latest(10)] == ["new"]
    tables = ("places", "inputs", "questions", "outputs")
    for table in (*(f"chat_{name}" for name in tables), "hand_backs"):
        assert database.read(partial(owners_in, table=table)) == [("new",)], table


def test_old_parts_of_a_conversation_in_use_go_and_what_still_counts_stays(
    store: StoredConversations,
) -> None:
    """Messages that wait stay, and the last output, from which the next number follows."""
    fill(store, "c", used_at=40 * DAY_S)
    assert store.gc(30 * DAY_S) == 0
    every = store.inputs("c", ("waiting", "begun", "accepted", "done", "void"))
    assert [each.state for each in every] == ["waiting"]
    assert (numbers(store), store.last_output("c")) == ([2], 2)
    assert len(store.hand_backs("c", "claude")) == len(store.open_questions("c")) == 1
    assert store.place("web:c") == "c"


def test_deliveries_go_when_nobody_has_changed_them_for_long(
    database: Database, locks: ConversationLockFiles
) -> None:
    clock = WallClock()
    store = StoredConversations(database, locks, clock)
    store.put_delivery("telegram:1", "text", b"words")
    store.put_delivery("telegram:1", "plan", b"one")
    clock.move(days=20)
    store.put_delivery("telegram:1", "plan", b"two")
    store.gc(clock().timestamp() - 10 * DAY_S)
    assert [each.key for each in store.deliveries("telegram:1")] == ["plan"]


def test_a_conversation_that_a_process_holds_is_not_deleted(
    store: StoredConversations, tmp_path: Path
) -> None:
    store.create(record(used_at=1.0))
    with Worker("open_conversation", tmp_path / "conversations", "c") as worker:
        assert worker.hear() == "holding"
        assert store.gc(30 * DAY_S) == 0
    assert store.get("c") is not None
    assert store.gc(30 * DAY_S) == 1


def test_a_damaged_list_of_threads_costs_only_the_threads(
    database: Database, store: StoredConversations
) -> None:
    store.create(msgspec.structs.replace(record(), lane_threads={"codex": "t"}))
    database.write(lambda c: c.execute("UPDATE conversations SET lane_threads = '{'"))
    assert store.get("c") == record()
