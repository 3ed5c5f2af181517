"""Finding a live session: by any of its names, or a plain word why not."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, create_subprocess_exec
from pathlib import Path
from typing import Literal

import pytest

from laneway.base.errors import UsageError, WireBroken
from laneway.cli.live_sessions import find
from laneway.doors.local.socket_files import listen
from laneway.store.registry import Entry
from laneway.store.store import Store
from tests.cli.watching import places
from tests.doors.local.support import local_stage


def keep(store: Store, identity: str, status: Literal["active", "closed"]) -> None:
    with store.claim(identity) as claim:
        claim.registry.update(
            Entry(
                agent_id=f"agent_{identity}",
                backend_id=f"thread-{identity}",
                identity=identity,
                team=store.team,
                status=status,
            )
        )


async def test_what_does_not_run_is_told_with_the_way_to_go_on(tmp_path: Path, run: Path) -> None:
    """Stale, closed, unknown."""
    store = Store(tmp_path, "crew")
    keep(store, "ann", "active")
    keep(store, "bob", "closed")
    for who, says in {
        "ann": "does not run: its process is gone. To go on with it, call the `codex` tool with agent_id "
        "agent_ann, or start `laneway mcp --identity ann --resume agent_ann`.",
        "thread-bob": "does not run: it is closed. What it reported: `laneway summary agent_bob`.",
        "carl": "There is no session carl in team crew: see `laneway sessions`.",
        "../etc": "There is no session ../etc in team crew",
    }.items():
        with pytest.raises(UsageError) as caught:
            await find(store, who, environment=places(run))
        assert says in str(caught.value)


async def test_a_process_that_does_not_answer_is_named(tmp_path: Path, run: Path) -> None:
    """One that has a socket and is silent, and one that has none."""
    store = Store(tmp_path, "crew")
    keep(store, "bob", "closed")
    with store.claim("ann") as claim:
        claim.registry.update(Entry(agent_id="agent_ann", identity="ann", team="crew"))
        with pytest.raises(WireBroken) as caught:
            await find(store, "ann", environment=places(run))
        assert f"Process {os.getpid()} runs ann but cannot be reached" in str(caught.value)
        listening, _ = listen(places(run))
        with listening:
            with pytest.raises(WireBroken) as caught:
                await find(store, "agent_ann", environment=places(run), answer_s=0.05)
            assert f"Process {os.getpid()} runs ann and did not answer within 0.05 s." in str(caught.value)
            with pytest.raises(WireBroken) as caught:
                await find(store, "carl", environment=places(run), answer_s=0.05)
            assert f"may run it: {os.getpid()}" in str(caught.value)
            with pytest.raises(UsageError, match="it is closed"):
                await find(store, "bob", environment=places(run), answer_s=0.05)


SILENT = """
import sys
from laneway.doors.local.socket_files import listen
listening, path = listen()
print(path, flush=True)
sys.stdin.read()
"""


async def test_whoever_hangs_is_not_waited_for_if_another_holds_the_session(
    tmp_path: Path, run: Path
) -> None:
    """Another process has a socket and never answers; the lock says who runs the session."""
    async with local_stage(tmp_path, run) as home:
        ann = await home.here.open("ann")
        silent = await create_subprocess_exec(
            sys.executable, "-c", SILENT, env={**os.environ, **home.environment}, stdin=PIPE, stdout=PIPE
        )
        try:
            assert silent.stdout is not None
            assert await silent.stdout.readline()
            async with asyncio.timeout(20):
                for who in ("ann", ann.agent_id):
                    found = await find(home.here.store, who, environment=home.environment, answer_s=3600)
                    assert found.info.agent_id == ann.agent_id
        finally:
            silent.kill()
            await silent.communicate()


async def test_one_name_in_two_teams_is_told_apart(tmp_path: Path, run: Path) -> None:
    """By the team; by an id without it."""
    async with local_stage(tmp_path / "a", run) as home:
        ann = await home.here.open("ann")
        with pytest.raises(UsageError):
            await find(Store(tmp_path / "b", "other"), "ann", environment=home.environment)
        by_id = await find(Store(tmp_path / "b", "other"), ann.agent_id, environment=home.environment)
        assert by_id.info.team == "crew"
        async with local_stage(tmp_path / "c", run) as second:
            other = await second.here.open("ann")
            # Both are `ann` of `crew`, under different homes: whoever holds the lock of ours is meant,
            # and here that is the same process for both.
            with pytest.raises(UsageError) as caught:
                await find(home.here.store, "ann", environment=home.environment)
            for agent_id in (ann.agent_id, other.agent_id):
                assert agent_id in str(caught.value)
