"""Idle connections by the hundred, against every server that listens: who may come in still comes in."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx2
import pytest

from laneway.doors.local.socket_files import live_sockets
from tests.cli.support import laneway
from tests.cli.watching import places
from tests.doors.acp.sockets import listener
from tests.doors.acp.support import stage as acp_stage
from tests.doors.mcp.http_support import BOTH, LATEST, call, initialize
from tests.doors.mcp.support import Stage, stage

TOKEN = "a-token-that-only-we-know"
NETWORK_CROWD = 600
"""More than either server on the network has room for."""
LOCAL_CROWD = 80
"""More than the local socket has room for."""
CALLERS = 32
"""Who come at once: one whom a full queue makes wait, which costs a second, does not hold up the others."""
DEADLINE_S = 60.0


@contextmanager
def crowd(count: int, connect: Callable[[], socket.socket], sent: bytes = b"") -> Iterator[None]:
    """So many connections, each of which says this and then nothing."""
    opened: list[socket.socket] = []
    try:
        with ThreadPoolExecutor(CALLERS) as pool:
            connecting = [pool.submit(connect) for _ in range(count)]
            opened.extend(each.result() for each in connecting)
        for each in opened:
            try:
                each.sendall(sent)
            except OSError:
                pass  # it was broken off already
        yield
    finally:
        for each in opened:
            each.close()


@asynccontextmanager
async def http_server(here: Stage) -> AsyncIterator[str]:
    """`laneway mcp --http`, gone at the end; its URL."""
    env = {"LANEWAY_HTTP_TOKEN": TOKEN}
    process = await here.spawn("-m", "laneway", "mcp", "--http", "127.0.0.1:0", env=env)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            line = (await process.stderr.readline()).decode()
            found = re.search(r"http://\S+", line)
            assert found is not None, line
            yield found[0]
            process.send_signal(signal.SIGTERM)
            rest = await process.stderr.read()
            assert await process.wait() == 0, rest.decode()
            assert b"Traceback" not in rest
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n"])
async def test_idle_connections_do_not_lock_anybody_out_of_mcp_over_http(tmp_path: Path, sent: bytes) -> None:
    """Without a token, silent or in the middle of a request; a client with the token starts a session."""
    headers = {
        "authorization": f"Bearer {TOKEN}",
        "accept": BOTH,
        "content-type": "application/json",
        "mcp-protocol-version": LATEST,
    }
    async with stage(tmp_path) as here, http_server(here) as url:
        port = int(httpx2.URL(url).port or 0)
        with crowd(NETWORK_CROWD, lambda: socket.create_connection(("127.0.0.1", port)), sent):
            async with httpx2.AsyncClient(timeout=DEADLINE_S) as web:
                met = await web.post(url, headers=headers, json=initialize())
                assert met.status_code == 200, met.text
                headers["mcp-session-id"] = met.headers["mcp-session-id"]
                asked = call("codex", {"prompt": "%say hello"})
                answered = await web.post(url, headers=headers, json=asked)
                assert '"hello"' in answered.text
                assert '"isError":true' not in answered.text


@pytest.mark.parametrize("sent", [b"", b"GET /acp HTTP/1.1\r\nhost: 127.0.0.1\r\n"])
async def test_idle_connections_do_not_lock_anybody_out_of_acp_on_a_websocket(
    tmp_path: Path, sent: bytes
) -> None:
    """Nor do they hold up its end."""
    async with acp_stage(tmp_path) as here, listener(here) as server:
        with crowd(NETWORK_CROWD, lambda: socket.create_connection(server.place), sent):
            async with server.client() as client:
                session = await client.new()
                assert await client.prompt(session, "%say hello") == {"stopReason": "end_turn"}
                assert client.messages(session) == ["hello"]
            server.process.terminate()
            assert await server.process.wait() == 0


@pytest.mark.parametrize("sent", [b"", b'{"jsonrpc":"2.0","id":1,"meth', b"{}\n"])
async def test_idle_connections_do_not_keep_a_terminal_from_its_sessions(
    tmp_path: Path, run: Path, sent: bytes
) -> None:
    """Of the same user, on the local socket: `laneway sessions stop` stops."""
    async with stage(tmp_path) as here, here.server("mcp", env=places(run)) as client:
        calling = client.start("codex", identity="ann", prompt="%run sleep 3600\n%say never")
        await client.wait_event("exec_command_begin")
        (socket_file,) = live_sockets(places(run))

        def connect() -> socket.socket:
            opened = socket.socket(socket.AF_UNIX)
            opened.connect(os.fspath(socket_file.path))
            return opened

        with crowd(LOCAL_CROWD, connect, sent):
            env = {**places(run), "ATM_HOME": str(tmp_path)}
            stopped = await laneway("sessions", "stop", "ann", env=env)
        assert (stopped.code, stopped.out, stopped.err) == (0, "ann was stopped.\n", "")
        assert (await calling)["result"]["isError"]
