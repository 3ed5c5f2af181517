"""A server with many sessions that is told to end: it does nothing that its end makes needless."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.core.support import until
from tests.doors.acp.sockets import listener
from tests.doors.acp.support import Stage, stage

SESSIONS = 24
"""More than are released at once."""
CROWDS = 4 if os.environ.get("LANEWAY_CHAOS") else 1
"""Of so many sessions each. Four of them would overflow Codex's queue, were they all released at once."""


def noting_codex(here: Stage, log: Path) -> dict[str, str]:
    """An environment in which all that app-server is told is written down, too."""
    codex = here.environment["LANEWAY_CODEX_BIN"]
    script = log.with_suffix(".sh")
    script.write_text(
        f'#!/bin/sh\n[ "$1" = app-server ] || exec "{codex}" "$@"\ntee "{log}" | "{codex}" "$@"\n'
    )
    script.chmod(0o700)
    return {"LANEWAY_CODEX_BIN": os.fspath(script)}


def archived(log: Path) -> list[str]:
    """The threads that Codex was asked to put away: the dear part of a release."""
    told = [json.loads(line) for line in log.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [each["params"]["threadId"] for each in told if each.get("method") == "thread/archive"]


@pytest.mark.parametrize("is_connected", [True, False])
async def test_threads_are_not_given_back_to_a_codex_that_ends_next(
    tmp_path: Path, *, is_connected: bool
) -> None:
    """Neither those of a client that is there, nor those that wait behind others of one that has left."""
    log = tmp_path / "told"
    async with (
        stage(tmp_path / "state") as here,
        listener(here, env=noting_codex(here, log)) as server,
        server.client() as client,
    ):
        sessions = await asyncio.gather(*(client.new() for _ in range(SESSIONS)))
        await asyncio.gather(*(client.prompt(session, "%say hi") for session in sessions))
        if not is_connected:
            client.vanish()
            await until(lambda: archived(log))
        server.process.terminate()
        assert await server.process.wait() == 0
    count = len(archived(log))
    assert count == 0 if is_connected else 0 < count < SESSIONS


@pytest.mark.chaos
async def test_all_threads_of_a_client_that_vanished_can_be_had_back(tmp_path: Path) -> None:
    """Codex refuses calls beyond its queue; none of these threads may stay locked for that."""
    async with stage(tmp_path / "state") as here, listener(here, "--log-level", "info") as server:
        async with server.client() as client:
            opened = [await asyncio.gather(*(client.new() for _ in range(SESSIONS))) for _ in range(CROWDS)]
            sessions = [session for some in opened for session in some]
            for some in opened:
                await asyncio.gather(*(client.prompt(session, "%say mine") for session in some))
            client.vanish()
        await until(lambda: sum("session closed" in line for line in server.lines) == len(sessions))
        async with here.agent() as other:  # another process, with another Codex
            for some in opened:
                await asyncio.gather(*(other.load(session) for session in some))
            assert {tuple(other.messages(session)) for session in sessions} == {("mine",)}
