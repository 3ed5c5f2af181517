"""Kills at random instants: a few rounds in `make test`, hundreds in `make chaos`."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from contextlib import suppress

import pytest

from laneway.base.errors import EngineLost
from laneway.core.model import TurnDone, TurnStarted
from laneway.testing.processes import wait_gone
from laneway.wire.guardian import descendants
from tests.cli.support import start_python
from tests.codex.support import only, play, real, say

ROUNDS = 300 if os.environ.get("LANEWAY_CHAOS") else 6
SCRIPT = (
    "%think hm",
    "%stream 30 words over 0.2 seconds",
    "%run echo one; echo two",
    "%patch f.txt x",
    "%say done",
)
SLEEPERS = "%run setsid sleep 600 & sleep 600"


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_codex_killed_at_random_instants_never_costs_a_turn_its_end() -> None:
    """One start, one end, in every round; and the same thread goes on."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with real(deadline_s=1700) as here:
        session = await here.session()
        await play(session, "%say hello")
        killed = 0
        for number in range(ROUNDS + 1):
            (here.rehearsal.work / "f.txt").unlink(missing_ok=True)
            turn = say(session, *SCRIPT)
            # Somewhere in the part of the turn that is this round's: few rounds hit every part, too.
            part = range(60 * number // ROUNDS, 60 * (number + 1) // ROUNDS)
            after = chance.choice(part) if number < ROUNDS else -1
            events = []
            async for event in turn.events:
                events.append(event)
                if len(events) == after:
                    pid = (await here.rehearsal.engine.link()).pid
                    assert pid is not None
                    os.kill(pid, signal.SIGKILL)
            where = f"seed {seed}, round {number}, after {after} events"
            try:
                killed += (await turn.result()).status == "failed"
            except EngineLost:
                # The kill behind the last event of one turn hits the next before it has begun.
                assert only(events, TurnStarted) == [], where
                continue
            assert len(only(events, TurnStarted)) == len(only(events, TurnDone)) == 1, where
            assert isinstance(events[-1], TurnDone), where
        assert killed > ROUNDS // 4, "the kills must hit"
        _, last = await play(session, "%say still here")
        assert last.text == "still here", f"seed {seed}"
        assert len(here.hub.sessions("me")) == 1


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_laneway_killed_at_random_instants_leaves_nothing_running() -> None:
    """Our own SIGKILL, at any point from the first line of Python to the last."""
    chance = random.Random()
    for _ in range(ROUNDS // 2):
        async with asyncio.timeout(60):
            process = await start_python(
                "ask", "--rehearse", "-s", "danger-full-access", "-a", "never", SLEEPERS
            )
            tree: set[int] = set()
            for _ in range(chance.randrange(400)):
                tree |= set(descendants(process.pid))
                await asyncio.sleep(0)
            with suppress(ProcessLookupError):  # it may have come to its end
                process.kill()
            await process.communicate()
            for pid in tree:
                await wait_gone(pid)
