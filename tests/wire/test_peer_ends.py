"""How requests and connections end early: cancelled, closed or broken."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from laneway.base.errors import LanewayError, RemoteError, WireBroken, WireClosed
from laneway.wire.peer import Raw
from tests.wire.support import DEADLINE_S, Desk, Gate, cancel_notice

CLOSING = {"code": -32000, "message": "The connection is closing"}


async def closed(desk: Desk) -> None:
    async with asyncio.timeout(DEADLINE_S):
        await desk.peer.aclose()


# ── cancellation ───────────────────────────────────────────────────────────


async def test_a_cancelled_call_says_so_once_and_ignores_a_late_answer() -> None:
    """The notice names our id; what still comes for it is dropped."""
    desk = Desk(cancel_notice=cancel_notice)
    call = asyncio.ensure_future(desk.peer.call("m"))
    await desk.sent()
    call.cancel()

    assert await desk.sent() == {"jsonrpc": "2.0", "method": "cancelled", "params": {"requestId": 1}}
    with pytest.raises(asyncio.CancelledError):
        await call
    desk.says({"id": 1, "result": "late"})
    await desk.wait_quiet()


async def test_a_call_answered_while_it_is_cancelled_sends_no_notice() -> None:
    """There is nothing left to give up."""
    desk = Desk(cancel_notice=cancel_notice)
    call = asyncio.ensure_future(desk.peer.call("m"))
    await desk.sent()
    call.cancel()
    desk.says({"id": 1, "result": "in time"})

    with pytest.raises(asyncio.CancelledError):
        await call
    await desk.wait_quiet()


async def test_a_call_cancelled_after_the_end_sends_no_notice() -> None:
    """Nobody would read it. Without a notice configured none is sent either."""
    for options, ends in (({"cancel_notice": cancel_notice}, True), ({}, False)):
        desk = Desk(**options)
        call = asyncio.ensure_future(desk.peer.call("m"))
        await desk.sent()
        call.cancel()
        if ends:
            desk.peer.feed_eof()
        with pytest.raises(asyncio.CancelledError):
            await call
        await desk.wait_quiet()


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (None, None),
        (RemoteError(-32800, "cancelled"), {"code": -32800, "message": "cancelled"}),
        (RemoteError(1, "c", ["why"]), {"code": 1, "message": "c", "data": ["why"]}),
    ],
)
async def test_their_cancellation_stops_the_handler_and_answers_only_if_told(
    answer: RemoteError | None, body: dict[str, Any] | None
) -> None:
    """MCP wants silence, ACP an error: the door decides."""
    desk = Desk()
    gate = Gate()
    desk.on("slow", gate)
    desk.says({"id": "r", "method": "slow"})
    async with asyncio.timeout(DEADLINE_S):
        await gate.began.wait()

        assert desk.peer.cancel_theirs(b'"r"', answer) is True
        assert desk.peer.cancel_theirs(b'"r"', answer) is False
        await gate.was_cancelled.wait()
    if body is not None:
        assert await desk.sent() == {"jsonrpc": "2.0", "id": "r", "error": body}
    await desk.wait_quiet()


async def test_an_id_used_anew_is_not_answered_by_its_cancelled_predecessor() -> None:
    """A handler may take its time to end; its words then belong to nobody."""
    desk = Desk()
    may_end = asyncio.Event()
    gate = Gate()

    async def stubborn(params: Raw) -> str:
        try:
            return await gate(params)
        except asyncio.CancelledError:
            await may_end.wait()
            return "the old one"

    desk.on("old", stubborn)
    fresh = Gate()
    desk.on("new", fresh)
    desk.says({"id": 1, "method": "old"})
    async with asyncio.timeout(DEADLINE_S):
        await gate.began.wait()
        desk.peer.cancel_theirs(b"1")
        desk.says({"id": 1, "method": "new"})
        await fresh.began.wait()
    may_end.set()
    await desk.wait_quiet()
    fresh.opened.set()

    assert await desk.sent() == {"jsonrpc": "2.0", "id": 1, "result": "opened"}


async def test_a_handler_that_meets_a_cancelled_future_is_still_answered() -> None:
    """Nobody cancelled the request, so it gets an answer like any other failure."""
    desk = Desk()

    async def unlucky(params: Raw) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    desk.on("m", unlucky)
    desk.says({"id": 1, "method": "m"})

    assert (await desk.sent())["error"] == {"code": -32603, "message": "Internal error"}


# ── the end ────────────────────────────────────────────────────────────────


async def test_closing_answers_everything_that_is_open_on_both_sides() -> None:
    """Theirs with an error, also one that had not even begun; ours with `WireClosed`."""
    desk = Desk()
    gate = Gate()
    desk.on("slow", gate)
    call = asyncio.ensure_future(desk.peer.call("ask"))
    await desk.sent()
    desk.says({"id": "begun", "method": "slow"})
    async with asyncio.timeout(DEADLINE_S):
        await gate.began.wait()
    desk.says({"id": "not begun", "method": "slow"})
    desk.peer.notify("last words")
    await closed(desk)

    assert [await desk.sent() for _ in range(3)] == [
        {"jsonrpc": "2.0", "method": "last words"},
        {"jsonrpc": "2.0", "id": "begun", "error": CLOSING},
        {"jsonrpc": "2.0", "id": "not begun", "error": CLOSING},
    ]
    assert gate.was_cancelled.is_set()
    with pytest.raises(WireClosed):
        await call


async def test_a_request_that_arrives_while_closing_is_refused() -> None:
    """It is answered too, and no handler starts for it."""
    desk = Desk()

    async def last_request(params: Raw) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            desk.says({"id": 2, "method": "slow"})

    desk.on("slow", last_request)
    desk.says({"id": 1, "method": "slow"})
    await asyncio.sleep(0)
    await closed(desk)

    assert {(await desk.sent())["id"] for _ in range(2)} == {1, 2}
    assert desk.ids == [b"1"]


async def test_a_handler_may_answer_in_its_own_words_when_the_connection_closes() -> None:
    """Its answer comes instead of ours, not beside it."""
    desk = Desk()

    async def polite(params: Raw) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "so far"
        return "never"

    desk.on("m", polite)
    desk.says({"id": 1, "method": "m"})
    await asyncio.sleep(0)
    await closed(desk)

    assert await desk.sent() == {"jsonrpc": "2.0", "id": 1, "result": "so far"}
    await desk.wait_quiet()


async def test_a_handler_that_will_not_end_does_not_hold_up_closing() -> None:
    """It is answered for, and what it says later goes nowhere."""
    desk = Desk()
    may_end = asyncio.Event()

    async def deaf(params: Raw) -> str:
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                pass
        return "too late"

    desk.on("m", deaf)
    desk.says({"id": 1, "method": "m"})
    await asyncio.sleep(0)
    await closed(desk)

    assert (await desk.sent())["error"] == CLOSING
    may_end.set()
    await desk.wait_quiet()


async def test_a_handler_may_close_its_own_connection() -> None:
    """Its request is answered like the others, and it goes on to its end."""
    desk = Desk()
    through = asyncio.Event()

    async def shutdown(params: Raw) -> None:
        await desk.peer.aclose()
        through.set()

    desk.on("shutdown", shutdown)
    desk.says({"id": 1, "method": "shutdown"})

    assert (await desk.sent())["error"] == CLOSING
    async with asyncio.timeout(DEADLINE_S):
        await through.wait()


async def test_when_the_other_end_vanishes_calls_break_and_handlers_stop() -> None:
    """Nothing is sent into the void; the reason given is the reason heard."""
    desk = Desk()
    gate = Gate()
    desk.on("slow", gate)
    desk.says({"id": 1, "method": "slow"})
    calls = [asyncio.ensure_future(desk.peer.call("ask")) for _ in range(2)]
    for _ in calls:
        await desk.sent()
    reason = WireBroken("killed by SIGKILL")
    desk.peer.feed_eof(reason)

    assert await asyncio.gather(*calls, return_exceptions=True) == [reason, reason]
    async with asyncio.timeout(DEADLINE_S):
        await gate.was_cancelled.wait()
    await closed(desk)
    await desk.wait_quiet()


@pytest.mark.parametrize("kind", [WireClosed, WireBroken])
async def test_after_the_end_nothing_works_and_nothing_crashes(kind: type[LanewayError]) -> None:
    """Calls raise what ended it, every time anew; ending twice is no event; bytes are ignored."""
    desk = Desk()
    for _ in range(2):
        if kind is WireClosed:
            await closed(desk)
        else:
            desk.peer.feed_eof()
    depths = []
    for _ in range(3):
        with pytest.raises(kind) as caught:
            await desk.peer.call("ask")
        depths.append(len(caught.traceback))

    assert len(set(depths)) == 1, "the shared exception must not gather tracebacks"
    assert desk.peer.notify("told") is False
    assert desk.peer.dropped_notifications == 0
    desk.says({"id": 1, "method": "m"}, {"id": 1, "result": 1}, b"garbage")
    await desk.wait_quiet()


async def test_calls_left_open_at_the_end_leave_no_unheard_exception(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Cancelled or not, asyncio has nothing to complain about."""
    desk = Desk()
    calls = [asyncio.ensure_future(desk.peer.call("m")) for _ in range(3)]
    for _ in calls:
        await desk.sent()
    calls[0].cancel()
    desk.peer.feed_eof()
    calls[1].cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    del calls, desk
    gc.collect()

    assert caplog.records == []
