"""MCP over HTTP, byte by byte: sessions with a handshake, the stateless era, beginning and end."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from functools import partial

import httpx2
import pytest

from laneway.base.errors import UsageError
from laneway.doors import listening
from laneway.doors.mcp.http_sessions import HttpTiming
from tests.doors.mcp.http_support import (
    OTHER_TOKEN,
    Bench,
    call,
    initialize,
    messages,
    mirrors,
    modern,
    next_message,
    said,
    serving,
)

BIND = partial(listening.bind, remote_flag="--http-remote")


# ── sessions of clients that shake hands ───────────────────────────────────


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_session_begins_with_a_handshake_and_ends_with_delete(version: str) -> None:
    """Then it is gone, for requests and for streams."""
    async with serving(Bench().server) as place:
        session = await place.shake_hands(version=version)
        answered = await place.post(call("echo", {"a": 1}), session)
        assert (answered.status_code, said(answered.json())) == (200, '{"a": 1}')
        assert answered.headers["content-type"] == "application/json"
        ended = await place.web.delete(place.url, headers=place.headers(session))
        assert ended.status_code == 204
        for again in (
            await place.post(call("echo"), session),
            await place.web.get(place.url, headers=place.headers(session)),
            await place.web.delete(place.url, headers=place.headers(session)),
        ):
            assert again.status_code == 404


async def test_a_request_without_a_session_is_told_to_begin_one() -> None:
    """Also a notification, an answer, and a stream."""
    async with serving(Bench().server) as place:
        bodies = [
            call("echo"),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            [initialize()],
        ]
        for body in bodies:
            assert (await place.post(body)).status_code == 400
        assert (await place.web.get(place.url, headers=place.headers())).status_code == 400
        assert (await place.web.delete(place.url, headers=place.headers())).status_code == 400


async def test_a_handshake_that_fails_leaves_no_session() -> None:
    """Its error comes, and no session id."""
    async with serving(Bench().server) as place:
        answered = await place.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": [1]})
        assert answered.json()["error"]["code"] == -32602
        assert "mcp-session-id" not in answered.headers


async def test_what_a_call_says_comes_before_its_answer_in_one_stream() -> None:
    """With ids, so that a client can come back."""
    async with serving(Bench().server) as place:
        session = await place.shake_hands()
        async with place.streamed(call("chatter", {"count": 3}), session) as stream:
            got = [event async for event in stream]
        assert got[0] == {"id": "2.0", "retry": "1000", "data": ""}
        assert [event["id"] for event in got[1:]] == ["2.1", "2.2", "2.3", "2.4"]
        told = [json.loads(event["data"]) for event in got[1:]]
        assert [message["params"]["number"] for message in told[:3]] == [0, 1, 2]
        assert said(told[3]) == "said"


async def test_a_client_is_asked_on_the_stream_of_its_call_and_answers_by_a_post() -> None:
    """Whatever it answers reaches the tool."""
    async with serving(Bench().server) as place:
        session = await place.shake_hands()
        async with place.streamed(call("ask"), session) as stream:
            _, asked = await next_message(stream)
            assert asked["method"] == "elicitation/create"
            wrong = {"jsonrpc": "2.0", "id": 99, "result": {"action": "accept"}}
            assert (await place.post(wrong, session)).status_code == 202
            right = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
            assert (await place.post(right, session)).status_code == 202
            (answer,) = await messages(stream)
        assert said(answer) == '{"action": "decline"}'


async def test_an_answer_from_another_session_is_not_heard() -> None:
    """Ids of questions are small numbers: they only count within their session."""
    async with serving(Bench().server) as place:
        session = await place.shake_hands()
        stranger = await place.shake_hands(token=OTHER_TOKEN)
        async with place.streamed(call("ask"), session) as stream:
            _, asked = await next_message(stream)
            forged = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}
            assert (await place.post(forged, stranger, token=OTHER_TOKEN)).status_code == 202
            real = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}}
            assert (await place.post(real, session)).status_code == 202
            (answer,) = await messages(stream)
        assert answer["error"]["message"] == "no"


async def test_a_cancelled_call_stops_and_its_stream_ends_without_an_answer() -> None:
    """The session goes on."""
    bench = Bench()
    async with serving(bench.server) as place:
        session = await place.shake_hands()
        async with place.streamed(call("wait", {"aloud": True}, "w"), session) as stream:
            await next_message(stream)
            params = {"requestId": "w", "reason": "enough"}
            notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            assert (await place.post(notice, session)).status_code == 202
            assert await messages(stream) == []
        await bench.cancelled.wait()
        assert said((await place.post(call("echo"), session)).json()) == "{}"


async def test_an_id_in_use_is_refused_and_the_first_call_is_not_disturbed() -> None:
    """Two answers with one id could not be told apart."""
    bench = Bench()
    async with serving(bench.server) as place:
        session = await place.shake_hands()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(place.post(call("wait"), session))
            await bench.started.wait()
            second = await place.post(call("echo"), session)
            assert (second.status_code, second.json()["error"]["code"]) == (400, -32600)
            bench.release.set()
        assert said(first.result().json()) == "released"


async def test_silence_becomes_a_stream_that_is_kept_alive() -> None:
    """Nothing between us and the client may take a long turn for a dead connection."""
    bench = Bench()
    async with serving(bench.server, timing=HttpTiming(ping_s=0.01)) as place:
        session = await place.shake_hands()
        content, headers = json.dumps(call("wait")).encode(), place.headers(session)
        async with place.web.stream("POST", place.url, content=content, headers=headers) as response:
            lines = response.aiter_lines()
            async for line in lines:
                if line.startswith(":"):
                    break
            bench.release.set()
            rest = [line async for line in lines]
        assert any("released" in line for line in rest)


async def test_a_batch_of_the_version_that_has_them_is_answered_on_one_stream() -> None:
    """Later versions refuse it."""
    async with serving(Bench().server) as place:
        batch = [
            call("echo", {"n": 1}, 1),
            call("echo", {"n": 2}, 2),
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
        ]
        old = await place.shake_hands(version="2025-03-26")
        async with place.streamed(batch, old) as stream:
            answers = {message["id"]: said(message) for message in await messages(stream)}
        assert answers == {1: '{"n": 1}', 2: '{"n": 2}'}
        assert (await place.post([call("echo"), call("echo")], old)).status_code == 400
        new = await place.shake_hands()
        assert (await place.post(batch, new)).status_code == 400


# ── the stateless era ──────────────────────────────────────────────────────


async def test_a_stateless_call_needs_no_session_and_gets_none() -> None:
    """A session id that comes along is ignored."""
    async with serving(Bench().server) as place:
        answered = await place.stateless("echo", {"a": 1}, mcp_session_id="whatever")
        assert answered.status_code == 200
        assert "mcp-session-id" not in answered.headers
        assert answered.json()["result"]["resultType"] == "complete"
        for method in ("GET", "DELETE", "PUT"):
            refused = await place.web.request(
                method, place.url, headers=place.headers(mcp_protocol_version="2026-07-28")
            )
            assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


async def test_closing_the_response_of_a_stateless_call_cancels_it() -> None:
    """Also before anything was sent on it."""
    for aloud in (True, False):
        bench = Bench()
        async with serving(bench.server) as place:
            content = json.dumps(modern("wait", {"aloud": aloud})).encode()
            calling = asyncio.create_task(
                place.web.post(place.url, content=content, headers=place.headers(**mirrors("wait")))
            )
            await bench.started.wait()
            calling.cancel()
            await bench.cancelled.wait()


async def test_a_stateless_stream_has_no_event_ids() -> None:
    """It cannot be resumed."""
    async with serving(Bench().server) as place:
        async with place.streamed(modern("chatter"), **mirrors("chatter")) as stream:
            got = [event async for event in stream]
        assert len(got) == 4
        assert not any("id" in event for event in got)


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"mcp_method": "tools/list"}, -32020),
        ({"mcp_method": ""}, -32020),
        ({"mcp_name": "other"}, -32020),
        ({"mcp_name": "=?base64?!!?="}, -32020),
        ({"mcp_protocol_version": "2025-11-25"}, -32020),
        ({"mcp_protocol_version": "2027-01-01"}, -32020),
    ],
)
async def test_headers_that_contradict_the_body_are_refused(changed: dict[str, str], code: int) -> None:
    """Somebody between us and the client may have decided by the headers."""
    async with serving(Bench().server) as place:
        refused = await place.stateless("echo", None, **changed)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, code)
        assert refused.json()["id"] == 1


async def test_errors_of_the_stateless_era_have_their_status() -> None:
    """A method that this era does not have is 404, an unknown version 400 with those that we speak."""
    async with serving(Bench().server) as place:
        for method in ("no/such", "ping", "logging/setLevel", "prompts/list", "subscriptions/listen"):
            unknown = await place.post(
                {**modern("echo"), "method": method}, **{**mirrors("echo"), "mcp_method": method}
            )
            assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, -32601)
        body = modern("echo")
        body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2027-01-01"
        newer = await place.post(body, **{**mirrors("echo"), "mcp_protocol_version": "2027-01-01"})
        assert (newer.status_code, newer.json()["error"]["code"]) == (400, -32022)
        assert newer.json()["error"]["data"]["supported"] == ["2026-07-28"]
        handshake = {**initialize(), "params": modern("echo")["params"]}
        none = await place.post(handshake, **{**mirrors("echo"), "mcp_method": "initialize"})
        assert (none.status_code, none.json()["error"]["code"]) == (404, -32601)
        bare = await place.post(call("echo"), **mirrors("echo"))
        assert (bare.status_code, bare.json()["error"]["code"]) == (400, -32602)


async def test_a_question_in_the_stateless_era_is_not_sent_as_a_request() -> None:
    """The tool hears at once that it cannot ask this way."""
    async with serving(Bench().server) as place:
        answered = await place.stateless("ask")
        assert answered.json()["error"]["code"] == -32603


# ── beginning and end ──────────────────────────────────────────────────────


async def test_calls_that_run_at_the_end_are_answered() -> None:
    """By what the shutdown makes of them, or as cancelled; and the port is free again."""
    bench, hanging = Bench(), Bench()
    stopping = asyncio.Event()

    async def shutdown() -> None:
        stopping.set()
        bench.release.set()

    for server, wanted in ((bench, "released"), (hanging, "-32000")):
        async with asyncio.TaskGroup() as group:
            async with serving(server.server, shutdown=shutdown) as place:
                session = await place.shake_hands()
                web = httpx2.AsyncClient(timeout=30)
                content, headers = json.dumps(call("wait")).encode(), place.headers(session)
                calling = group.create_task(web.post(place.url, content=content, headers=headers))
                await server.started.wait()
            answered = await calling
            await web.aclose()
            assert wanted in answered.text
        BIND("127.0.0.1", place.port).close()
    assert stopping.is_set()


def test_other_machines_are_let_in_only_by_choice() -> None:
    """And a port that is taken is said plainly."""
    bind = BIND
    with pytest.raises(UsageError, match="other machines"):
        bind("0.0.0.0", 0)
    bind("0.0.0.0", 0, may_leave_machine=True).close()
    with bind("127.0.0.1", 0) as open_socket:
        assert open_socket.proto == socket.IPPROTO_TCP  # or each answer would wait for TCP's delays
    with bind("localhost", 0) as taken, pytest.raises(UsageError, match="Choose another port"):
        bind(*taken.getsockname()[:2])
    with pytest.raises(UsageError, match="not known"):
        bind("no-such-host.invalid", 0)


def test_the_http_library_is_imported_only_to_serve_and_its_absence_is_explained() -> None:
    """Who serves on standard input and output needs no further package."""
    script = """
import asyncio, sys
import laneway.doors.mcp.http as door
assert not {"uvicorn", "mcp", "starlette"} & set(sys.modules), sys.modules
sys.modules["uvicorn"] = None
from laneway.base.errors import UsageError, WireBroken
try:
    asyncio.run(door.serve_http(None, host="127.0.0.1", port=0, tokens=[], stop=None, on_ready=print))
except UsageError as problem:
    print(problem)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("Serving over HTTP needs one more package: install it with `")
    assert ran.stdout.endswith(" uvicorn`.\n")
