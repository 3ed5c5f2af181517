"""A session comes back: under its id and name, on its thread, with what it reported (FR-6, 16.3, 17.7)."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from laneway.base.errors import EngineRefused, IdentityTaken, SessionUnknown, ThreadUnknown
from laneway.core.named.closer import SUMMARY_PROMPT
from laneway.core.named.opening import Opening
from laneway.core.ports import ThreadSpec
from laneway.store.records import StoreRecords
from laneway.store.registry import Entry
from laneway.store.stamps import stamp, utc_now
from laneway.store.store import Store
from tests.core.named.support import ME, TEAM, stage, texts
from tests.core.support import until


async def leave_behind(root: Path, **spec: object) -> str:
    """A session with one turn and a summary, whose process has ended in order."""
    async with stage(root, summaries=True) as here:
        said = ThreadSpec(cwd=root, **spec)  # type: ignore[arg-type]
        named = await here.sessions.open(ME, Opening(spec=said, identity="codex", effort="high"))
        await here.turn(named)
        here.thread(named).replies[SUMMARY_PROMPT] = "I fixed the gate."
        return named.agent_id


def leave_two(root: Path, when: datetime) -> None:
    """As a killed process leaves them: marked active, and nobody there."""
    with Store(root, TEAM).claim("codex") as claim:
        for number in (1, 2):
            active = stamp(when + timedelta(seconds=number))
            claim.registry.update(
                Entry(
                    agent_id=f"agent-{number}",
                    identity="codex",
                    team=TEAM,
                    cwd="/",
                    backend_id=f"thread-{number}",
                    last_active=active,
                )
            )


async def test_a_session_that_nothing_was_said_in_gets_another_thread_where_its_own_was_never_written(
    tmp_path: Path,
) -> None:
    """Its process was killed before its first turn: same id, same name, and all that it was opened with."""
    async with stage(tmp_path, summaries=False) as here:
        await here.open("other")
        named = await here.open("dev", sandbox="read-only", developer_instructions="dev")
        agent_id, thread_id = named.agent_id, named.thread_id
    async with stage(tmp_path, summaries=False) as here:
        here.engine.unknown.add(thread_id)
        named = await here.sessions.resume(ME, agent_id=agent_id)
        assert (named.agent_id, named.identity) == (agent_id, "dev")
        assert named.thread_id != thread_id
        spec = here.engine.specs[-1]
        assert (spec.cwd, spec.sandbox, spec.developer_instructions) == (tmp_path, "read-only", "dev")
        (entry,) = here.entries("dev")
        assert (entry["thread_id"], entry["is_empty"]) == (named.thread_id, True)
        await here.turn(named)
    async with stage(tmp_path, summaries=False) as here:
        here.engine.unknown.add(named.thread_id)
        with pytest.raises(ThreadUnknown):
            await here.sessions.resume(ME, agent_id=agent_id)


async def test_fr_6_2_fr_16_3_a_session_of_a_former_process_is_resumed_with_all_it_had(
    tmp_path: Path,
) -> None:
    """Same id, same name, same thread, and what its caller had asked for is sent again."""
    (tmp_path / "work").mkdir()
    spec = ThreadSpec(
        cwd=tmp_path,
        backend="codex",
        model="m",
        sandbox="read-only",
        approval_policy="never",
        base_instructions="base",
        developer_instructions="dev",
        config={"a": 1},
        native={"personality": "friendly"},
    )
    fields = {name: getattr(spec, name) for name in spec.__struct_fields__ if name not in ("cwd", "tools")}
    agent_id = await leave_behind(tmp_path, **fields)
    async with stage(tmp_path) as here:
        (row,) = (await here.sessions.sessions(ME)).rows
        assert (row.status, row.resumable) == ("closed", True)
        named = await here.sessions.resume(ME, agent_id=agent_id)
        assert (named.agent_id, named.identity) == (agent_id, "codex")
        assert here.engine.resumed == [("thread-1", spec)]
        assert here.store.holder("codex") is not None
        (entry,) = here.entries()
        assert (entry["status"], entry["developer_instructions"]) == ("active", "dev")
        await here.turn(named)
        assert here.thread(named).started[0][1].effort == "high"


async def test_fr_6_1_fr_6_4_the_saved_summary_goes_in_front_of_the_first_turn_only(tmp_path: Path) -> None:
    """It lies where the seed says, and the model reads it once."""
    agent_id = await leave_behind(tmp_path)
    summary = tmp_path / TEAM / "codex" / "thread-1" / "summary.md"
    assert summary.read_text() == "I fixed the gate."
    async with stage(tmp_path) as here:
        named = await here.sessions.resume(ME, identity="codex")
        assert named.agent_id == agent_id
        assert await here.sessions.summary(agent_id) == "I fixed the gate."
        await here.turn(named, "go on")
        preface, words = texts(here.thread(named))
        assert "I fixed the gate." in preface
        assert words == "go on"
        await here.turn(named, "and on")
        assert texts(here.thread(named)) == ["and on"]
        await here.sessions.close(ME, agent_id=agent_id)
        prompts = [line["prompt_summary"] for line in here.audit() if line["event_type"] == "codex"]
        assert prompts == ["work", "go on", "and on"]


async def test_a_first_turn_that_never_ran_keeps_the_summary_for_the_next(tmp_path: Path) -> None:
    """Refused by Codex, it has reached no model."""
    agent_id = await leave_behind(tmp_path)
    async with stage(tmp_path) as here:
        named = await here.sessions.resume(ME, agent_id=agent_id)
        here.thread(named).refuse_with = EngineRefused("turn/start", -1, "no")
        with pytest.raises(EngineRefused):
            await here.sessions.say(named, "a").result()
        here.thread(named).refuse_with = None
        await here.turn(named, "b")
        assert "I fixed the gate." in texts(here.thread(named))[0]


async def test_fr_6_3_without_a_summary_a_session_is_resumed_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a kill."""
    store = Store(tmp_path, TEAM)
    with store.claim("codex") as claim:
        claim.registry.update(
            Entry(agent_id="agent-1", identity="codex", team=TEAM, backend_id="thread-9", cwd=str(tmp_path))
        )
    async with stage(tmp_path) as here:
        with caplog.at_level(logging.WARNING):
            named = await here.sessions.resume(ME, agent_id="agent-1")
        assert "There is no summary of agent-1" in caplog.text
        await here.turn(named, "go on")
        assert texts(here.thread(named)) == ["go on"]


