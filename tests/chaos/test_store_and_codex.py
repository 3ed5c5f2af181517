"""A colleague with a memory is killed at random instants, under load; so is its Codex."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from laneway.store.store import Store
from laneway.testing.processes import wait_gone
from laneway.testing.rehearse import Rehearsal, rehearsal
from laneway.wire.guardian import descendants
from tests.chaos.colleague import ME
from tests.core.support import until

ROUNDS = 150 if os.environ.get("LANEWAY_CHAOS") else 6
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.covers("NFR-2")
@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_whatever_is_killed_the_store_is_whole_and_the_next_start_goes_on(tmp_path: Path) -> None:
    """Registry readable, audit whole, lock free, nothing left running, the same thread taken up again."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    store = Store(tmp_path, "default")
    told = 0
    async with rehearsal() as here:
        for number in range(ROUNDS):
            async with asyncio.timeout(60):
                process = await start(here, tmp_path)
                told += await live(process, chance)
                tree = [process.pid, *descendants(process.pid)]
                process.kill()
                rest, _ = await process.communicate()
                told += rest.count(b"turn ")
                for pid in tree:
                    await wait_gone(pid)
                # A kill between fork and exec leaves the lock with the fork until its exec, an instant later.
                await until(lambda: store.holder(ME) is None)
            check_store(store, told, f"seed {seed}, round {number}")


async def start(here: Rehearsal, root: Path) -> Process:
    env = {**os.environ, "CODEX_HOME": str(here.home), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.chaos.colleague",
        str(root),
        str(here.work),
        stdout=PIPE,
        env=env,
        cwd=ROOT,
    )


async def live(process: Process, chance: random.Random) -> int:
    """Let it work for a while, and now and then shoot its Codex; return the turns that it told of."""
    assert process.stdout is not None
    assert (await process.stdout.readline()).startswith(b"up ")
    turns = chance.randrange(4)
    for _ in range(turns):
        if chance.random() < 0.3:
            shoot_codex(process.pid)
        assert (await process.stdout.readline()).startswith(b"turn ")
    for _ in range(chance.randrange(300)):
        await asyncio.sleep(0)
    return turns


def shoot_codex(root: int) -> None:
    for pid in descendants(root):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"/codex") and b"app-server" in words:
            os.kill(pid, signal.SIGKILL)


def check_store(store: Store, told: int, where: str) -> None:
    view = store.view()
    assert view.problems == (), where
    assert {entry.status for entry in view.entries} == {"stale"}, where
    audit = store.audit.read(identity=ME)
    assert audit.damaged == 0, where
    assert len(audit.lines) >= told, where
    # A thread that has completed a turn is taken up again for ever after.
    assert len({line["thread_id"] for line in audit.lines if line["outcome"] == "completed"}) <= 1, where
