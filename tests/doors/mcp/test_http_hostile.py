"""The HTTP door against those who should not get in, and those who behave badly inside."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from laneway.core.hub import Hub
from laneway.doors.http.exchange import MAX_BODY_BYTES
from laneway.doors.mcp.http_sessions import MAX_SESSIONS, HttpTiming
from laneway.testing.clock import HandClock
from laneway.testing.engine import HandEngine
from tests.doors.mcp.http_support import (
    LATEST,
    OTHER_TOKEN,
    TOKEN,
    Bench,
    Place,
    call,
    dropin,
    initialize,
    mirrors,
    modern,
    said,
    serving,
)


async def test_nobody_is_served_without_the_token() -> None:
    """Neither era, no method; and no body is read before the token is right."""
    async with serving(Bench().server) as place:
        for authorization in ("", "Bearer wrong-token-0123456789", f"Basic {TOKEN}"):
            for method in ("POST", "GET", "DELETE", "OPTIONS"):
                for version in (LATEST, "2026-07-28"):
                    headers = place.headers(authorization=authorization, mcp_protocol_version=version)
                    refused = await place.web.request(method, place.url, content=b"{", headers=headers)
                    assert refused.status_code == 401
                    assert refused.headers["www-authenticate"].startswith("Bearer ")
        assert (await place.post(initialize())).status_code == 200


async def test_a_page_in_a_browser_cannot_speak_to_us() -> None:
    """Even with the token: neither by its origin nor by a name that was made to lead here."""
    async with serving(Bench().server) as place:
        foreign = await place.post(initialize(), origin="https://evil.example")
        assert foreign.status_code == 403
        rebound = await place.post(initialize(), host=f"evil.example:{place.port}")
        assert rebound.status_code == 421
        local = await place.post(initialize(), origin="http://localhost:5173", host=f"localhost:{place.port}")
        assert local.status_code == 200


async def test_another_path_has_nothing() -> None:
    """Clients that look for a login page find none."""
    async with serving(Bench().server) as place:
        for path in ("/", "/mcp/", "/.well-known/oauth-protected-resource"):
            found = await place.web.get(place.url.removesuffix("/mcp") + path, headers=place.headers())
            assert found.status_code == 404


async def test_a_huge_body_is_refused_and_the_server_goes_on() -> None:
    """Whether its length was declared or not."""

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 65536 + 2):
            yield b" " * 65536

    async with serving(Bench().server) as place:
        declared = await place.post(b" " * (MAX_BODY_BYTES + 1))
        assert declared.status_code == 413
        chunked = await place.web.post(place.url, content=endless(), headers=place.headers())
        assert chunked.status_code == 413
        await place.shake_hands()


NO_JSON = [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000]
NO_MESSAGE = [
    b"[]",
    b"[1]",
    b"1",
    b"null",
    b"{}",
    b'{"id":null,"method":"ping"}',
    b'{"id":{},"method":"ping"}',
    b'{"id":true,"method":"ping"}',
    b'{"id":1}',
    b'{"id":1,"method":7}',
    b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
]


@pytest.mark.parametrize(("bodies", "codes"), [(NO_JSON, {-32700, -32600}), (NO_MESSAGE, {-32600})])
async def test_nonsense_is_answered_as_nonsense(bodies: list[bytes], codes: set[int]) -> None:
    """In a session, outside of one, and in the stateless era."""
    async with serving(Bench().server) as place:
        session = await place.shake_hands()
        for body in bodies:
            for answered in (
                await place.post(body),
                await place.post(body, session),
                await place.post(body, **mirrors("echo")),
            ):
                assert answered.status_code == 400, (body[:40], answered.text)
                assert answered.json()["error"]["code"] in codes, body[:40]
        assert said((await place.post(call("echo"), session)).json()) == "{}"


async def test_text_that_is_none_is_not_passed_on() -> None:
    """Bad UTF-8 inside of what is otherwise a request."""
    async with serving(Bench().server) as place:
        session = await place.shake_hands()
        bad = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","\xff":1}}'
        answered = await place.post(bad, session)
        assert (answered.status_code, answered.json()["error"]["code"]) == (400, -32700)


async def test_wrong_kinds_of_content_are_refused() -> None:
    """A form in a browser can send text without asking first; it cannot send JSON."""
    async with serving(Bench().server) as place:
        assert (await place.post(initialize(), content_type="text/plain")).status_code == 415
        assert (await place.post(initialize(), accept="application/json")).status_code == 406
        session = await place.shake_hands()
        headers = place.headers(session, accept="application/json")
        assert (await place.web.get(place.url, headers=headers)).status_code == 406


async def test_a_session_cannot_be_guessed_or_used_with_another_token() -> None:
    """It looks the same as one that never was."""
    async with serving(Bench().server) as place:
        mine = await place.shake_hands()
        again = await place.shake_hands()
        assert mine != again
        assert len(mine) >= 43
        guesses = [mine[:-1], mine + "A", again[::-1], "0", "../" + mine]
        stolen = await place.post(call("echo"), mine, token=OTHER_TOKEN)
        texts = {(stolen.status_code, stolen.text)}
        for guess in guesses:
            refused = await place.post(call("echo"), guess)
            texts.add((refused.status_code, refused.text))
        assert len(texts) == 1
        assert stolen.status_code == 404
        ended = await place.web.delete(place.url, headers=place.headers(mine, token=OTHER_TOKEN))
        assert ended.status_code == 404
        assert (await place.post(call("echo"), mine)).status_code == 200


async def test_who_comes_by_another_token_is_somebody_else() -> None:
    """And the same token is the same principal in both eras and in every session."""
    async with serving(Bench().server) as place:
        first, second = await place.shake_hands(), await place.shake_hands()
        other = await place.shake_hands(token=OTHER_TOKEN)
        mine = {
            said((await place.post(call("who"), first)).json()),
            said((await place.post(call("who"), second)).json()),
            said((await place.stateless("who")).json()),
        }
        theirs = said((await place.post(call("who"), other, token=OTHER_TOKEN)).json())
        assert len(mine) == 1
        assert theirs not in mine


async def test_two_clients_of_one_hub_do_not_see_each_others_threads(tmp_path: Path) -> None:
    """A thread that somebody else started cannot be spoken to while it is open."""
    engine = HandEngine()
    async with Hub(engine, HandClock()) as hub, serving(dropin(hub, HandClock(), tmp_path)) as place:
        session = await place.shake_hands()
        other = await place.shake_hands(token=OTHER_TOKEN)
        started = asyncio.create_task(place.post(call("codex", {"prompt": "hello"}), session))
        await _until(lambda: bool(engine.threads) and _thread(engine).turn_id is not None)
        _thread(engine).end(text="done")
        thread_id = (await started).json()["result"]["structuredContent"]["threadId"]
        turns = len(_thread(engine).started)
        reply = call("codex-reply", {"threadId": thread_id, "prompt": "tell me"})
        refused = (await place.post(reply, other, token=OTHER_TOKEN)).json()
        assert refused["result"]["isError"] is True
        assert len(_thread(engine).started) == turns


def _thread(engine: HandEngine) -> Any:
    return next(iter(engine.threads.values()))


async def _until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0)


async def test_a_client_that_does_not_read_loses_notifications_and_holds_up_nobody() -> None:
    """Its answer still comes when it reads again."""
    bench = Bench()
    async with serving(bench.server) as place:
        session = await place.shake_hands()
        reader, writer = await _raw(place, call("flood"), session)
        await bench.started.wait()
        assert bench.refused_notices == 1
        assert said((await place.post(call("echo", request_id=2), session)).json()) == "{}"
        received = await reader.read()
        assert received.rstrip(b"\r\n0").endswith(b"}")
        assert b'"text":"flooded"' in received[-1000:]
        writer.close()


async def test_a_client_that_never_reads_does_not_hold_up_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Its connection is broken off, in the middle of what it was sent, and nothing is complained of."""
    bench = Bench()
    async with serving(bench.server) as place:
        session = await place.shake_hands()
        reader, writer = await _raw(place, call("flood"), session)
        await bench.started.wait()
    received = await reader.read()
    writer.close()
    assert b"flooded" not in received
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_body_that_never_comes_is_not_waited_for() -> None:
    """The connection is given up."""
    async with serving(Bench().server, timing=HttpTiming(body_s=0.01)) as place:
        reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
        head = "".join(f"{name}: {value}\r\n" for name, value in place.headers().items())
        request = f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{place.port}\r\ncontent-length: 100\r\n{head}\r\n{{"
        writer.write(request.encode())
        received = await reader.read()
        assert received.startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_bytes_that_are_not_http_are_refused_and_the_server_goes_on() -> None:
    """Also a request that names two hosts, or the session twice."""
    async with serving(Bench().server) as place:
        host = f"host: 127.0.0.1:{place.port}\r\n"
        twice = "mcp-session-id: a\r\nmcp-session-id: b\r\n"
        for wrong in (
            "\x16\x03\x01\r\n\r\n",
            f"POST /mcp HTTP/1.1\r\n{host}{host}\r\n",
            f"GET /mcp HTTP/1.1\r\n{host}authorization: Bearer {TOKEN}\r\n{twice}\r\n",
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
            writer.write(wrong.encode("latin-1"))
            assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
            writer.close()
        await place.shake_hands()


async def test_too_many_sessions_push_out_the_one_that_was_idle_for_longest() -> None:
    """A client that never says goodbye does not lock the others out."""
    async with serving(Bench().server) as place:
        first = await place.shake_hands()
        kept = await place.shake_hands()
        async with place.streamed(None, kept, method="GET"):
            for _ in range(MAX_SESSIONS - 1):
                assert (await place.post(initialize())).status_code == 200
            assert (await place.post(call("echo"), first)).status_code == 404
            assert (await place.post(call("echo"), kept)).status_code == 200


async def test_a_client_that_breaks_off_in_the_middle_does_not_keep_its_call_running() -> None:
    """In the stateless era it is over at once; with a handshake when nobody comes back for it."""
    bench = Bench()
    patient = HttpTiming(idle_s=1e9)
    async with serving(bench.server, timing=patient) as place:
        session = await place.shake_hands()
        _, writer = await _raw(place, call("wait"), session)
        await bench.started.wait()
        writer.transport.abort()
        while not bench.cancelled.is_set():
            place.clock.advance(patient.resume_s + 1)
            await asyncio.sleep(0)
    bench = Bench()
    async with serving(bench.server) as place:
        _, writer = await _raw(place, modern("wait"), **mirrors("wait"))
        await bench.started.wait()
        writer.transport.abort()
        await bench.cancelled.wait()


async def _raw(
    place: Place, body: Any, session: str = "", **more: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A request by hand; nothing of its response is read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", place.port, limit=1024)
    content = json.dumps(body)
    headers = {
        "host": f"127.0.0.1:{place.port}",
        "connection": "close",
        "content-length": str(len(content)),
        **place.headers(session, **more),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n{content}".encode())
    return reader, writer
