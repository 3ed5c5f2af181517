"""`laneway acp --ws` as a real process, and clients of it on real WebSockets."""

from __future__ import annotations

import asyncio
import re
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from laneway.base.ids import new_id
from tests.doors.acp.client import DEADLINE_S, END_S, Client
from tests.doors.acp.support import MARK, MAX_LAST_WORDS, Stage, assert_gone
from tests.doors.stage import MAX_LINE_BYTES, Message

_URL = re.compile(rb"laneway: serving ACP on (ws://\S+)\n")
_TOKEN = re.compile(rb"laneway: bearer token \(for this run\): (\S+)\n")


class Listener:
    """The server: where it listens and what it said. `process` may be ended by a test."""

    def __init__(self, here: Stage, process: Process, url: str, token: str, mark: str) -> None:
        self.process = process
        self.url = url
        self.token = token
        self.mark = mark
        """By which all that it started is found."""
        self.lines: list[str] = []
        """What it said on standard error since."""
        self.drain = asyncio.ensure_future(_drain(process, self.lines))
        self._here = here

    @asynccontextmanager
    async def client(
        self,
        capabilities: Message | None = None,
        *,
        unstable: Collection[str] = (),
        compression: str | None = "deflate",
    ) -> AsyncIterator[SocketClient]:
        """A client that has shaken hands; at the end neither side has said what it must not."""
        socket = await connect(
            self.url,
            additional_headers=self.bearer,
            compression=compression,
            max_size=MAX_LINE_BYTES,
            close_timeout=END_S,
        )
        client = SocketClient(socket, self, self._here, unstable)
        try:
            await client.initialize(capabilities)
            yield client
        finally:
            await client.aclose()
        client.lint.assert_clean()

    def assert_in_order(self) -> None:
        assert "Traceback" not in "".join(self.lines), "".join(self.lines)

    @property
    def place(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("ws://").removesuffix("/acp").rpartition(":")
        return host, int(port)

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


class SocketClient(Client):
    """A client whose lines are frames. `process` is the server, which others use as well."""

    def __init__(
        self, socket: ClientConnection, listener: Listener, here: Stage, unstable: Collection[str]
    ) -> None:
        self.socket = socket
        self._listener = listener
        self._unsent: asyncio.Queue[str | bytes] = asyncio.Queue()
        super().__init__(listener.process, here.work, here.places, unstable)
        self._tasks.append(asyncio.ensure_future(self._write()))

    def send_bytes(self, data: bytes) -> None:
        self.send_frame(data.decode().rstrip("\n"))

    def send_frame(self, frame: str | bytes) -> None:
        """Text or binary, as it stands."""
        self._unsent.put_nowait(frame)

    @property
    def unsent_bytes(self) -> int:
        """What the server has not taken, at least; whole frames that wait behind it count as one."""
        return self._unsent.qsize() + self.socket.transport.get_write_buffer_size()

    async def _write(self) -> None:
        try:
            while True:
                await self.socket.send(await self._unsent.get())
        except ConnectionClosed:
            pass

    async def _lines_in(self) -> AsyncIterator[bytes]:
        try:
            while True:
                frame: Any = await self.socket.recv()
                assert isinstance(frame, str), "ACP is text"
                assert "\n" not in frame, "one message is one line, on every transport"
                yield frame.encode()
        except ConnectionClosed:
            pass

    async def _drain(self) -> None:
        """Its server's standard error is the listener's to read."""

    @property
    def stderr(self) -> str:
        return "".join(self._listener.lines)

    def vanish(self) -> None:
        """As a client that is killed: without a word."""
        self.socket.transport.abort()

    async def aclose(self) -> None:
        await self.socket.close()
        self._tasks[-1].cancel()
        ends = await asyncio.gather(*self._tasks, return_exceptions=True)
        for waiting in self._waiting.values():
            waiting.cancel()
        for end in ends:
            if isinstance(end, Exception):
                raise end


@asynccontextmanager
async def listener(here: Stage, *words: str, env: dict[str, str] | None = None) -> AsyncIterator[Listener]:
    """`laneway acp --ws 127.0.0.1:0 <words>`; at the end it and all that it started are gone."""
    server = await started(here, *words, env=env)
    async with ending_server(server):
        yield server


async def started(
    here: Stage, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None
) -> Listener:
    """It listens. Whoever calls ends it: see `ending_server`."""
    mark = new_id("agent")
    process = await here.spawn(
        "-m", "laneway", "acp", "--ws", "127.0.0.1:0", *words, env={**(env or {}), MARK: mark}, cwd=cwd
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            url = await _told(process, _URL)
            token = (env or {}).get("LANEWAY_HTTP_TOKEN") or await _told(process, _TOKEN)
    except BaseException:
        process.kill()
        await process.wait()
        raise
    return Listener(here, process, url, token, mark)


@asynccontextmanager
async def ending_server(server: Listener) -> AsyncIterator[None]:
    """A server's last block: it is told to end, and leaves neither processes nor a traceback."""
    process, lines = server.process, server.lines
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield
            if process.returncode is None:
                process.terminate()
                assert await process.wait() == 0, lines
            await server.drain
    except Exception as failure:
        failure.add_note(f"The server's last words:\n{''.join(lines)[-MAX_LAST_WORDS:]}")
        raise
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    server.assert_in_order()
    await assert_gone(server.mark)


async def _told(process: Process, pattern: re.Pattern[bytes]) -> str:
    """What stands in the next line of standard error, which must be this one."""
    assert process.stderr is not None
    line = await process.stderr.readline()
    found = pattern.fullmatch(line)
    assert found is not None, line + await process.stderr.read()
    return found[1].decode()


async def _drain(process: Process, lines: list[str]) -> None:
    assert process.stderr is not None
    while line := await process.stderr.readline():
        lines.append(line.decode(errors="replace"))
