"""A team's store: claims, what everybody may see, what is kept aside, what is forgotten."""

from __future__ import annotations

import json
import os
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.base.errors import BadName, ClaimLost, FileDamaged, IdentityHeld, StoreError
from laneway.store.layout import CODEX_SESSIONS, sessions_root
from laneway.store.retention import Retention
from laneway.store.store import Store, StoreView
from laneway.store.summaries import MAX_SUMMARY_BYTES
from tests.adversary.odd_files import Maker, folder, not_regular, unreadable
from tests.store.support import WallClock, entry, event, store_at


def shown(store: Store) -> list[tuple[str, str]]:
    view = store.view()
    assert view.problems == ()
    return [(e.agent_id, e.status) for e in view.entries]


def old_session(agent_id: str, identity: str, status: str = "active") -> dict[str, Any]:
    return {
        "agent_id": agent_id, "identity": identity, "team": "crew", "thread_id": f"t-{agent_id}",
        "status": status, "started_at": "2026-02-18T11:00:00Z",
        "last_active": "2026-02-18T11:00:00Z", "thread_state": "idle",
    }  # fmt: skip


def put_old_registry(store: Store, *sessions: Any) -> bytes:
    store.layout.folder.mkdir(parents=True)
    store.layout.old_registry.write_text(json.dumps({"version": 1, "sessions": sessions}))
    return store.layout.old_registry.read_bytes()


# ── claims ─────────────────────────────────────────────────────────────────


@pytest.mark.covers("FR-5.3", "FR-6.4", "FR-9.3", "FR-20.1")
def test_everything_lies_where_the_seeds_say_and_is_for_us_alone(tmp_path: Path) -> None:
    """Files 0600, folders 0700."""
    with store_at(tmp_path / "root").claim("codex") as claim:
        claim.registry.update(entry("a"))
        claim.audit.append(event("hello"))
        claim.summaries.write("thread-1", "what was done")
    found = {
        str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")
    }
    assert found == {
        "root": 0o700,
        "root/crew": 0o700,
        "root/crew/.audit.lock": 0o600,
        "root/crew/.claims.lock": 0o600,
        "root/crew/audit.jsonl": 0o600,
        "root/crew/codex.lock": 0o600,
        "root/crew/codex": 0o700,
        "root/crew/codex/registry.json": 0o600,
        "root/crew/codex/thread-1": 0o700,
        "root/crew/codex/thread-1/summary.md": 0o600,
    }


def test_the_older_root_has_no_team_folder(tmp_path: Path) -> None:
    """As `codex-mcp` keeps it."""
    root = sessions_root(CODEX_SESSIONS, {"ATM_HOME": str(tmp_path)})
    with Store(root, "crew", flat=True).claim("codex") as claim:
        claim.registry.update(entry("a"))
        claim.audit.append(event())
    assert (tmp_path / ".config/atm/codex-sessions/codex/registry.json").exists()
    assert (tmp_path / ".config/atm/codex-sessions/audit.jsonl").exists()


def test_looking_at_a_store_makes_nothing(tmp_path: Path) -> None:
    """There is none yet, and there is none afterwards."""
    store = store_at(tmp_path / "root")
    assert store.view() == StoreView(())
    assert store.holder("codex") is None
    assert store.summary("codex", "t") is None
    assert store.audit.read().lines == ()
    assert store.prune().removed == ()
    assert list(tmp_path.iterdir()) == []


def test_an_identity_is_claimed_once_also_within_one_process(tmp_path: Path) -> None:
    """The lock says who and since when; release makes room, twice is harmless."""
    clock = WallClock()
    store = store_at(tmp_path, now=clock)
    claim = store.claim("codex", agent_id="a")
    claim.tell("b")
    note = json.loads(store.layout.lock("codex").read_text())
    assert note == {"pid": os.getpid(), "agent_id": "b", "started_at": "2026-02-18T12:00:00.123Z"}
    with pytest.raises(IdentityHeld) as held:
        store_at(tmp_path).claim("codex")
    assert (held.value.pid, held.value.agent_id, held.value.started_at) == tuple(note.values())
    claim.release()
    claim.release()
    assert store.layout.lock("codex").read_text() == ""
    store.claim("codex").release()


def test_a_lock_left_by_another_program_is_information_only(tmp_path: Path) -> None:
    """Nobody holds it: any text in it, also the number of a living process, is no conflict."""
    store = store_at(tmp_path)
    store.layout.folder.mkdir(parents=True)
    for text in (f'{{"pid":{os.getpid()},"agent_id":"codex:1"}}', "", "garbage", "[" * 5000):
        store.layout.lock("codex").write_text(text)
        assert store.holder("codex") is None
        store.claim("codex").release()


