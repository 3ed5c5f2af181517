"""Connections that ask for nothing, on the local socket: they make room, and whoever asks is answered."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import LanewayError, RemoteError
from laneway.cli.live_sessions import find
from laneway.doors.local.api import MAX_WATCHES
from laneway.doors.local.bridge_keys import OPEN
from laneway.doors.local.client import connect
from laneway.doors.local.server import IDLE_S, MAX_BRIDGES_PER_SESSION, MAX_IDLE, MAX_SERVED
from laneway.doors.local.shapes import LIST, TOO_MANY, Listed
from tests.core.support import until
from tests.doors.local.support import LocalStage, Stranger, local_stage, onlooker
from tests.doors.local.test_bridge import place

LISTING = b'{"jsonrpc":"2.0","id":1,"method":"sessions/list"}\n'
HALF = b'{"jsonrpc":"2.0","id":1,"meth'


async def listed(home: LocalStage) -> Listed:
    async with connect(home.door.path) as visitor:
        return await visitor.call(LIST, reply=Listed)


async def is_broken_off(stranger: Stranger) -> bool:
    try:
        await stranger.lines_until(lambda message: False)
    except (EOFError, ConnectionError):
        return True
    return False


@pytest.mark.parametrize("sent", [b"", HALF, b"nonsense\n", LISTING])
async def test_who_asks_for_nothing_is_not_kept_for_ever(tmp_path: Path, run: Path, sent: bytes) -> None:
    """Not even who asked once: that time it was answered. A watcher stays."""
    async with local_stage(tmp_path, run) as home:
        await home.here.open("ann")
        async with onlooker(home.door.path, identity="ann") as looking:
            with Stranger(home.door.path) as idle:
                await idle.send(sent)
                if sent.endswith(b"\n"):
                    await idle.lines_until(lambda message: True)
                await listed(home)
                home.here.clock.advance(IDLE_S)
                assert await is_broken_off(idle)
            home.here.clock.advance(IDLE_S)
            assert len((await listed(home)).sessions) == 1
            assert not looking.answer.done()


async def test_the_oldest_of_too_many_idle_ones_makes_room(tmp_path: Path, run: Path) -> None:
    """At once, for each that comes; and one that asks is served."""
    async with local_stage(tmp_path, run) as home:
        with ExitStack() as stack:
            crowd = []
            for _ in range(MAX_IDLE + 16):
                crowd.append(stack.enter_context(Stranger(home.door.path)))
                await asyncio.sleep(0)
            assert all([await is_broken_off(each) for each in crowd[:16]])
            assert (await listed(home)).pid == os.getpid()
            await crowd[-1].send(LISTING)
            assert "result" in (await crowd[-1].lines_until(lambda message: True))[0]


async def test_where_all_are_busy_the_next_one_is_told_so(tmp_path: Path, run: Path) -> None:
    """In a sentence that is true, and by the command line, too; it gets in when one of them leaves."""
    assert MAX_WATCHES == MAX_SERVED
    async with local_stage(tmp_path, run) as home:
        await home.here.open("ann")
        async with AsyncExitStack() as stack:
            for _ in range(MAX_SERVED):
                await stack.enter_async_context(onlooker(home.door.path, identity="ann"))
            with pytest.raises(RemoteError) as caught:
                await listed(home)
            assert caught.value.code == TOO_MANY
            with pytest.raises(LanewayError) as told:
                await find(home.here.store, "ann", environment=home.environment)
            assert str(told.value) == (
                f"All connections to process {os.getpid()} are in use: leave one that watches, and try again."
            )
        await until(lambda: not home.door._limits._proven)
        assert len((await listed(home)).sessions) == 1


def opening(key: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": OPEN, "params": {"key": key}}).encode() + b"\n"


async def tools(stranger: Stranger) -> Any:
    await stranger.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
    return (await stranger.lines_until(lambda message: True))[0]["result"]["tools"]


async def test_a_bridge_may_be_idle_for_as_long_as_its_session(tmp_path: Path, run: Path) -> None:
    """It has shown its key; no crowd pushes it out."""
    async with place(tmp_path, run) as there:
        _, key = await there.key("ann")
        with ExitStack() as stack, Stranger(there.door.path) as bridge:
            await bridge.send(opening(key))
            assert len(await tools(bridge)) == 4
            for _ in range(MAX_IDLE + 1):
                stack.enter_context(Stranger(there.door.path))
                await asyncio.sleep(0)
            there.here.clock.advance(100 * IDLE_S)
            assert len(await tools(bridge)) == 4


async def test_one_session_cannot_take_the_room_of_the_others_bridges(tmp_path: Path, run: Path) -> None:
    """Its own key opens so many connections and no more."""
    async with place(tmp_path, run) as there:
        _, ann = await there.key("ann")
        _, bob = await there.key("bob")
        with ExitStack() as stack:
            for _ in range(MAX_BRIDGES_PER_SESSION):
                bridge = stack.enter_context(Stranger(there.door.path))
                await bridge.send(opening(ann))
                assert await tools(bridge)
            with Stranger(there.door.path) as one_more:
                await one_more.send(opening(ann))
                assert await is_broken_off(one_more)
            with Stranger(there.door.path) as other:
                await other.send(opening(bob))
                assert await tools(other)
