"""Which rollbacks are in force, and what they leave of the credits."""

from __future__ import annotations

from pathlib import Path

import msgspec

from laneway.jobs.attribution import Credits, PathClaim, Span
from laneway.jobs.given_back import in_force, rolled_back, without_failed_attempts
from laneway.jobs.rollback.changes import RollbackRecord
from laneway.jobs.rollback.model import Outcome, RollbackJournal
from laneway.jobs.snapshots.model import ABSENT, PathState
from tests.jobs.trees import Tree

NEW = PathState("file", 0o644, blob="new")


def journal(name: str, **more: int | str) -> RollbackJournal:
    facts = {"tree": "/repo", "algorithm": "sha1", "made_at": 0.0, "operations": (), "jobs": ("A",), **more}
    return RollbackJournal(rollback_id=name, **facts)  # type: ignore[arg-type]


def span(interval: int) -> Span:
    return Span(interval, ABSENT, NEW, "patch")


def test_an_undone_rollback_is_not_in_force_and_neither_is_one_that_was_given_up() -> None:
    done, given_up = Outcome(ending="done"), Outcome(ending="given up")
    records = [
        RollbackRecord(journal("one"), done),
        RollbackRecord(journal("two", undoes="one"), done),
        RollbackRecord(journal("three"), done),
        RollbackRecord(journal("four", undoes="three"), given_up),
        RollbackRecord(journal("five"), None),
    ]
    assert [each.rollback_id for each in in_force(records)] == ["three"]


def test_only_what_was_edited_before_a_failed_attempt_was_given_back_is_dropped() -> None:
    """By the borders of the run, not by a clock: those before it had four, with three intervals."""
    found = Credits((PathClaim("A", "x", "patch", (span(0), span(2), span(4))),), ())
    attempt = journal("one", attempt_borders=4)
    (left,) = without_failed_attempts(found, [attempt]).claims
    assert [each.interval for each in left.spans] == [4]
    assert rolled_back([attempt]) == frozenset()
    whole = journal("two")
    assert without_failed_attempts(found, [whole]) == found
    assert rolled_back([whole]) == {"A"}


def test_rollbacks_keep_their_order_when_the_clock_is_set_back(tmp_path: Path) -> None:
    """Else an undo would come before what it undoes, and be undone by it."""
    tree = Tree(tmp_path)
    tree.write("a.txt", "one")
    tree.commit("first")
    before = tree.snapshot()
    tree.write("a.txt", "two")
    first = tree.roll_back(before).rollback_id
    second = tree.rollbacks.undo(first).rollback_id
    path = tree.rollbacks.folder / second / "journal.json"
    undo = msgspec.json.decode(path.read_bytes(), type=RollbackJournal)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(undo, made_at=1.0)))
    assert [each.journal.rollback_id for each in tree.rollbacks.records()] == [first, second]
    assert in_force(tree.rollbacks.records()) == ()
