"""An identity has one holder, whatever becomes of its files."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from laneway.base.errors import ClaimLost, IdentityHeld, StoreError
from laneway.store.store import Store
from tests.adversary.odd_files import Maker, not_regular
from tests.store.support import Worker, entry, store_at


def sessions(store: Store) -> list[tuple[str, str]]:
    view = store.view()
    assert view.problems == ()
    return [(e.agent_id, e.status) for e in view.entries]


@contextmanager
def held_by_an_older_version(path: Path) -> Iterator[None]:
    """Which locks the file and knows of nothing else."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(fd, b'{"pid":4711,"agent_id":"theirs","started_at":"2026-02-18T12:00:00.000Z"}\n')
        yield
    finally:
        os.close(fd)


def remove_the_lock_file(store: Store) -> None:
    store.layout.lock("codex").unlink()


def remove_the_home(store: Store) -> None:
    shutil.rmtree(store.layout.home("codex"))


def remove_all_locks(store: Store) -> None:
    for path in store.layout.folder.glob("*.lock"):
        path.unlink()
    for path in store.layout.folder.glob(".*.lock"):
        path.unlink()


def replace_the_lock_file(store: Store) -> None:
    store.layout.lock("codex").unlink()
    store.layout.lock("codex").write_text("mine now\n")


removals = pytest.mark.parametrize(
    "remove",
    [remove_the_lock_file, remove_the_home, remove_all_locks, replace_the_lock_file],
    ids=lambda remove: remove.__name__,
)
Removal = Callable[[Store], None]


@removals
def test_removing_the_files_of_a_held_identity_makes_no_room_for_a_second(
    tmp_path: Path, remove: Removal
) -> None:
    """Neither in this process nor in another one, and everybody still sees that it is held."""
    store = store_at(tmp_path)
    with store.claim("codex", agent_id="first") as claim:
        claim.registry.update(entry("a"))
        remove(store)
        assert store.holder("codex") is not None
        with pytest.raises(IdentityHeld):
            store_at(tmp_path).claim("codex")
        with Worker("hold", tmp_path, "codex") as worker:
            worker.hear()
            worker.go()
            assert "held_by" in worker.hear()
        claim.registry.update(entry("b"))
        claim.summaries.write("thread", "still ours")
        assert sessions(store) == [("a", "active"), ("b", "active")]
    with store.claim("codex") as after:
        assert [e.agent_id for e in after.registry.entries()] == ["a", "b"]


@removals
def test_a_holder_puts_back_what_was_removed_with_its_next_write(tmp_path: Path, remove: Removal) -> None:
    """With its name in it, so that others learn again who it is."""
    store = store_at(tmp_path)
    with store.claim("codex", agent_id="first") as claim:
        claim.registry.update(entry("a"))
        remove(store)
        claim.registry.update(entry("b"))
        note = json.loads(store.layout.lock("codex").read_text())
        assert (note["pid"], note["agent_id"]) == (os.getpid(), "first")
        with pytest.raises(IdentityHeld, match=f"process {os.getpid()}"):
            store_at(tmp_path).claim("codex")
        assert sessions(store) == [("a", "active"), ("b", "active")]


def test_a_holder_whose_whole_folder_was_removed_makes_it_again(tmp_path: Path) -> None:
    """With all that it knows, where nobody else came meanwhile."""
    store = store_at(tmp_path / "root")
    with store.claim("codex") as claim:
        claim.registry.update(entry("a"))
        shutil.rmtree(tmp_path / "root")
        claim.registry.update(entry("b"))
        assert sessions(store) == [("a", "active"), ("b", "active")]
        with pytest.raises(IdentityHeld):
            store.claim("codex")


def test_a_holder_whose_folder_somebody_else_made_anew_writes_nothing_more(tmp_path: Path) -> None:
    """Neither while the other one is there nor after: the sessions are not its own any more."""
    store = store_at(tmp_path / "root")
    with store.claim("codex") as first:
        first.registry.update(entry("ours"))
        shutil.rmtree(tmp_path / "root")
        with store.claim("codex") as second:
            second.registry.update(entry("theirs"))
            writes: list[Callable[[], None]] = [
                lambda: first.registry.update(entry("ours again")),
                lambda: first.summaries.write("thread", "x"),
                lambda: first.tell("me"),
            ]
            for write in writes:
                with pytest.raises(ClaimLost, match="removed or replaced"):
                    write()
        with pytest.raises(ClaimLost, match="removed or replaced"):
            first.registry.update(entry("ours again"))
        assert sessions(store) == [("theirs", "stale")]
    with store.claim("codex") as third:
        assert [e.agent_id for e in third.registry.entries()] == ["theirs"]


