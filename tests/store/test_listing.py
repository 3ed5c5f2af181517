"""Registries read for listing: quickly, once each, with the same result as `decode`."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laneway.base.errors import FileDamaged, FileNewer, StoreError
from laneway.core.named.records import Record
from laneway.store import listing
from laneway.store.gates import gate
from laneway.store.listing import EXTRA_KINDS, SETTLED_S, Listing, SessionRow, row_of, rows_in
from laneway.store.records import entry_of, record_of, record_of_row
from laneway.store.registry import KNOWN, RegistryContent, decode
from laneway.store.store import Store
from tests.store.support import TEAM

values: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.sampled_from(["active", "closed", "stale", "busy", ""]),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
names = st.sampled_from([*KNOWN, *EXTRA_KINDS, "codex_id", "thread_id", "last_active_at", "colour"])
whole: dict[str, Any] = {"agent_id": "a", "identity": "codex", "team": TEAM}
rows = st.dictionaries(names, values, max_size=6).map(lambda fields: {**whole, **fields}) | values
files = st.fixed_dictionaries(
    {"version": st.sampled_from([0, 1, 2, "1"]), "sessions": st.lists(rows, max_size=3)}
)


def as_book(data: bytes) -> Any:
    try:
        return tuple(map(row_of, decode(data, "file").entries))
    except StoreError as problem:
        return type(problem), str(problem)


def as_rows(data: bytes) -> Any:
    try:
        return tuple(map(bare, rows_in(data, "file")))
    except StoreError as problem:
        return type(problem), str(problem)


def bare(row: SessionRow) -> SessionRow:
    """Without the names that only stand in for others."""
    return msgspec.structs.replace(row, thread_id=None, last_active_at=None)


@settings(max_examples=400, deadline=None)
@given(files | values)
def test_whatever_stands_in_a_registry_is_read_as_a_book_would_read_it(file: Any) -> None:
    """Also files of other programs, of a newer Laneway, and damaged ones."""
    data = json.dumps(file).encode()
    assert as_rows(data) == as_book(data)


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"version":1,"sessions":[]}\xff', b'{"version":1,"sessions":["\xff"]}']
)
def test_bytes_that_are_no_text_are_damage_here_too(data: bytes) -> None:
    with pytest.raises(FileDamaged):
        rows_in(data, "file")
    with pytest.raises(FileNewer):
        rows_in(b'{"version":2,"sessions":[]}', "file")


def test_a_row_gives_the_record_that_was_written() -> None:
    record = Record(
        agent_id="a", identity="codex", team=TEAM, thread_id="t", status="closed", turns=3, effort="low"
    )
    (row,) = rows_in(RegistryContent().put(entry_of(record)).render(), "file")
    assert record_of_row(row) == record == record_of(entry_of(record))
    assert row.entry == msgspec.structs.replace(entry_of(record), extra={})


# ── remembered ─────────────────────────────────────────────────────────────


def written(path: Path, *agent_ids: str, age_s: float = 60.0) -> str:
    """A registry that was written some time ago. Its change time is now: nobody can set that."""
    content = RegistryContent()
    for agent_id in agent_ids:
        content = content.put(
            entry_of(Record(agent_id=agent_id, identity="codex", team=TEAM, status="closed"))
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.render())
    now = path.stat().st_mtime
    os.utime(path, (now - age_s, now - age_s))
    return str(path)


def ids(found: tuple[SessionRow, ...] | None) -> list[str]:
    assert found is not None
    return [row.agent_id for row in found]


def later() -> float:
    """The time when files that were just written have settled."""
    return time.time() + 2 * SETTLED_S


def test_a_file_that_stays_the_same_is_read_once(tmp_path: Path) -> None:
    seen = Listing(later)
    path = written(tmp_path / "registry.json", "a")
    first = seen.rows(path)
    assert seen.rows(path) is first
    assert seen.remembered == 1


def test_a_file_that_was_just_written_is_read_again(tmp_path: Path) -> None:
    """A second change within a tick of the clock must not be missed."""
    seen = Listing()
    path = written(tmp_path / "registry.json", "a", age_s=0)
    assert (ids(seen.rows(path)), seen.remembered) == (["a"], 0)


def test_a_change_is_seen_and_so_is_the_end(tmp_path: Path) -> None:
    """Also one that changes neither length nor time: the file is another one."""
    seen = Listing(later)
    path = written(tmp_path / "registry.json", "a")
    assert ids(seen.rows(path)) == ["a"]
    other = written(tmp_path / "other.json", "b")
    stamp = os.stat(path).st_mtime_ns
    os.utime(other, ns=(stamp, stamp))
    os.replace(other, path)
    assert ids(seen.rows(path)) == ["b"]
    os.unlink(path)
    assert (seen.rows(path), seen.remembered) == (None, 0)


def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Listing(later)
    paths = [written(tmp_path / str(number) / "registry.json", "a") for number in range(4)]
    monkeypatch.setattr(listing, "MAX_REMEMBERED_BYTES", 2 * os.stat(paths[0]).st_size)
    assert [ids(seen.rows(path)) for path in paths] == [["a"]] * 4
    assert seen.remembered == 2
    seen.keep_only({paths[1]})
    assert seen.remembered == 1
    assert ids(seen.rows(paths[3])) == ["a"]
    assert seen.remembered == 2


def test_a_registry_larger_than_it_was_is_read_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "registry.json", *(f"agent-{number:04}" for number in range(500)))
    assert listing._read(Path(path), 0) == Path(path).read_bytes()


# ── the store ──────────────────────────────────────────────────────────────


def test_closed_sessions_are_listed_without_asking_any_lock(tmp_path: Path) -> None:
    """Whoever holds the gate of all locks keeps nobody from looking; asking a lock would wait for it."""
    store = Store(tmp_path, TEAM)
    with store.claim("ann") as claim:
        for number, status in enumerate(("closed", "interrupted", "stale")):
            record = Record(agent_id=f"a{number}", identity="ann", team=TEAM, status=status)  # type: ignore[arg-type]
            claim.registry.update(entry_of(record))
    with gate(store.layout.claims_gate):
        assert [entry.status for entry in store.view().entries] == ["closed", "interrupted", "stale"]


def test_what_others_do_meanwhile_is_seen_by_the_next_look(tmp_path: Path) -> None:
    """Also in a store that has looked before: live, then stale, then closed, then gone."""
    store, other = Store(tmp_path, TEAM), Store(tmp_path, TEAM)
    store._listing = Listing(later)
    seen = []
    with other.claim("ann") as claim:
        record = Record(agent_id="a", identity="ann", team=TEAM)
        claim.registry.update(entry_of(record))
        seen += [entry.status for entry in store.view().entries]
    seen += [entry.status for entry in store.view().entries]
    with other.claim("ann") as claim:
        claim.registry.update(entry_of(msgspec.structs.replace(record, status="closed")))
        seen += [entry.status for entry in store.view().entries]
    other.prune()
    assert seen == ["active", "stale", "closed"]
    assert store.view().entries == ()
