"""Progress of calls that wait: at intervals, to those who want it, and only as long as they wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from laneway.doors.mcp.eras import UNKNOWN_CLIENT
from laneway.doors.mcp.progress import MESSAGE_CHARS, with_progress
from laneway.doors.mcp.server import Call, Interests
from laneway.testing.clock import HandClock


class Channel:
    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def notify(self, method: str, params: Any) -> bool:
        self.heard.append((method, params))
        return True

    async def call(self, method: str, params: Any) -> Any:
        raise AssertionError("progress asks nothing")


def call_of(channel: Channel, **meta: Any) -> Call:
    return Call(
        principal="me",
        client=UNKNOWN_CLIENT,
        channel=channel,
        interests=Interests(),
        request_id=b"1",
        params={},
        meta=meta,
    )


def progress(token: Any, *messages: str) -> list[tuple[str, Any]]:
    return [
        ("notifications/progress", {"progressToken": token, "progress": step, "message": message})
        for step, message in enumerate(messages, 1)
    ]


@pytest.mark.covers("J-tools.11")
@pytest.mark.parametrize("token", ["abc", 0])
async def test_a_client_with_a_token_hears_of_a_wait_every_ten_seconds(token: Any) -> None:
    """What it hears is looked up each time; after the end there is silence."""
    clock, channel, ended = HandClock(), Channel(), asyncio.Event()
    running = 3

    async def work() -> str:
        await ended.wait()
        return "done"

    call = call_of(channel, progressToken=token)
    waiting = asyncio.ensure_future(
        with_progress(call, work(), clock, message=lambda: f"{running} jobs\nrun.")
    )
    await asyncio.sleep(0)
    clock.advance(9.9)
    assert channel.heard == []
    clock.advance(0.1)
    running = 2
    clock.advance(20.0)
    assert channel.heard == progress(token, "3 jobs run.", "2 jobs run.", "2 jobs run.")
    ended.set()
    assert await waiting == "done"
    clock.advance(100.0)
    assert len(channel.heard) == 3


async def test_a_client_without_a_token_hears_nothing() -> None:
    """It said so by leaving it out."""
    clock, channel, ended = HandClock(), Channel(), asyncio.Event()
    waiting = asyncio.ensure_future(
        with_progress(call_of(channel), ended.wait(), clock, message=lambda: "run", every_s=1.0)
    )
    await asyncio.sleep(0)
    clock.advance(100.0)
    ended.set()
    assert await waiting is True
    assert channel.heard == []


async def test_a_wait_that_fails_or_is_cancelled_is_heard_of_no_more() -> None:
    """The work is cancelled with the wait, and its error is the caller's."""
    clock, channel, cancelled = HandClock(), Channel(), asyncio.Event()

    async def fails() -> None:
        raise ValueError("no")

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    call = call_of(channel, progressToken=1)
    with pytest.raises(ValueError, match="no"):
        await with_progress(call, fails(), clock, message=lambda: "run")
    waiting = asyncio.ensure_future(with_progress(call, hangs(), clock, message=lambda: "run"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert cancelled.is_set()
    clock.advance(100.0)
    assert channel.heard == []


async def test_a_long_message_is_cut_to_one_line() -> None:
    """Clients show it in a line."""
    clock, channel = HandClock(), Channel()
    ended = asyncio.Event()
    waiting = asyncio.ensure_future(
        with_progress(call_of(channel, progressToken=1), ended.wait(), clock, message=lambda: "x" * 999)
    )
    await asyncio.sleep(0)
    clock.advance(10.0)
    ended.set()
    await waiting
    assert len(channel.heard[0][1]["message"]) == MESSAGE_CHARS
