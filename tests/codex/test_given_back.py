"""A thread whose caller was cancelled while Codex opens it: it is released for other processes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from laneway.base.clock import LoopClock
from laneway.codex import engine
from laneway.codex.engine import CodexEngine
from laneway.core.hub import Hub
from laneway.core.ports import ThreadSpec
from tests.codex.support import ME, Stage, play, real
from tests.codex.transports import HandTransport, Request


class Slow(HandTransport):
    """Does the handshake, and answers nothing more until `go_on`."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = asyncio.Event()
        self.requests: list[str] = []
        self._waiting: list[Any] | None = []

    def on_request(self, request: Request) -> None:
        if request["method"] != "initialize":
            self.requests.append(request["method"])
            self.is_asked.set()
            if self._waiting is not None:
                self._waiting.append(request["id"])
                return
        self._answer(request["id"])

    def go_on(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        for request_id in waiting:
            self._answer(request_id)

    def _answer(self, request_id: Any) -> None:
        self.send(id=request_id, result={"thread": {"id": "thread"}})


async def cancelled_halfway(here: Stage, thread_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resume a thread, and cancel that when the request has just been sent."""
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


async def test_a_slow_codex_keeps_nobody_who_has_gone_and_takes_nothing_from_who_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first leaves before its thread is given back; the second gets it only after that."""
    monkeypatch.setattr(engine, "RELEASE_S", 0.0)
    slow, spec = Slow(), ThreadSpec(cwd=Path("/"))
    async with asyncio.timeout(60), Hub(CodexEngine(slow.connect), LoopClock()) as hub:
        first = asyncio.ensure_future(hub.resume(ME, "thread", spec))
        await slow.is_asked.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.ensure_future(hub.resume(ME, "thread", spec))
        slow.go_on()
        session = await second
        assert session.thread_id == "thread"
        assert slow.requests == ["thread/resume", "thread/archive", "thread/unarchive", "thread/resume"]