def test_a_claim_that_was_given_up_writes_nothing_more(tmp_path: Path) -> None:
    """Neither sessions nor summaries nor its name."""
    store = store_at(tmp_path)
    with store.claim("codex") as claim:
        claim.registry.update(entry("a"))
    before = store.layout.registry("codex").read_bytes()
    with pytest.raises(ClaimLost, match="given up"):
        claim.registry.update(entry("b"))
    with pytest.raises(ClaimLost, match="given up"):
        claim.summaries.write("t", "x")
    with pytest.raises(ClaimLost, match="given up"):
        claim.tell("b")
    assert store.layout.registry("codex").read_bytes() == before


def test_a_session_of_somebody_else_is_refused(tmp_path: Path) -> None:
    """By identity and by team."""
    with store_at(tmp_path).claim("codex") as claim:
        for other in (entry("a", "other"), msgspec.structs.replace(entry("a"), team="other")):
            with pytest.raises(StoreError, match="does not belong to codex in crew"):
                claim.registry.update(other)


def test_a_bad_name_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """For a team, an identity and a thread."""
    with pytest.raises(BadName):
        Store(tmp_path, "../crew")
    store = store_at(tmp_path / "root")
    with pytest.raises(BadName):
        store.claim("../codex")
    assert list(tmp_path.iterdir()) == []
    with store.claim("codex") as claim, pytest.raises(BadName):
        claim.summaries.write("../../t", "x")


# ── sessions ───────────────────────────────────────────────────────────────


@pytest.mark.covers("FR-3.2")
def test_an_active_session_is_shown_as_stale_as_soon_as_nobody_holds_its_identity(tmp_path: Path) -> None:
    """Shown, and not rewritten until it is claimed; the other states stay what they are."""
    store = store_at(tmp_path)
    path = store.layout.registry("codex")
    with store.claim("codex") as claim:
        claim.registry.update(entry("a"))
        claim.registry.update(entry("b", status="closed"))
        claim.registry.update(entry("c", status="interrupted"))
        assert shown(store) == [("a", "active"), ("b", "closed"), ("c", "interrupted")]
        written = path.read_bytes()
    stale = [("a", "stale"), ("b", "closed"), ("c", "interrupted")]
    assert shown(store) == stale
    assert path.read_bytes() == written
    with store.claim("codex") as claim:
        assert [(e.agent_id, e.status) for e in claim.registry.entries()] == stale
        assert path.read_bytes() == written.replace(b'"active"', b'"stale"')
        claim.registry.update(entry("a", backend_id="t"))
        assert shown(store)[0] == ("a", "active")
        found = claim.registry.get("a")
        assert found is not None
        assert found.backend_id == "t"


@pytest.mark.parametrize("content", [b"", b'{"version":1,"sess', b"\0" * 600])
def test_a_damaged_registry_is_shown_as_a_problem_and_kept_aside_by_its_owner(
    tmp_path: Path, content: bytes
) -> None:
    """Its bytes are never lost, and work goes on."""
    store = store_at(tmp_path, now=WallClock())
    path = store.layout.registry("codex")
    store.claim("codex").release()
    path.write_bytes(content)
    (problem,) = store.view().problems
    assert "is damaged" in problem
    assert path.read_bytes() == content
    with store.claim("codex") as claim:
        aside = path.with_name("registry.json.corrupt-20260218T120000Z")
        assert claim.reports == (
            f"{path} is damaged: it is not a registry of sessions. "
            f"It is kept as {aside.name}; a new registry begins.",
        )
        assert aside.read_bytes() == content
        claim.registry.update(entry("a"))
    assert shown(store) == [("a", "stale")]
    assert aside.read_bytes() == content


@unreadable
def test_an_odd_registry_is_one_identitys_problem_and_its_next_owner_puts_it_aside(
    tmp_path: Path, make: Maker
) -> None:
    """The others are listed as ever; nothing is waited for and nothing is lost."""
    store = store_at(tmp_path, now=WallClock())
    with store.claim("fine") as claim:
        claim.registry.update(entry("a", "fine"))
    store.claim("odd").release()
    path = store.layout.registry("odd")
    path.unlink(missing_ok=True)
    make(path)
    before = os.lstat(path)
    view = store.view()
    assert [e.agent_id for e in view.entries] == ["a"]
    assert len(view.problems) == 1
    assert str(path) in view.problems[0]
    with store.claim("odd") as claim:
        assert "kept as registry.json.corrupt-20260218T120000Z" in claim.reports[0]
        claim.registry.update(entry("b", "odd"))
    aside = path.with_name("registry.json.corrupt-20260218T120000Z")
    assert os.path.samestat(os.lstat(aside), before)
    assert sorted(shown(store)) == [("a", "stale"), ("b", "stale")]


