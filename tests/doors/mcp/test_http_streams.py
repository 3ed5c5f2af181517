"""MCP over HTTP: streams that outlive their connection, and sessions that are not heard of for long."""

from __future__ import annotations

import asyncio

import pytest

from laneway.base.errors import WireBroken
from laneway.doors.mcp.http_sessions import HttpTiming
from tests.doors.mcp.http_support import (
    Bench,
    call,
    messages,
    next_message,
    said,
    serving,
)

PATIENT = HttpTiming(idle_s=1e9)
"""No session ends by itself, however far the clock is moved."""


async def test_a_client_that_lost_its_connection_comes_back_for_the_rest() -> None:
    """Hanging up is not cancelling: the answer waits."""
    bench = Bench()
    async with serving(bench.server) as place:
        session = await place.shake_hands()
        async with place.streamed(call("wait", {"aloud": True}), session) as stream:
            last, _ = await next_message(stream)
        bench.release.set()
        async with place.streamed(None, session, method="GET", last_event_id=last) as stream:
            (answer,) = await messages(stream)
        assert said(answer) == "released"
        assert not bench.cancelled.is_set()


async def test_a_call_whose_client_never_comes_back_is_cancelled_after_a_while() -> None:
    """Nobody waits for it, and it costs."""
    bench = Bench()
    async with serving(bench.server, timing=PATIENT) as place:
        session = await place.shake_hands()
        async with place.streamed(call("wait", {"aloud": True}), session) as stream:
            last, _ = await next_message(stream)
        while not bench.cancelled.is_set():
            place.clock.advance(PATIENT.resume_s + 1)
            await asyncio.sleep(0)
        headers = place.headers(session, last_event_id=last)
        assert (await place.web.get(place.url, headers=headers)).status_code == 400
        assert said((await place.post(call("echo"), session)).json()) == "{}"


async def test_what_is_told_after_a_call_goes_to_the_stream_that_was_opened_for_it() -> None:
    """Without one it is dropped, and whoever told it hears so."""
    bench = Bench()
    bench.release.set()
    async with serving(bench.server) as place:
        session = await place.shake_hands()
        await place.post(call("wait"), session)
        assert bench.channel.notify("test/late", {}) is False
        async with place.streamed(None, session, method="GET") as stream:
            second = await place.web.get(place.url, headers=place.headers(session))
            assert second.status_code == 409
            assert bench.channel.notify("test/late", {"n": 1}) is True
            last, told = await next_message(stream)
            assert (last, told["method"]) == ("0.1", "test/late")
        assert bench.channel.notify("test/late", {"n": 2}) is True
        async with place.streamed(None, session, method="GET", last_event_id=last) as stream:
            _, told = await next_message(stream)
            assert told["params"] == {"n": 2}


async def test_what_is_asked_after_a_call_is_asked_on_that_stream_or_not_at_all() -> None:
    """Nobody is kept waiting for a client that is not connected."""
    bench = Bench()
    bench.release.set()
    async with serving(bench.server) as place:
        session = await place.shake_hands()
        await place.post(call("wait"), session)
        with pytest.raises(WireBroken):
            await bench.channel.call("elicitation/create", {})
        async with place.streamed(None, session, method="GET") as stream:
            asking = asyncio.ensure_future(bench.channel.call("elicitation/create", {"message": "May I?"}))
            _, asked = await next_message(stream)
            assert asked["method"] == "elicitation/create"
            await place.post({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}, session)
            assert await asking == {"action": "accept"}


async def test_who_loses_the_stream_with_a_question_may_come_back_for_it_but_not_for_ever() -> None:
    """It is asked again on the next stream; after a while whoever asked is told that nobody answers."""
    bench = Bench()
    bench.release.set()
    async with serving(bench.server, timing=PATIENT) as place:
        session = await place.shake_hands()
        await place.post(call("wait"), session)
        async with place.streamed(None, session, method="GET") as stream:
            asking = asyncio.ensure_future(bench.channel.call("elicitation/create", {"message": "May I?"}))
            last, asked = await next_message(stream)
        last = f"{last.partition('.')[0]}.0"
        async with place.streamed(None, session, method="GET", last_event_id=last) as stream:
            _, again = await next_message(stream)
            assert again == asked
            place.clock.advance(PATIENT.resume_s + 1)
            assert not asking.done()
        while not asking.done():
            place.clock.advance(PATIENT.resume_s + 1)
            await asyncio.sleep(0)
        with pytest.raises(WireBroken):
            await asking


async def test_a_session_that_is_not_heard_of_for_long_ends() -> None:
    """An open stream keeps it; silence does not."""
    async with serving(Bench().server) as place:
        session = await place.shake_hands()
        async with place.streamed(None, session, method="GET"):
            place.clock.advance(HttpTiming().idle_s + 1)
            assert (await place.post(call("echo"), session)).status_code == 200
        for _ in range(1000):
            place.clock.advance(HttpTiming().idle_s + 1)
            if (await place.post(call("echo"), session)).status_code == 404:
                break
        else:
            pytest.fail("the session never ended")