async def test_fr_3_2_sessions_of_a_killed_process_are_stale_and_can_be_resumed(tmp_path: Path) -> None:
    """Nothing is rewritten by looking; a name can be used anew all the same."""
    leave_two(tmp_path, utc_now())
    async with stage(tmp_path) as here:
        rows = (await here.sessions.sessions(ME)).rows
        assert [(row.agent_id, row.status, row.resumable) for row in rows] == [
            ("agent-2", "stale", True),
            ("agent-1", "stale", True),
        ]
        assert {entry["status"] for entry in here.entries()} == {"active"}
        latest = await here.sessions.resume(ME, identity="codex")
        assert latest.agent_id == "agent-2"
        with pytest.raises(IdentityTaken) as taken:
            await here.sessions.resume(ME, agent_id="agent-1")
        assert taken.value.agent_id == "agent-2"
        with pytest.raises(IdentityTaken):
            await here.open("codex")
        await here.sessions.close(ME, agent_id="agent-2")
        by_thread = await here.sessions.resume(ME, thread_id="thread-1")
        assert by_thread.agent_id == "agent-1"


async def test_a_session_that_is_listed_can_be_resumed_however_old_it_is(tmp_path: Path) -> None:
    """To claim its name makes the store forget what is too old, but not what was asked for."""
    leave_two(tmp_path, utc_now() - timedelta(days=1000))
    Store(tmp_path, TEAM).layout.summary("codex", "thread-1").parent.mkdir(parents=True)
    Store(tmp_path, TEAM).layout.summary("codex", "thread-1").write_text("long ago")
    async with stage(tmp_path) as here:
        named = await here.sessions.resume(ME, agent_id="agent-1")
        await here.turn(named, "go on")
        preface, _ = texts(here.thread(named))
        assert "long ago" in preface
        assert [(entry["agent_id"], entry["status"]) for entry in here.entries()] == [("agent-1", "active")]


