"""Writers killed at random instants: a few rounds in `make test`, hundreds in `make chaos`."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from laneway.core.conversations import InputState
from laneway.store.conversation_locks import ConversationLockFiles
from laneway.store.conversations import StoredConversations
from laneway.store.database import Database
from laneway.store.retention import Retention
from tests.store.support import Worker, store_at

ROUNDS = 300 if os.environ.get("LANEWAY_CHAOS") else 12


def run_and_kill(worker: Worker, chance: random.Random) -> int:
    """Let it work for a while, kill it somewhere in a round; the last number that it called safe."""
    assert worker.hear() == "ready"
    safe: int = 0
    for _ in range(chance.randrange(15)):
        safe = worker.hear()
    for _ in range(chance.randrange(30_000)):
        pass  # so that the kill falls anywhere in a round
    worker.kill()
    told: list[int] = [safe, *worker.rest()]
    return max(told)


@pytest.mark.covers("FR-5.3", "FR-5.5", "NFR-2")
@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_writer_killed_at_any_instant_leaves_everything_whole(tmp_path: Path) -> None:
    """The registry is the old one or the new one, the audit has every line, the lock is free."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for number in range(ROUNDS):
        root = tmp_path / str(number)
        where = f"seed {seed}, round {number}"
        with Worker("write", root) as worker:
            safe = run_and_kill(worker, chance)
        store = store_at(root, retention=Retention(session_age=None))
        assert store.holder("codex") is None, where
        view = store.view()
        assert view.problems == (), where
        tags = [int(e.tag or "") for e in view.entries]
        assert tags in ([safe] if safe else [], [safe + 1]), where
        page = store.audit.read()
        lines = [int(line["prompt_summary"]) for line in page.lines]
        assert lines in (list(range(1, safe + 1)), list(range(1, safe + 2))), where
        assert page.damaged <= 1, where  # of the line that nobody was told about
        summary = store.summary("codex", "thread")
        assert summary in (None if safe == 0 else f"{safe} " * 50, f"{safe + 1} " * 50), where
        with store.claim("codex") as claim:
            assert claim.reports == (), where
            assert list(root.rglob("*.laneway-tmp")) == [], where


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_database_whose_writer_is_killed_keeps_what_was_called_safe(tmp_path: Path) -> None:
    """Also while the file is being made."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    for number in range(ROUNDS // 2):
        path = tmp_path / f"{number}.db"
        where = f"seed {seed}, round {number}"
        with Worker("increase", path) as worker:
            safe = run_and_kill(worker, chance)
        with Database(path) as database:
            assert int(database.meta("n") or 0) in (safe, safe + 1), where
            assert database.check() == (), where
            assert database.reports == (), where


@pytest.mark.chaos
@pytest.mark.timeout(1800)
def test_a_conversation_whose_process_is_killed_keeps_every_message_it_took(tmp_path: Path) -> None:
    """The outputs, too, without a gap; and the conversation is free for the next process."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    states: tuple[InputState, ...] = ("waiting", "begun")
    for number in range(ROUNDS // 2):
        path = tmp_path / str(number) / "laneway.db"
        where = f"seed {seed}, round {number}"
        with Worker("converse", path) as worker:
            safe = run_and_kill(worker, chance)
        locks = ConversationLockFiles(path.parent / "conversations")
        locks.hold("c")()
        with Database(path) as database:
            assert database.check() == (), where
            store = StoredConversations(database, locks)
            taken = store.inputs("c", states)
            assert [int(each.message_id) for each in taken] == list(range(1, len(taken) + 1)), where
            assert len(taken) in (safe, safe + 1), where
            assert {each.state for each in taken[:safe]} <= {"begun"}, where
            assert {each.message == b"words " + each.message_id.encode() for each in taken} <= {True}, where
            outputs = [each.number for each in store.outputs("c", 0, 100_000)]
            assert outputs == list(range(1, len(outputs) + 1)), where
            assert len(outputs) in (safe, safe + 1), where
