"""A thread that nobody wants any more while Codex still opens it: it must keep nobody else out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.base.clock import LoopClock
from laneway.codex import engine
from laneway.codex.engine import CodexEngine
from laneway.core.hub import Hub
from laneway.core.ports import ThreadSpec
from tests.codex.support import ME, Stage, play, real


class Silent:
    """An app-server that shakes hands and then says no more."""

    stderr_tail = ""
    backlog_bytes = 0

    def __init__(self) -> None:
        self.is_asked = asyncio.Event()
        self._say: Callable[[bytes], None]

    async def connect(self, say: Callable[[bytes], None], on_end: Callable[[Any], None]) -> Silent:
        self._say = say
        return self

    def write(self, data: bytes) -> None:
        for asked in map(msgspec.json.decode, data.splitlines()):
            if asked["method"] == "initialize":
                self._say(msgspec.json.encode({"id": asked["id"], "result": {}}) + b"\n")
            elif asked["method"] == "thread/resume":
                self.is_asked.set()

    async def stop(self, own_end_s: float = 0.0) -> None:
        pass


async def cancelled_halfway(here: Stage, thread_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resume a thread, and think better of it when the request has just left."""
    link = await here.rehearsal.engine.link()
    assert link._transport is not None
    write, is_out = link._transport.write, asyncio.Event()

    def spy(data: bytes) -> None:
        write(data)
        if b'"thread/resume"' in data:
            is_out.set()

    monkeypatch.setattr(link._transport, "write", spy)
    resuming = asyncio.ensure_future(here.hub.resume(ME, thread_id, here.spec()))
    await is_out.wait()
    resuming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await resuming


@pytest.mark.needs("writer_lock")
async def test_another_process_gets_a_thread_whose_opening_was_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Codex opens it all the same, since it cannot be told; we give it back before we say that it is over."""
    async with real() as here:
        session = await here.session()
        await play(session, "%say remember the milk")
        await session.close()
        await cancelled_halfway(here, session.thread_id, monkeypatch)
        async with Hub(here.rehearsal.another_engine(), LoopClock()) as other:
            taken = await other.resume(ME, session.thread_id, here.spec())
            _, result = await play(taken, "%say mine")
            assert result.text == "mine"
            await taken.close()
        again = await here.hub.resume(ME, session.thread_id, here.spec())
        _, result = await play(again, "%say ours")
        assert result.text == "ours"


async def test_a_codex_that_never_answers_keeps_nobody_who_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even for the moment that it takes to give a thread back."""
    monkeypatch.setattr(engine, "GIVE_BACK_S", 0.0)
    silent = Silent()
    async with asyncio.timeout(60), Hub(CodexEngine(silent.connect), LoopClock()) as hub:
        resuming = asyncio.ensure_future(hub.resume(ME, "thread", ThreadSpec(cwd=Path("/"))))
        await silent.is_asked.wait()
        resuming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await resuming
