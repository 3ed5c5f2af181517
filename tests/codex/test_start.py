"""Codex as it starts: several at once in a home where none has been, and one that never gets up."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack

import pytest

from laneway.base.errors import EngineLost
from laneway.codex import running
from laneway.testing.rehearse import rehearsal

AT_ONCE = 6


async def test_those_that_start_at_once_in_a_fresh_home_all_get_up(caplog: pytest.LogCaptureFixture) -> None:
    """Left alone, all but one end: each wants to make the database. That is no news to anybody."""
    async with rehearsal() as here, AsyncExitStack() as stack:
        engines = [here.another_engine() for _ in range(AT_ONCE)]
        for engine in engines:
            stack.push_async_callback(engine.aclose)
        await asyncio.gather(*(engine.link() for engine in engines))
        assert [engine.is_running for engine in engines] == [True] * AT_ONCE
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_one_whose_database_cannot_be_made_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """After some tries, with its last words: it looks like one that fell over another."""
    pauses: list[int] = []

    def at_once(attempt: int) -> float:
        pauses.append(attempt)
        return 0.0

    monkeypatch.setattr(running, "backoff_s", at_once)
    async with rehearsal() as here:
        first = here.another_engine()
        await first.link()
        await first.aclose()
        for database in list(here.home.glob("*.sqlite")):
            database.unlink()
            database.mkdir()
        with pytest.raises(EngineLost, match="exit code 1") as lost:
            await here.engine.link()
    assert "state runtime" in lost.value.stderr_tail
    assert pauses == list(range(1, running.START_TRIES))