def test_what_somebody_else_wrote_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    """It came and went while our files were gone: its lock is free, but the registry is not ours."""
    store = store_at(tmp_path / "root")
    with store.claim("codex") as first:
        first.registry.update(entry("ours"))
        shutil.rmtree(tmp_path / "root")
        with store.claim("codex") as second:
            second.registry.update(entry("theirs"))
        first.summaries.write("thread", "taken again, by a write of another kind")
        for _ in range(2):
            with pytest.raises(ClaimLost, match="written by another process"):
                first.registry.update(entry("ours again"))
        assert [e.agent_id for e in store.view().entries] == ["theirs"]


def test_an_older_version_and_this_one_keep_each_other_out(tmp_path: Path) -> None:
    """It locks the file alone, and looks at nothing else."""
    store = store_at(tmp_path)
    path = store.layout.lock("codex")
    store.claim("codex").release()
    with held_by_an_older_version(path):
        with pytest.raises(IdentityHeld, match="process 4711 since 2026-02-18") as held:
            store.claim("codex")
        assert held.value.agent_id == "theirs"
        found = store.holder("codex")
        assert found is not None
        assert found.pid == 4711
    with store.claim("codex"), pytest.raises(BlockingIOError), held_by_an_older_version(path):
        pass


def test_a_holder_that_an_older_version_has_displaced_writes_nothing_more(tmp_path: Path) -> None:
    """It does not know of the lock on the folder: what we can do is to leave its registry alone."""
    store = store_at(tmp_path)
    with store.claim("codex") as claim:
        claim.registry.update(entry("a"))
        store.layout.lock("codex").unlink()
        with held_by_an_older_version(store.layout.lock("codex")):
            before = store.layout.registry("codex").read_bytes()
            with pytest.raises(ClaimLost, match="removed or replaced"):
                claim.registry.update(entry("b"))
        with pytest.raises(ClaimLost, match="removed or replaced"):
            claim.registry.update(entry("b"))
        assert store.layout.registry("codex").read_bytes() == before


@pytest.mark.parametrize("crowd", [2, 6])
def test_however_often_lock_files_are_removed_one_process_holds_the_identity(
    tmp_path: Path, crowd: int
) -> None:
    """All want it at once while somebody removes all that is called a lock."""
    store = store_at(tmp_path)
    store.claim("codex").release()
    for _ in range(3):
        with ExitStack() as stack:
            workers = [stack.enter_context(Worker("hold", tmp_path, "codex")) for _ in range(crowd)]
            for worker in workers:
                worker.hear()
            for worker in workers:
                worker.go()
                remove_all_locks(store)
            outcomes = [worker.hear() for worker in workers]
            assert len([outcome for outcome in outcomes if "won" in outcome]) == 1, outcomes
            assert store.holder("codex") is not None
        assert store.holder("codex") is None


def test_an_identity_is_free_when_its_holder_is_killed_without_its_files(tmp_path: Path) -> None:
    """The lock on the folder goes with the process, too."""
    store = store_at(tmp_path)
    with Worker("hold", tmp_path, "codex") as worker:
        worker.hear()
        worker.go()
        assert "won" in worker.hear()
        remove_all_locks(store)
        with pytest.raises(IdentityHeld):
            store.claim("codex")
        worker.kill()
    assert store.holder("codex") is None
    store.claim("codex").release()


@not_regular
def test_an_odd_lock_file_is_one_identitys_problem(tmp_path: Path, make: Maker) -> None:
    """Told in a sentence; the others work and are listed."""
    store = store_at(tmp_path)
    with store.claim("fine") as claim:
        claim.registry.update(entry("a", "fine"))
    with store.claim("odd") as claim:
        claim.registry.update(entry("b", "odd"))
    store.layout.lock("odd").unlink()
    make(store.layout.lock("odd"))
    with pytest.raises(StoreError, match=r"odd\.lock: something of another kind lies there"):
        store.claim("odd")
    view = store.view()
    assert [e.agent_id for e in view.entries] == ["a"]
    assert len(view.problems) == 1
    assert "odd.lock" in view.problems[0]


@not_regular
def test_an_odd_gate_is_a_sentence_and_holds_nobody_up(tmp_path: Path, make: Maker) -> None:
    """Nobody can be sure who is who then; one sentence, however many identities there are."""
    store = store_at(tmp_path)
    for identity in ("one", "two"):
        with store.claim(identity) as claim:
            claim.registry.update(entry(identity, identity))
    store.layout.claims_gate.unlink()
    make(store.layout.claims_gate)
    with pytest.raises(StoreError, match="something of another kind lies there"):
        store.claim("one")
    assert len(store.view().problems) == 1