@not_regular
def test_an_odd_thing_in_the_place_of_an_identity_is_nobodys_problem(tmp_path: Path, make: Maker) -> None:
    """What has no registry is no identity; who asks for it by name is told why not."""
    store = store_at(tmp_path)
    with store.claim("fine") as claim:
        claim.registry.update(entry("a", "fine"))
    make(store.layout.home("odd"))
    assert shown(store) == [("a", "stale")]
    if make is not folder:
        with pytest.raises(StoreError, match="something of another kind lies there"):
            store.claim("odd")


@not_regular
def test_an_odd_audit_log_keeps_nobody_from_working(tmp_path: Path, make: Maker) -> None:
    """It is told to whoever claims, and to whoever prunes."""
    store = store_at(tmp_path)
    store.claim("codex").release()
    make(store.layout.audit)
    with store.claim("codex") as claim:
        assert "audit.jsonl" in claim.reports[0]
        claim.registry.update(entry("a", status="closed"))
    pruned = store.prune()
    assert [e.agent_id for e in pruned.removed] == ["a"]
    assert len(pruned.problems) == 1
    assert "audit.jsonl" in pruned.problems[0]


@unreadable
def test_an_odd_summary_is_told_to_whoever_reads_it(tmp_path: Path, make: Maker) -> None:
    """And replaced by the next one, unless it is a folder."""
    store = store_at(tmp_path)
    with store.claim("codex") as claim:
        claim.summaries.write("t", "first")
        store.layout.summary("codex", "t").unlink()
        make(store.layout.summary("codex", "t"))
        with pytest.raises(FileDamaged):
            store.summary("codex", "t")
        if make is folder:
            with pytest.raises(StoreError, match="something of another kind lies there"):
                claim.summaries.write("t", "second")
        else:
            claim.summaries.write("t", "second")
            assert store.summary("codex", "t") == "second"


def test_a_registry_of_a_newer_laneway_is_kept_aside_too(tmp_path: Path) -> None:
    """Under a name that says so."""
    store = store_at(tmp_path, now=WallClock())
    path = store.layout.registry("codex")
    store.claim("codex").release()
    path.write_bytes(newer := b'{"version":2,"sessions":[],"more":1}')
    assert "newer Laneway (format 2" in store.view().problems[0]
    with store.claim("codex") as claim:
        assert "kept as registry.json.newer-20260218T120000Z" in claim.reports[0]
    assert path.with_name("registry.json.newer-20260218T120000Z").read_bytes() == newer


def test_the_old_team_wide_registry_is_shown_and_taken_over_by_identity(tmp_path: Path) -> None:
    """It is never written; what an identity took over and removed does not come back."""
    store = store_at(tmp_path, retention=Retention(session_age=None))
    sessions = old_session("1", "codex"), old_session("2", "other", "closed"), old_session("3", "../etc")
    before = put_old_registry(store, *sessions)
    assert sorted(shown(store)) == [("1", "stale"), ("2", "closed")]
    with store.claim("codex") as claim:
        (mine,) = claim.registry.entries()
        assert (mine.agent_id, mine.backend_id, mine.read("thread_state", str)) == ("1", "t-1", "idle")
        claim.registry.update(entry("new"))
        assert sorted(shown(store)) == [("1", "stale"), ("2", "closed"), ("new", "active")]
        claim.prune()
        assert sorted(shown(store)) == [("2", "closed"), ("new", "active")]
    assert sorted(e.agent_id for e in store.prune().removed) == ["2", "new"]
    assert shown(store) == []
    assert store.layout.old_registry.read_bytes() == before


def test_a_damaged_old_registry_is_reported_and_left_alone(tmp_path: Path) -> None:
    """It is another program's file."""
    store = store_at(tmp_path)
    store.layout.folder.mkdir(parents=True)
    store.layout.old_registry.write_text("{")
    assert len(store.view().problems) == 1
    with store.claim("codex") as claim:
        assert len(claim.reports) == 1
        claim.registry.update(entry("a", status="closed"))
    assert [e.agent_id for e in store.prune().removed] == ["a"]
    assert store.layout.old_registry.read_text() == "{"


