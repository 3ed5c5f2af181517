"""Codex dies: who is told, and who may start another (FR-11)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from laneway.base.errors import EngineLost
from laneway.core.named.closer import SUMMARY_PROMPT
from tests.core.named.support import ME, stage, texts
from tests.core.support import until


async def test_fr_11_2_never_means_that_everything_after_a_death_is_refused(tmp_path: Path) -> None:
    """With the signal's name; running and waiting turns are answered; health says so."""
    async with stage(tmp_path, restart="never") as here:
        named = await here.open("a")
        await here.turn(named)
        await here.sessions.close(ME, agent_id=(await here.open("b")).agent_id)
        running = await here.busy(named)
        waiting = here.sessions.say(named, "later")
        here.engine.die("killed by SIGKILL")
        failure = (await running.result()).failure
        assert failure is not None
        assert failure.kind == "engine_lost"
        with pytest.raises(EngineLost, match="SIGKILL"):
            await waiting.result()
        for _ in range(2):
            with pytest.raises(EngineLost, match="SIGKILL"):
                here.sessions.say(named, "hello?")
            with pytest.raises(EngineLost, match="SIGKILL"):
                await here.open("c")
            with pytest.raises(EngineLost, match="SIGKILL"):
                await here.sessions.resume(ME, identity="b")
        health = here.sessions.status()
        assert (health.child_alive, health.child_ended) == (False, "killed by SIGKILL")
        assert here.engine.resumed == []
        assert here.store.holder("c") is None


async def test_fr_11_1_a_death_while_nothing_is_open_is_told_to_the_next_caller(tmp_path: Path) -> None:
    """Nobody was there to hear it."""
    async with stage(tmp_path, restart="never") as here:
        await here.open("a")
        await here.sessions.close(ME, identity="a")
        here.engine.die("exit code 3")
        with pytest.raises(EngineLost, match="exit code 3"):
            await here.open("a")


async def test_reported_means_that_one_caller_is_told_and_the_next_one_is_served(tmp_path: Path) -> None:
    """Each death anew, and the sessions that lived through it come back too."""
    async with stage(tmp_path, restart="reported") as here:
        named = await here.open("a")
        for _ in range(2):
            here.engine.die("exit code 1")
            with pytest.raises(EngineLost):
                await here.open("b")
            assert not here.sessions.status().child_alive
            await here.turn(named, "are you there?")
            assert here.sessions.status().child_alive
        assert [thread_id for thread_id, _ in here.engine.resumed] == [named.thread_id] * 2
        assert (await here.open("b")).identity == "b"


async def test_reported_counts_the_caller_of_a_turn_that_died(tmp_path: Path) -> None:
    """What waited behind that turn is refused; what comes after is served."""
    async with stage(tmp_path, restart="reported") as here:
        named = await here.open("a")
        running = await here.busy(named)
        waiting = here.sessions.say(named, "later")
        here.engine.die("exit code 1")
        assert (await running.result()).status == "failed"
        with pytest.raises(EngineLost):
            await waiting.result()
        assert (await here.open("b")).identity == "b"


async def test_always_means_that_the_next_call_starts_and_resumes_by_itself(tmp_path: Path) -> None:
    """As the drop-in does; also for what waited behind the turn that died."""
    async with stage(tmp_path, restart="always") as here:
        named = await here.open("a")
        running = await here.busy(named)
        waiting = here.sessions.say(named, "later")
        here.engine.die()
        assert (await running.result()).status == "failed"
        await until(lambda: here.engine.resumed and here.thread(named).turn_id)
        assert texts(here.thread(named)) == ["later"]
        here.thread(named).end()
        assert (await waiting.result()).status == "completed"
        here.engine.die()
        assert (await here.open("b")).identity == "b"


async def test_a_session_on_a_dead_codex_is_closed_without_waiting(tmp_path: Path) -> None:
    """A summary cannot come; idle ones are simply closed, at a shutdown they are interrupted."""
    async with stage(tmp_path, summaries=True) as here:
        first, second = await here.open("a"), await here.open("b")
        for named in (first, second):
            await here.turn(named)
            here.thread(named).replies[SUMMARY_PROMPT] = "never"
        here.engine.die()
        await until(lambda: first.session.is_engine_lost and second.session.is_engine_lost)
        assert (await here.sessions.close(ME, identity="a")).status == "closed"
        async with asyncio.timeout(20):
            await here.sessions.shutdown()
        assert here.entries("b")[0]["status"] == "interrupted"
        assert here.engine.resumed == []
