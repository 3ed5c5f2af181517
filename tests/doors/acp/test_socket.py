"""ACP over a WebSocket: who gets in, whose sessions are whose, and what a rough client costs."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from laneway.doors.acp.handshake import MAX_MESSAGE_BYTES
from tests.doors.acp.shared import Shared
from tests.doors.acp.sockets import listener
from tests.doors.acp.support import FULL, Message, Refused, select, stage


async def test_a_conversation_over_a_socket_is_that_of_a_pipe(shared: Shared) -> None:
    """New, prompt, permission, options, list and load: every message is held against the schema."""
    async with shared.stage() as here, here.listener() as server:
        async with server.client(FULL) as client:
            session = await client.new()
            client.on_permission = lambda params: select(params, "allow_once")
            done = await client.prompt(session, "%run! echo out\n%patch f.txt é🐢\n%say Hello.")
            assert done == {"stopReason": "end_turn"}
            assert client.text(session) == "Hello."
            assert client.open_tool_calls() == {}
            assert (here.work / "f.txt").read_text() == "é🐢\n"
            params = {"sessionId": session, "configId": "mode", "value": "read-only"}
            assert (await client.ask("session/set_config_option", params))["configOptions"]
        async with server.client(FULL) as client:
            where = {"cwd": str(here.work)}
            while not (listed := await client.ask("session/list", where))["sessions"]:
                pass  # for an instant Codex does not list a thread that it is just closing
            assert [one["sessionId"] for one in listed["sessions"]] == [session]
            assert (await client.load(session))["modes"]["currentModeId"] == "read-only"
            assert client.text(session) == "Hello."


async def test_only_whoever_knows_the_token_and_comes_by_our_name_gets_in(shared: Shared) -> None:
    """Told before a single message is read."""
    async with shared.stage() as here, here.listener() as server:
        good = server.bearer
        refused: list[tuple[int, dict[str, str]]] = [
            (401, {}),
            (401, {"Authorization": "Bearer " + "x" * len(server.token)}),
            (401, {"Authorization": f"Basic {server.token}"}),
            (401, {"Authorization": "Bearer "}),
            (403, {**good, "Origin": "https://evil.example"}),
        ]
        for status, headers in refused:
            assert await _refusal(server.url, headers) == status, headers
        host, port = server.place
        assert await _refusal("ws://evil.example/acp", good, host=host, port=port) == 421
        assert await _refusal(server.url.replace("/acp", "/"), good) == 404
        assert await _refusal(server.url + "/more", good) == 404
        async with server.client() as client:
            assert client.hello["protocolVersion"] == 1


async def test_what_is_no_handshake_is_no_reason_for_a_traceback(shared: Shared) -> None:
    """Scanners, plain HTTP, and connections that say nothing."""
    async with shared.stage() as here, here.listener() as server:
        for said in (
            b"",
            b"\x16\x03\x01\x02\x00\x01",
            b"GET /acp HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /acp HTTP/1.1\r\nHost: x\r\nHost: y\r\nUpgrade: websocket\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
            b"GET /acp HTTP/1.1\r\n" + b"X: y\r\n" * 2000,
        ):
            reader, writer = await asyncio.open_connection(*server.place)
            writer.write(said)
            writer.write_eof()
            answer = await reader.read()
            assert b" 500 " not in answer.partition(b"\r\n")[0], (said, answer)
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        async with server.client() as client:
            assert client.hello["protocolVersion"] == 1


async def test_a_header_need_not_be_ascii(shared: Shared) -> None:
    """Browsers and proxies send what they like in those that decide nothing."""
    async with shared.stage() as here, here.listener() as server:
        reader, writer = await asyncio.open_connection(*server.place)
        lines = (
            "GET /acp HTTP/1.1",
            f"Host: {server.place[0]}:{server.place[1]}",
            f"Authorization: Bearer {server.token}",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            "X-Name: caf\xe9",
        )
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        assert await reader.readline() == b"HTTP/1.1 101 Switching Protocols\r\n"
        writer.close()
        await writer.wait_closed()


async def test_a_token_of_the_users_own_is_not_told(tmp_path: Path) -> None:
    """Who chose it knows it; and a log is no place for it."""
    token = "a-token-of-the-user's-own"
    env = {"LANEWAY_HTTP_TOKEN": token}
    async with stage(tmp_path) as here, listener(here, env=env) as server:
        async with server.client() as client:
            assert client.hello["protocolVersion"] == 1
        assert token not in "".join(server.lines)


async def test_a_client_cannot_touch_the_session_of_another(shared: Shared) -> None:
    """To it there is none, except in the list; it can neither be taken nor deleted while it is open."""
    async with (
        shared.stage() as here,
        here.listener() as server,
        server.client() as one,
        server.client() as other,
    ):
        session = await one.new()
        await one.prompt(session, "%say mine")
        going = one.start_prompt(session, "%hang")
        where = {"sessionId": session}
        touches: list[tuple[str, Message]] = [
            ("session/prompt", {**where, "prompt": [{"type": "text", "text": "%say yours"}]}),
            ("session/set_mode", {**where, "modeId": "full"}),
            ("session/set_config_option", {**where, "configId": "mode", "value": "full"}),
            ("session/close", where),
        ]
        for method, params in touches:
            assert (await other.refusal(method, params))["code"] == -32002, method
        other.tell("session/cancel", where)
        whole = {**where, "cwd": str(here.work), "mcpServers": []}
        takes: dict[str, Message] = {
            "session/load": whole,
            "session/resume": whole,
            "session/delete": where,
        }
        for method, params in takes.items():
            error = await other.refusal(method, params)
            assert (error["code"], error["data"]["kind"]) == (-32600, "session_in_use"), method
            assert "another client" in error["message"], method
        assert not going.done()
        one.cancel(session)
        assert await going == {"stopReason": "cancelled"}
        assert other.updates == []
        assert await one.prompt(session, "%say still mine") == {"stopReason": "end_turn"}


@pytest.mark.parametrize("step", ["%run touch begun; sleep 600", "%run! echo asked", "%hang"])
async def test_a_session_whose_client_vanished_in_a_turn_goes_on_at_once_in_the_next(
    shared: Shared, step: str
) -> None:
    """Nothing of the lost turn runs on; the next client is not told that somebody has the session."""
    async with shared.stage() as here, here.listener() as server:
        async with server.client() as client:
            session = await client.new()
            await client.prompt(session, "%say before")
            client.on_permission = lambda params: None
            client.start_prompt(session, f"{step}\n%say never")
            while len(here.requests) < 2:
                await asyncio.sleep(0)
            if "%run" in step:
                await client.wait_kind("tool_call", session)
            client.vanish()
        async with server.client() as client:
            await client.load(session)
            assert client.messages(session) == ["before"]
            assert client.open_tool_calls() == {}
            assert await client.prompt(session, "%say after") == {"stopReason": "end_turn"}
            assert client.messages(session) == ["before", "after"]


@pytest.mark.parametrize("method", ["session/load", "session/new"])
async def test_a_client_that_vanishes_while_a_session_opens_keeps_nobody_out(
    shared: Shared, method: str
) -> None:
    """The session opens for nobody and is given up."""
    async with shared.stage() as here, here.listener() as server:
        async with server.client() as client:
            session = await client.new()
            await client.prompt(session, "%say before")
        for turns in (0, 1, 3, 6):
            async with server.client() as client:
                named = {"sessionId": session} if method == "session/load" else {}
                client.request(method, {**named, "cwd": str(here.work), "mcpServers": []})
                for _ in range(turns * 10):
                    await asyncio.sleep(0)
                client.vanish()
        async with server.client() as client:
            await client.load(session)
            assert client.messages(session) == ["before"]
            assert await client.prompt(session, "%say after") == {"stopReason": "end_turn"}


async def test_a_client_that_asks_and_does_not_read_and_vanishes_leaves_nothing(shared: Shared) -> None:
    """We had stopped reading from it, and so could not hear that it was gone."""
    async with shared.stage() as here, here.listener() as server, server.client() as other:
        async with server.client(compression=None) as client:
            session = await client.new()
            await client.prompt(session, "%say before")
            client.socket.transport.pause_reading()
            client.start_prompt(session, "%hang")
            # Each is answered with its own id: more than we, websockets and the kernel keep on both sides.
            for number in range(96):
                name = str(number) + "x" * 1024 * 1024
                client.send_frame(json.dumps({"jsonrpc": "2.0", "id": name, "method": "no/such"}))
            before = 0
            while not client.unsent_bytes == before > 0:  # until the server has stopped to read from it
                before = client.unsent_bytes
                for _ in range(30):
                    await other.refusal("no/such", {}, lint=False)
            client.vanish()
        await other.load(session)
        assert other.messages(session) == ["before"]


async def test_frames_of_every_kind(shared: Shared) -> None:
    """Binary is read as text, newlines are white space, nonsense is answered and costs nothing else."""
    async with shared.stage() as here, here.listener() as server, server.client() as client:
        session = await client.new()
        client.send_frame(b'{"jsonrpc":"2.0",\n"id":"binary",\r\n"method":"session/list",\n"params":{}}')
        client.send_frame('{"jsonrpc":"2.0","id":"white",\r\n\t"method":\r"no/such"}')
        for nonsense in (b"", "", "\n\n", "nonsense", b"\xff\xfe", "[]", "{", "[" * 5000, "null", '"x"'):
            client.send_frame(nonsense)
        assert await client.prompt(session, "%say fine") == {"stopReason": "end_turn"}
        while not {"binary", "white"} <= {stray.get("id") for stray in client.strays}:
            await asyncio.sleep(0)  # a list may take Codex longer than a turn
        assert {stray["error"]["code"] for stray in client.strays if stray["id"] is None} == {-32700, -32600}
        client.lint.violations.clear()  # answers under null, and to ids that the linter did not hear of


async def test_a_frame_that_is_too_long_ends_that_connection_and_no_other(shared: Shared) -> None:
    """With the code that says why; the session goes on in the next one."""
    async with shared.stage() as here, here.listener() as server, server.client() as other:
        async with server.client() as client:
            session = await client.new()
            await client.prompt(session, "%say before")
            client.send_frame(" " * (MAX_MESSAGE_BYTES + 1))
            await client.socket.wait_closed()
            assert client.socket.close_code == 1009
        await other.load(session)
        assert other.messages(session) == ["before"]


async def test_a_client_that_reads_slowly_gets_all_of_a_long_stream(shared: Shared) -> None:
    """It stops reading for most of 20,000 deltas: nothing is lost, and the prompt is answered."""
    words = 20_000
    async with shared.stage() as here, here.listener() as server, server.client() as client:
        session = await client.new()
        client.socket.transport.pause_reading()
        going = client.start_prompt(session, f"%stream {words} words")
        # Another client has its own conversation meanwhile, to the end of a turn of the same length.
        async with server.client() as other:
            beside = await other.new()
            assert await other.prompt(beside, f"%stream {words} words") == {"stopReason": "end_turn"}
            assert len(other.text(beside).split()) == words
        assert client.updates[1:] == []
        client.socket.transport.resume_reading()
        assert await going == {"stopReason": "end_turn"}
        assert client.text(session) == other.text(beside)


async def test_a_signal_ends_it_in_order_with_clients_at_work(tmp_path: Path) -> None:
    """One streams, one is asked, one does not read: all are told goodbye, none holds it up."""
    async with (
        stage(tmp_path) as here,
        listener(here) as server,
        server.client() as talks,
        server.client(FULL) as asked,
        server.client() as deaf,
    ):
        asked.on_permission = lambda params: None
        talking = talks.start_prompt(await talks.new(), "%stream 100000 words over 60 seconds")
        asking = asked.start_prompt(await asked.new(), "%run! echo asked")
        silent = await deaf.new()
        deaf.socket.transport.pause_reading()
        unheard = deaf.start_prompt(silent, "%stream 100000 words")
        await talks.wait_kind("agent_message_chunk")
        await asked.wait_asked("session/request_permission")
        server.process.terminate()
        assert await server.process.wait() == 0
        for going in (talking, asking):
            with pytest.raises((EOFError, Refused)):
                await going
        assert talks.socket.close_code == asked.socket.close_code == 1001
        deaf.socket.transport.resume_reading()
        unheard.cancel()


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
async def test_an_address_that_others_reach_must_be_meant(tmp_path: Path, address: str) -> None:
    """Whoever has the token can run commands here."""
    async with stage(tmp_path) as here:
        process = await here.spawn("-m", "laneway", "acp", "--ws", address)
        _, said = await process.communicate()
        assert process.returncode == 2
        assert b"--ws-remote" in said
        assert b"Traceback" not in said


def test_the_socket_library_is_imported_only_to_serve_and_its_absence_is_explained() -> None:
    """Who serves on standard input and output needs no further package."""
    script = """
import asyncio, sys
import laneway.cli.acp, laneway.doors.acp.socket as door
assert "websockets" not in sys.modules, sys.modules
sys.modules["websockets"] = None
from laneway.base.errors import UsageError
try:
    asyncio.run(door.serve_socket(None, None, host="127.0.0.1", port=0, tokens=[], stop=None, on_ready=print))
except UsageError as problem:
    print(problem)
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("Serving on a WebSocket needs one more package: install it with `")
    assert ran.stdout.endswith(" websockets`.\n")


async def _refusal(url: str, headers: dict[str, str], **where: Any) -> int:
    with pytest.raises(InvalidStatus) as refused:
        async with connect(url, additional_headers=headers, **where):
            pass
    return refused.value.response.status_code
