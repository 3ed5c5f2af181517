"""Two and ten real processes on one store."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from laneway.base.errors import IdentityHeld
from laneway.store.database import Database
from laneway.store.retention import Retention
from tests.store.support import Worker, entry, store_at

together = pytest.mark.parametrize("crowd", [2, 10])


@pytest.mark.covers("FR-20.1")
@together
def test_of_many_who_claim_one_identity_at_once_exactly_one_wins(tmp_path: Path, crowd: int) -> None:
    """And every loser is told the winner's process."""
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker("hold", tmp_path, "codex")) for _ in range(crowd)]
        assert [worker.hear() for worker in workers] == ["ready"] * crowd
        for worker in workers:
            worker.go()
        told = [worker.hear() for worker in workers]
        winners = [answer["won"] for answer in told if "won" in answer]
        assert len(winners) == 1
        assert [a for a in told if "won" not in a] == [{"held_by": winners[0]}] * (crowd - 1)
        assert winners[0] in [worker.pid for worker in workers]


def test_a_look_is_never_mistaken_for_a_holder(tmp_path: Path) -> None:
    """Looking tries the lock; a claim at that very instant must not fail."""
    store = store_at(tmp_path)
    store.claim("codex").release()
    with ExitStack() as stack:
        for watcher in [stack.enter_context(Worker("look", tmp_path)) for _ in range(3)]:
            watcher.hear()
        for _ in range(300):
            store.claim("codex").release()


@pytest.mark.covers("FR-20.1")
def test_an_identity_is_free_when_its_process_is_killed(tmp_path: Path) -> None:
    """Without anybody's help: what the killed one wrote about itself counts for nothing."""
    store = store_at(tmp_path)
    with Worker("hold", tmp_path, "codex") as worker:
        worker.hear()
        worker.go()
        worker.hear()
        holder = store.holder("codex")
        assert holder is not None
        assert (holder.pid, holder.agent_id) == (worker.pid, f"agent of {worker.pid}")
        with pytest.raises(IdentityHeld, match=f"process {worker.pid} since 20") as refused:
            store.claim("codex")
        assert refused.value.pid == worker.pid
        worker.kill()
    assert store.holder("codex") is None
    with store.claim("codex"):
        found = store.holder("codex")
        assert found is not None
        assert found.pid == os.getpid()


@pytest.mark.covers("FR-20.1")
def test_a_child_that_outlives_its_parent_does_not_keep_the_identity(tmp_path: Path) -> None:
    """Programs that we start must not inherit what we hold."""
    with Worker("parent", tmp_path) as worker:
        child = worker.hear()
        worker.kill()
        os.kill(child, 0)  # it lives
        assert store_at(tmp_path).holder("codex") is None
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        assert worker.rest() == []  # its end of the pipe is closed: it is gone


@pytest.mark.covers("FR-3.2")
def test_a_killed_process_leaves_its_session_to_be_shown_as_stale_and_written_when_claimed(
    tmp_path: Path,
) -> None:
    """Nothing is rewritten by looking."""
    store = store_at(tmp_path)
    path = store.layout.registry("codex")
    with Worker("write", tmp_path) as writer:
        writer.hear()
        writer.hear()
        assert [e.status for e in store.view().entries] == ["active"]
        writer.kill()
    left = path.read_bytes()
    assert [e.status for e in store.view().entries] == ["stale"]
    assert path.read_bytes() == left
    with store.claim("codex"):
        assert b'"status":"stale"' in path.read_bytes()


@pytest.mark.covers("FR-9.3")
@together
def test_many_appenders_lose_and_tear_nothing(tmp_path: Path, crowd: int) -> None:
    """While the files are put away under their hands."""
    lines = 400 // crowd
    with ExitStack() as stack:
        workers = [
            stack.enter_context(Worker("append", tmp_path, number, lines, 1500)) for number in range(crowd)
        ]
        for worker in workers:
            worker.hear()
        for worker in workers:
            worker.go()
        for worker in workers:
            assert worker.hear() == "done"
    audit = store_at(tmp_path, retention=Retention(audit_files=100)).audit
    page = audit.read()
    told = [line["prompt_summary"].split(":")[:2] for line in page.lines]
    assert page.damaged == 0
    assert sorted(told) == sorted([str(w), str(n)] for w in range(crowd) for n in range(lines))
    for writer in range(crowd):  # each one's own are in order
        assert [n for w, n in told if w == str(writer)] == [str(n) for n in range(lines)]
    assert len(list(tmp_path.glob("crew/audit.jsonl.*"))) > 20


@together
def test_many_processes_raise_one_number_in_the_database(tmp_path: Path, crowd: int) -> None:
    """They all open, and one of them makes, the same file."""
    path = tmp_path / "laneway.db"
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker("count", path, 20)) for _ in range(crowd)]
        for worker in workers:
            worker.hear()
        for worker in workers:
            worker.go()
        for worker in workers:
            assert worker.hear() == "done"
    with Database(path) as database:
        assert database.meta("n") == str(20 * crowd)


@pytest.mark.covers("FR-20.3")
def test_ten_processes_hold_ten_identities_beside_each_other(tmp_path: Path) -> None:
    """Each has its own registry; nobody's sessions are lost."""
    store = store_at(tmp_path)
    with ExitStack() as stack:
        for number in range(10):
            identity = "codex" if number == 0 else f"codex-{number + 1}"
            claim = stack.enter_context(store.claim(identity))
            claim.registry.update(entry(f"agent-{number}", claim.identity))
        with Worker("hold", tmp_path, "codex-7") as worker:
            worker.hear()
            worker.go()
            assert worker.hear() == {"held_by": os.getpid()}
        assert {e.agent_id for e in store.view().entries} == {f"agent-{n}" for n in range(10)}
