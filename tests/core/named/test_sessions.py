"""Opening a session under a name: who gets it, what is on the disk, what a failure leaves (FR-2, 3, 5)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import (
    BadName,
    EngineRefused,
    IdentityHeld,
    IdentityTaken,
    LimitReached,
    SessionClosed,
    SessionUnknown,
    StoreError,
)
from laneway.core.named.opening import Opening
from laneway.core.named.session import NamedSession
from laneway.core.ports import ThreadSpec
from tests.core.named.support import ME, TEAM, stage
from tests.core.support import until


async def test_fr_5_2_a_new_session_is_on_the_disk_with_all_its_fields_before_open_returns(
    tmp_path: Path,
) -> None:
    """Its thread is known at once, and so is all that a resume needs."""
    async with stage(tmp_path) as here:
        spec = ThreadSpec(
            cwd=tmp_path,
            model="m",
            sandbox="read-only",
            approval_policy="never",
            base_instructions="base",
            developer_instructions="dev",
            config={"a": {"b": 1}},
        )
        opening = Opening(spec=spec, tag="t", role="r", agent_name="n", agent_source="s.md", effort="high")
        named = await here.sessions.open(ME, opening)
        (entry,) = here.entries()
        assert entry.pop("started_at") == entry.pop("last_active") == entry.pop("last_active_at")
        assert entry == {
            "agent_id": named.agent_id,
            "identity": "codex",
            "team": TEAM,
            "backend": "codex",
            "backend_id": "thread-1",
            "thread_id": "thread-1",
            "repo_root": None,
            "repo_name": None,
            "branch": None,
            "cwd": str(tmp_path),
            "status": "active",
            "state": "idle",
            "tag": "t",
            "role": "r",
            "agent_name": "n",
            "agent_source": "s.md",
            "model": "m",
            "sandbox": "read-only",
            "approval_policy": "never",
            "reasoning_effort": "high",
            "base_instructions": "base",
            "developer_instructions": "dev",
            "config": {"a": {"b": 1}},
            "native": {},
            "ephemeral": False,
            "is_empty": True,
            "tools": [],
            "turns": 0,
            "tokens": 0,
        }


async def test_fr_2_5_of_twenty_opens_with_one_name_exactly_one_wins(tmp_path: Path) -> None:
    """The others are told who has it, also while the winner is still being started."""
    async with stage(tmp_path, limit=100) as here:
        here.engine.hold_starts = asyncio.Event()
        opens = [asyncio.ensure_future(here.open("worker")) for _ in range(20)]
        await until(lambda: sum(each.done() for each in opens) == 19)
        here.engine.hold_starts.set()
        results: list[Any] = await asyncio.gather(*opens, return_exceptions=True)
        (winner,) = [result for result in results if isinstance(result, NamedSession)]
        losers = [result for result in results if isinstance(result, IdentityTaken)]
        assert len(losers) == 19
        assert {(error.identity, error.agent_id) for error in losers} == {("worker", winner.agent_id)}
        assert [entry["agent_id"] for entry in here.entries("worker")] == [winner.agent_id]


async def test_fr_2_5_without_a_name_the_default_and_its_numbers_are_taken(tmp_path: Path) -> None:
    """Also by many at once; a number that is free again is taken again."""
    async with stage(tmp_path, default_identity="dev") as here:
        found = await asyncio.gather(*(here.open() for _ in range(4)))
        assert sorted(named.identity for named in found) == ["dev", "dev-2", "dev-3", "dev-4"]
        await here.sessions.close(ME, identity="dev-3")
        assert (await here.open()).identity == "dev-3"


@pytest.mark.parametrize("name", ["team-lead", "user", "system", "main", "Main", "../x", "a@b", "", ".x"])
async def test_a_name_that_nobody_may_have_is_refused_and_nothing_is_made(tmp_path: Path, name: str) -> None:
    """Reserved names and names that are paths: not even a folder comes of them."""
    async with stage(tmp_path) as here:
        with pytest.raises(BadName):
            await here.open(name)
        assert not os.listdir(tmp_path)
        assert here.engine.threads == {}


async def test_fr_20_1_a_name_that_another_process_holds_is_refused_with_its_session(tmp_path: Path) -> None:
    """Two processes on one folder: one has the name, the other hears whose it is, and may take a number."""
    command = [sys.executable, "-m", "tests.core.named.support", str(tmp_path), "codex"]
    pipe = asyncio.subprocess.PIPE
    other = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert other.stdout is not None
    assert other.stdin is not None
    try:
        holder = json.loads(await other.stdout.readline())["agent_id"]
        async with stage(tmp_path) as here:
            with pytest.raises(IdentityHeld) as held:
                await here.open("codex")
            assert (held.value.agent_id, held.value.pid) == (holder, other.pid)
            with pytest.raises(IdentityHeld):
                await here.sessions.resume(ME, agent_id=holder)
            with pytest.raises(IdentityHeld):
                await here.sessions.close(ME, agent_id=holder)
            assert (await here.open()).identity == "codex-2"
            rows = (await here.sessions.sessions(ME)).rows
            assert {(row.identity, row.status, row.is_mine) for row in rows} == {
                ("codex", "active", False),
                ("codex-2", "active", True),
            }
            other.kill()
            await other.wait()
            assert (await here.open("codex")).identity == "codex"
            assert [entry["status"] for entry in here.entries()] == ["stale", "active"]
    finally:
        if other.returncode is None:
            other.kill()
        await other.wait()
        other.stdin.close()


async def test_a_reserved_name_stays_ours_between_its_sessions(tmp_path: Path) -> None:
    """Claimed at the start, held by nobody else until the end; its sessions come and go."""
    async with stage(tmp_path) as here, stage(tmp_path) as elsewhere:
        await here.sessions.reserve("codex")
        await here.sessions.reserve("codex")
        with pytest.raises(IdentityHeld):
            await elsewhere.sessions.reserve("codex")
        for _ in range(2):
            named = await here.open()
            assert named.identity == "codex"
            with pytest.raises(IdentityHeld) as held:
                await elsewhere.open("codex")
            assert held.value.agent_id == named.agent_id
            with pytest.raises(IdentityTaken):
                await here.open("codex")
            await here.sessions.close(ME, identity="codex")
            async with here.sessions.holding("codex") as claim:
                assert (await claim.get(named.agent_id)) is not None
        with pytest.raises(IdentityHeld):
            await elsewhere.open("codex")
        await here.sessions.shutdown()
        assert (await elsewhere.open("codex")).identity == "codex"


async def test_a_name_can_be_used_for_the_time_of_a_call(tmp_path: Path) -> None:
    """As mail does: free before, free after; refused while somebody else has it."""
    async with stage(tmp_path) as here, stage(tmp_path) as elsewhere:
        async with here.sessions.holding("a"):
            with pytest.raises(IdentityHeld):
                await elsewhere.open("a")
        await elsewhere.open("a")
        with pytest.raises(IdentityHeld):
            async with here.sessions.holding("a"):
                raise AssertionError("never here")


async def test_fr_3_3_the_limit_counts_live_sessions_only(tmp_path: Path) -> None:
    """One too many is refused and binds nothing; a closed one makes room."""
    async with stage(tmp_path, limit=2) as here:
        await here.open("a")
        await here.open("b")
        with pytest.raises(LimitReached):
            await here.open("c")
        assert here.store.holder("c") is None
        await here.sessions.close(ME, identity="a")
        assert (await here.open("c")).identity == "c"
        assert (here.sessions.status().active, here.sessions.status().limit) == (2, 2)


async def test_fr_3_4_a_start_that_fails_leaves_nothing_bound(tmp_path: Path) -> None:
    """Neither name nor lock nor place nor entry."""
    async with stage(tmp_path, limit=1) as here:
        here.engine.refuse_with = EngineRefused("thread/start", -1, "no")
        with pytest.raises(EngineRefused):
            await here.open("a")
        assert (here.store.holder("a"), here.entries("a"), here.sessions.live()) == (None, [], [])
        here.engine.refuse_with = None
        assert (await here.open("a")).identity == "a"


async def test_fr_3_4_a_start_that_is_cancelled_leaves_nothing_bound(tmp_path: Path) -> None:
    """Wherever it stands when its caller goes away."""
    async with stage(tmp_path, limit=1) as here:
        here.engine.hold_starts = asyncio.Event()
        for turns_of_the_loop in range(12):
            start = asyncio.ensure_future(here.open("a"))
            for _ in range(turns_of_the_loop):
                await asyncio.sleep(0)
            start.cancel()
            with pytest.raises(asyncio.CancelledError):
                await start
            assert here.store.holder("a") is None
        start = asyncio.ensure_future(here.open("a"))
        await until(lambda: here.store.holder("a") and here.sessions.hub._reserved)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        here.engine.hold_starts.set()
        assert (await here.open("a")).identity == "a"
        assert len(here.entries("a")) == 1


async def test_an_entry_that_cannot_be_written_is_a_failed_start(tmp_path: Path) -> None:
    """The thread is given back, too: nobody will ever ask for it."""
    async with stage(tmp_path, limit=1) as here:
        with pytest.raises(StoreError):
            await here.open("a", developer_instructions="x" * 2_000_000)
        assert (here.store.holder("a"), here.entries("a")) == (None, [])
        assert here.engine.threads["thread-1"].is_released
        assert (await here.open("a")).identity == "a"


async def test_a_session_is_found_by_its_owner_under_any_of_its_names(tmp_path: Path) -> None:
    """And by nobody else."""
    async with stage(tmp_path) as here:
        named = await here.open("a")
        find = here.sessions.find
        assert find(ME, agent_id=named.agent_id) is named
        assert find(ME, thread_id=named.thread_id) is named
        assert find(ME, identity="a") is named
        for wrong in ({"agent_id": "x"}, {"thread_id": "x"}, {"identity": "b"}):
            with pytest.raises(SessionUnknown):
                find(ME, **wrong)
        with pytest.raises(SessionUnknown):
            find("somebody else", identity="a")
        with pytest.raises(SessionUnknown):
            await here.sessions.resume("somebody else", agent_id=named.agent_id)
        with pytest.raises(SessionUnknown):
            await here.sessions.close("somebody else", agent_id=named.agent_id)


async def test_without_persistence_threads_are_ephemeral_and_not_resumable(tmp_path: Path) -> None:
    """The entry says so, and a resume is refused in words."""
    async with stage(tmp_path, persist=False) as here:
        named = await here.open()
        assert here.engine.specs[-1].ephemeral
        await here.turn(named)
        await here.sessions.close(ME, agent_id=named.agent_id)
        (row,) = (await here.sessions.sessions(ME)).rows
        assert (row.status, row.resumable) == ("closed", False)
        with pytest.raises(SessionClosed, match="was not kept"):
            await here.sessions.resume(ME, agent_id=named.agent_id)