async def test_a_live_session_is_resumed_as_it_is(tmp_path: Path) -> None:
    """By any of its names; its thread is not touched."""
    async with stage(tmp_path) as here:
        named = await here.open("a")
        resume = here.sessions.resume
        assert await resume(ME, agent_id=named.agent_id) is named
        assert await resume(ME, thread_id=named.thread_id) is named
        assert await resume(ME, identity="a") is named
        assert here.engine.resumed == []


async def test_many_resumes_at_once_make_one_session(tmp_path: Path) -> None:
    """Also when the one who asked first goes away."""
    agent_id = await leave_behind(tmp_path)
    async with stage(tmp_path) as here:
        here.engine.hold_starts = asyncio.Event()
        asked = [asyncio.ensure_future(here.sessions.resume(ME, agent_id=agent_id)) for _ in range(10)]
        await until(lambda: here.sessions.hub._reserved)
        asked[0].cancel()
        here.engine.hold_starts.set()
        found = await asyncio.gather(*asked[1:])
        assert len({id(named) for named in found}) == 1
        assert len(here.engine.resumed) == 1
        with pytest.raises(asyncio.CancelledError):
            await asked[0]


async def test_a_resume_during_a_close_waits_and_then_resumes(tmp_path: Path) -> None:
    """It is neither refused nor handed a session that is about to end."""
    async with stage(tmp_path) as here:
        old = await here.open("a")
        await here.turn(old)
        closing = asyncio.ensure_future(here.sessions.close(ME, identity="a"))
        await until(lambda: old.ending)
        new = await here.sessions.resume(ME, agent_id=old.agent_id)
        assert (await closing).status == "closed"
        assert (new is old, new.agent_id, new.state) == (False, old.agent_id, "idle")


async def test_a_resume_that_codex_refuses_leaves_the_session_as_it_was(tmp_path: Path) -> None:
    """And its name free."""
    agent_id = await leave_behind(tmp_path)
    async with stage(tmp_path) as here:
        here.engine.refuse_with = EngineRefused("thread/resume", -1, "no")
        before = here.entries()
        with pytest.raises(EngineRefused):
            await here.sessions.resume(ME, agent_id=agent_id)
        assert here.entries() == before
        assert here.store.holder("codex") is None


async def test_what_nobody_knows_cannot_be_resumed(tmp_path: Path) -> None:
    """Neither by id nor by thread nor by name."""
    async with stage(tmp_path) as here:
        with pytest.raises(SessionUnknown):
            await here.sessions.resume(ME, agent_id="x")
        with pytest.raises(SessionUnknown):
            await here.sessions.resume(ME, thread_id="x")
        with pytest.raises(SessionUnknown):
            await here.sessions.resume(ME, identity="x")


async def test_changes_hold_for_this_life_and_the_next(tmp_path: Path) -> None:
    """What the caller wants different is sent and kept."""
    agent_id = await leave_behind(tmp_path, model="old", developer_instructions="dev")
    async with stage(tmp_path) as here:
        await here.sessions.resume(ME, agent_id=agent_id, changes={"model": "new"})
        ((_, spec),) = here.engine.resumed
        assert (spec.model, spec.developer_instructions) == ("new", "dev")
    kept = await StoreRecords(Store(tmp_path, TEAM)).view()
    assert [record.model for record in kept.records] == ["new"]
