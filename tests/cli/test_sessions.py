"""`laneway sessions` and `laneway summary`: what is kept, shown and pruned."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from laneway.app.stores import retention
from laneway.base.settings import load
from laneway.cli.sessions import MAX_SHOWN
from laneway.store.layout import sessions_root
from laneway.store.registry import Entry
from laneway.store.retention import Retention
from laneway.store.store import Store
from tests.cli.support import laneway

OLD = "2020-01-01T00:00:00.000Z"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "ATM_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "CODEX_HOME": str(tmp_path / "codex"),
        "TZ": "Asia/Tokyo",
    }


@pytest.fixture
def store(env: dict[str, str]) -> Store:
    return Store(sessions_root(environment=env), "default")


def keep(store: Store, identity: str, status: str, **fields: object) -> None:
    entry = {"agent_id": f"codex:{identity}", "backend_id": f"thread-{identity}", **fields}
    with store.claim(identity) as claim:
        claim.registry.update(Entry(identity=identity, team="default", status=status, **entry))  # type: ignore[arg-type]


@pytest.mark.covers("FR-13.5")
async def test_sessions_are_listed_with_what_they_are(store: Store, env: dict[str, str]) -> None:
    """One whose process is gone is shown as stale, and nothing is written."""
    keep(store, "ann", "active", cwd="/w", branch="main")
    keep(store, "bob", "closed")
    ran = await laneway("sessions", "--json", env=env)
    told = json.loads(ran.out)
    assert ran.code == 0
    assert {(s["identity"], s["status"]) for s in told["sessions"]} == {("ann", "stale"), ("bob", "closed")}
    only = json.loads((await laneway("sessions", "--json", "--identity", "bob", env=env)).out)
    assert [s["agent_id"] for s in only["sessions"]] == ["codex:bob"]
    stale = await laneway("sessions", "--status", "stale", env=env)
    assert "/w (main)" in stale.out
    assert "bob" not in stale.out


async def test_people_see_the_latest_and_what_is_live_and_programs_see_all(
    store: Store, env: dict[str, str]
) -> None:
    """The others are counted, and `--all` shows them."""
    with store.claim("crowd") as claim, store.claim("live") as live:
        for number in range(60):
            claim.registry.update(
                Entry(
                    agent_id=f"codex:{number:02}",
                    identity="crowd",
                    team="default",
                    status="closed",
                    last_active=f"2026-01-01T00:00:{number:02}.000Z",
                )
            )
        live.registry.update(
            Entry(agent_id="codex:live", identity="live", team="default", last_active="2025-01-01T00:00:00Z")
        )
        ran = await laneway("sessions", env=env)
        whole = await laneway("sessions", "--all", env=env)
        told = json.loads((await laneway("sessions", "--json", env=env)).out)["sessions"]
    head, *rows, last = [line.split() for line in ran.out.splitlines()]
    assert head[:3] == ["NAME", "FROM", "STATE"]
    # Namesakes are told apart by the end of their ids.
    crowd = [["crowd", f"codex:{number:02}"[-8:], "mcp"] for number in range(59, 59 - MAX_SHOWN, -1)]
    assert [row[:3] for row in rows] == [*crowd, ["live", "mcp", "idle"]]
    assert " ".join(last) == f"{61 - len(rows)} more: --all"
    assert len(whole.out.splitlines()) - 1 == len(told) == 61
    assert "more: --all" not in whole.out


async def test_people_see_local_time_and_programs_utc(store: Store, env: dict[str, str]) -> None:
    """Four in the morning of the next day in Tokyo."""
    keep(store, "ann", "closed", last_active="2026-01-01T20:00:00.000Z")
    assert "2026-01-02" in (await laneway("sessions", env=env)).out
    (told,) = json.loads((await laneway("sessions", "--json", env=env)).out)["sessions"]
    assert told["last_active"] == "2026-01-01T20:00:00.000Z"


async def test_a_session_in_use_is_active_and_survives_a_pruning(store: Store, env: dict[str, str]) -> None:
    """What nobody holds goes; transcripts are never touched."""
    keep(store, "ann", "closed")
    with store.claim("bob") as claim:
        claim.registry.update(Entry(agent_id="codex:bob", identity="bob", team="default"))
        told = json.loads((await laneway("sessions", "--json", env=env)).out)
        assert {(s["identity"], s["status"]) for s in told["sessions"]} == {
            ("ann", "closed"),
            ("bob", "active"),
        }
        pruned = json.loads((await laneway("sessions", "--prune", "--json", env=env)).out)
        assert [s["identity"] for s in pruned["removed"]] == ["ann"]
        assert pruned["in_use"] == ["bob"]
    assert {entry.identity for entry in store.view().entries} == {"bob"}


async def test_pruning_by_age_keeps_what_is_young(store: Store, env: dict[str, str]) -> None:
    """Counted from when it was last active."""
    keep(store, "old", "closed", last_active=OLD, started_at=OLD)
    keep(store, "young", "closed")
    ran = await laneway("sessions", "--prune", "--older-than", "30", env=env)
    assert (ran.code, ran.out) == (0, "1 session removed: old.\n")
    assert {entry.identity for entry in store.view().entries} == {"young"}


def test_retention_settings_become_what_the_store_keeps(tmp_path: Path) -> None:
    """Zero days keep things for ever."""
    variables = {"LANEWAY_SESSION_AGE_DAYS": "0", "LANEWAY_AUDIT_AGE_DAYS": "7", "LANEWAY_AUDIT_FILES": "2"}
    kept = retention(load({}, variables, tmp_path, tmp_path))
    assert (kept.session_age, kept.audit_age, kept.audit_files) == (None, timedelta(days=7), 2)
    assert retention(load({}, {}, tmp_path, tmp_path)) == Retention()


async def test_a_damaged_registry_is_told_and_the_others_are_shown(store: Store, env: dict[str, str]) -> None:
    """With an exit code that says so."""
    keep(store, "ann", "closed")
    keep(store, "bob", "closed")
    store.layout.registry("bob").write_text("{ torn")
    ran = await laneway("sessions", env=env)
    assert ran.code == 1
    assert "ann" in ran.out
    assert str(store.layout.registry("bob")) in ran.err


@pytest.mark.covers("FR-13.6")
async def test_a_summary_is_found_by_agent_or_thread(store: Store, env: dict[str, str]) -> None:
    """And what has none is one sentence."""
    keep(store, "ann", "closed")
    with store.claim("ann") as claim:
        claim.summaries.write("thread-ann", "All done.\n")
    for name in ("codex:ann", "thread-ann"):
        assert (await laneway("summary", name, env=env)).out.strip() == "All done."
    keep(store, "bob", "closed")
    assert (
        await laneway("summary", "codex:bob", env=env)
    ).err == "laneway: Session codex:bob left no summary.\n"
    missing = await laneway("summary", "codex:none", env=env)
    assert (missing.code, missing.err.count("\n")) == (2, 1)
    assert "There is no session codex:none in team default" in missing.err


async def test_an_empty_team_says_so(env: dict[str, str]) -> None:
    """Nothing is made by looking."""
    ran = await laneway("sessions", "--team", "nobody", env=env)
    assert (ran.code, ran.out) == (0, "No sessions in team nobody.\n")
    assert not sessions_root(environment=env).exists()
    bad = await laneway("sessions", "--team", "../up", env=env)
    assert bad.code != 0
    assert bad.err.count("\n") == 1
