"""Records of the core as entries of the registry, and back, with nothing lost on either side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import BadName, ClaimLost, IdentityHeld
from laneway.core.named.records import RESERVED, AuditLine, Record
from laneway.store.records import StoreRecords, entry_of, record_of
from laneway.store.registry import Entry
from laneway.store.store import Store
from tests.store.support import TEAM, WallClock

words = st.none() | st.text(max_size=20)
json_objects = st.dictionaries(st.text(max_size=5), st.integers(-5, 5) | st.text(max_size=5) | st.booleans())

records = st.builds(
    Record,
    agent_id=st.text(min_size=1, max_size=10),
    identity=st.just("codex"),
    team=st.just(TEAM),
    thread_id=words,
    cwd=words,
    branch=words,
    status=st.sampled_from(["active", "stale", "closed", "interrupted"]),
    state=st.sampled_from(["busy", "idle"]),
    tag=words,
    role=words,
    agent_name=words,
    agent_source=words,
    model=words,
    sandbox=words,
    approval_policy=words,
    effort=words,
    base_instructions=words,
    developer_instructions=words,
    config=json_objects,
    native=json_objects,
    ephemeral=st.booleans(),
    turns=st.integers(0, 10**6),
    tokens=st.integers(0, 10**12),
)


def at(root: Path) -> StoreRecords:
    return StoreRecords(Store(root, TEAM), now=WallClock())


@given(records)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    """Also what an entry has no field for."""
    assert record_of(entry_of(record)) == record


async def test_fr_5_3_a_record_lies_in_its_identitys_registry_and_comes_back(tmp_path: Path) -> None:
    """As another process sees it: active while it is claimed, stale once nobody is there."""
    mine = at(tmp_path)
    claim = await mine.claim("codex", "agent-1")
    record = Record(
        agent_id="agent-1", identity="codex", team=TEAM, thread_id="t", developer_instructions="dev", turns=3
    )
    await claim.put(record)
    assert (tmp_path / TEAM / "codex" / "registry.json").exists()
    assert (await at(tmp_path).view()).records == (record,)
    assert await claim.get("agent-1") == record
    assert await claim.get("agent-2") is None
    await claim.release()
    await claim.release()
    assert (await at(tmp_path).view()).records == (msgspec.structs.replace(record, status="stale"),)
    with pytest.raises(ClaimLost):
        await claim.put(msgspec.structs.replace(record, turns=4))


async def test_a_value_that_is_taken_back_does_not_return_from_the_file(tmp_path: Path) -> None:
    """Other programs' fields stay, ours follow the record."""
    claim = await at(tmp_path).claim("codex", None)
    full = Record(agent_id="a", identity="codex", team=TEAM, model="m", config={"x": 1})
    await claim.put(full)
    await claim.put(msgspec.structs.replace(full, model=None, config={}))
    assert await claim.get("a") == msgspec.structs.replace(full, model=None, config={})


async def test_entries_of_other_programs_are_read_and_their_fields_are_kept(tmp_path: Path) -> None:
    """The old names of fields, unknown ones, and values of a wrong type."""
    path = tmp_path / TEAM / "codex" / "registry.json"
    path.parent.mkdir(parents=True)
    entry: dict[str, Any] = {
        "agent_id": "a",
        "identity": "codex",
        "team": TEAM,
        "thread_id": "t",
        "status": "closed",
        "turns": "many",
        "state": "asleep",
        "colour": "red",
    }
    path.write_text(json.dumps({"version": 1, "sessions": [entry]}))
    mine = at(tmp_path)
    (record,) = (await mine.view()).records
    assert record == Record(agent_id="a", identity="codex", team=TEAM, thread_id="t", status="closed")
    claim = await mine.claim("codex", None)
    await claim.put(msgspec.structs.replace(record, turns=1))
    (written,) = json.loads(path.read_text())["sessions"]
    assert (written["colour"], written["turns"], written["state"]) == ("red", 1, "idle")


@pytest.mark.parametrize("name", [*sorted(RESERVED), "Team-Lead", "../x", "x@y", ""])
async def test_names_that_no_session_may_have_are_refused(tmp_path: Path, name: str) -> None:
    """By `check` and by `claim` alike."""
    mine = at(tmp_path)
    with pytest.raises(BadName):
        mine.check(name)
    with pytest.raises(BadName):
        await mine.claim(name, None)


async def test_fr_20_1_a_name_is_claimed_once_and_its_holder_is_told(tmp_path: Path) -> None:
    """Also within one process."""
    claim = await at(tmp_path).claim("codex", "agent-1")
    with pytest.raises(IdentityHeld) as held:
        await at(tmp_path).claim("codex", "agent-2")
    assert held.value.agent_id == "agent-1"
    await claim.release()
    await (await at(tmp_path).claim("codex", "agent-2")).release()


async def test_fr_6_4_a_summary_is_kept_by_identity_and_thread(tmp_path: Path) -> None:
    """The claim writes, everybody reads."""
    mine = at(tmp_path)
    claim = await mine.claim("codex", None)
    await claim.write_summary("t", "What I did.")
    assert await at(tmp_path).summary("codex", "t") == "What I did."
    assert await mine.summary("codex", "other") is None
    assert (tmp_path / TEAM / "codex" / "t" / "summary.md").read_text() == "What I did."


async def test_audit_lines_are_added_in_their_order(tmp_path: Path) -> None:
    """Cut and redacted by the log itself."""
    line = AuditLine(event_type="codex", agent_id="a", identity="codex", prompt_summary="x" * 300)
    await at(tmp_path).audit([line, msgspec.structs.replace(line, event_type="turn_done", prompt_summary="")])
    found = Store(tmp_path, TEAM).audit.read().lines
    assert [(each["event_type"], len(each.get("prompt_summary", ""))) for each in found] == [
        ("codex", 200),
        ("turn_done", 0),
    ]


def test_the_time_is_told_as_the_files_tell_it(tmp_path: Path) -> None:
    """UTC, milliseconds, Z; the team is the store's."""
    assert at(tmp_path).now() == "2026-02-18T12:00:00.123Z"
    assert at(tmp_path).team == TEAM


def test_all_fields_of_a_record_have_their_place_in_the_file() -> None:
    """A field that is added to one and forgotten in the other would be lost silently."""
    entry = entry_of(Record(agent_id="a", identity="i", team="t"))
    written = {*Entry.__struct_fields__, *entry.extra} - {"extra"}
    renamed = {"thread_id": "backend_id", "effort": "reasoning_effort"}
    assert {renamed.get(name, name) for name in Record.__struct_fields__} == written