# ── summaries ──────────────────────────────────────────────────────────────


def test_a_summary_is_read_back_and_an_empty_one_says_nothing(tmp_path: Path) -> None:
    """By its owner, and by everybody."""
    store = store_at(tmp_path)
    with store.claim("codex") as claim:
        claim.summaries.write("t", "first")
        claim.summaries.write("t", "second — ü")
        claim.summaries.write("blank", " \n")
        assert claim.summaries.read("t") == store.summary("codex", "t") == "second — ü"
        assert claim.summaries.read("blank") is claim.summaries.read("none") is None


def test_a_summary_that_is_too_long_is_cut_and_says_so(tmp_path: Path) -> None:
    """At a whole character."""
    with store_at(tmp_path).claim("codex") as claim:
        claim.summaries.write("t", "€" * MAX_SUMMARY_BYTES)
        text = claim.summaries.read("t")
    assert text is not None
    assert text.endswith("€\n\n[cut: the summary was too long]\n")
    assert MAX_SUMMARY_BYTES - 3 <= len(text.encode()) <= MAX_SUMMARY_BYTES


# ── forgetting ─────────────────────────────────────────────────────────────


def test_pruning_removes_closed_and_stale_sessions_with_their_summaries(tmp_path: Path) -> None:
    """Not those of a living process, not interrupted ones, and nothing else that lies about."""
    store = store_at(tmp_path)
    with store.claim("codex") as claim:
        for number, status in enumerate(("active", "closed", "interrupted")):
            claim.registry.update(entry(str(number), backend_id=f"t{number}", status=status))
            claim.summaries.write(f"t{number}", "done")
        other = store.layout.home("codex") / "t1" / "notes.txt"
        other.write_text("mine")
    with store.claim("live") as live:
        live.registry.update(entry("l", "live", status="closed"))
        pruned = store.prune()
        assert [e.agent_id for e in pruned.removed] == ["0", "1"]
        assert (pruned.in_use, pruned.problems) == (("live",), ())
        assert shown(store) == [("2", "interrupted"), ("l", "closed")]
        assert [e.agent_id for e in live.prune()] == ["l"]
    assert [store.summary("codex", f"t{n}") for n in range(3)] == [None, None, "done"]
    assert not store.layout.summary("codex", "t0").parent.exists()
    assert other.read_text() == "mine"


def test_pruning_by_age_leaves_the_younger(tmp_path: Path) -> None:
    """Also when the clock has gone back since."""
    clock = WallClock()
    store = store_at(tmp_path, now=clock)
    with store.claim("codex") as claim:
        claim.registry.update(entry("old", status="closed", last_active="2026-02-10T00:00:00Z"))
        claim.registry.update(entry("young", status="closed", last_active="2026-02-17T00:00:00Z"))
        clock.move(days=-30)
        assert claim.prune(timedelta(days=3)) == ()
        clock.move(days=30)
        assert [e.agent_id for e in claim.prune(timedelta(days=3))] == ["old"]
    assert shown(store) == [("young", "closed")]


def test_sessions_past_their_time_leave_when_their_identity_is_claimed(tmp_path: Path) -> None:
    """By setting; without one they stay for ever."""
    clock = WallClock()
    settings = Retention(session_age=timedelta(days=7))
    store = store_at(tmp_path, now=clock, retention=settings)
    with store.claim("codex") as claim:
        claim.registry.update(entry("a", last_active="2026-02-18T00:00:00Z"))
    clock.move(days=8)
    store_at(tmp_path, now=clock, retention=Retention(session_age=None)).claim("codex").release()
    assert shown(store) == [("a", "stale")]
    store.claim("codex").release()
    assert shown(store) == []


def test_the_number_of_sessions_is_bounded_by_setting(tmp_path: Path) -> None:
    """The longest ended goes, and its summary."""
    store = store_at(tmp_path, retention=Retention(max_sessions=2))
    with store.claim("codex") as claim:
        for number in range(4):
            claim.summaries.write(f"t{number}", "done")
            claim.registry.update(
                entry(str(number), backend_id=f"t{number}", status="closed", last_active=str(number))
            )
    assert shown(store) == [("2", "closed"), ("3", "closed")]
    assert [store.summary("codex", f"t{n}") is None for n in range(4)] == [True, True, False, False]
