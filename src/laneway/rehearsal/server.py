"""An HTTP server on loopback that plays a scripted model, with just enough HTTP for Codex and Claude Code.

Owns one listening socket on 127.0.0.1 and the connections to it. Decides nothing:
`laneway.rehearsal.answer` does for Codex, `laneway.rehearsal.messages` for Claude Code.
Also a program of its own: `python -m laneway.rehearsal.server`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any

from laneway.rehearsal.answer import Cut, Forever, JsonReply, Pause, Piece, Refuse, answer

MAX_HEADER_BYTES = 64 * 1024
"""A request head; Codex sends about 1 kB."""
MAX_BODY_BYTES = 256 * 1024 * 1024
"""A whole conversation with images; past it the connection is closed."""

Answerer = Callable[[dict[str, Any]], Iterator[Piece]]


class ModelServer:
    """`async with ModelServer() as model:` — `model.base_url` is what Codex's config wants."""

    def __init__(self, answerer: Answerer = answer, routes: Mapping[str, Answerer] | None = None) -> None:
        self._routes = {"/v1/responses": answerer} if routes is None else routes
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.port = 0
        self.requests = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    async def __aenter__(self) -> ModelServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=MAX_HEADER_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # Codex disconnected, which is how it interrupts an answer
        except asyncio.CancelledError:
            if task.cancelling() == 0:
                raise
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; return whether the connection may carry another."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return False
        request_line, *header_lines = head.decode("latin-1").split("\r\n")
        method, path, *_ = [*request_line.split(" "), "", ""]
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in header_lines)}
        length = int(headers.get("content-length") or 0)
        if length > MAX_BODY_BYTES:
            return False
        body = await reader.readexactly(length)
        answerer = self._routes.get(path.split("?")[0])
        if method != "POST" or answerer is None:
            text = f"The rehearsal only answers POST {', '.join(self._routes)}."
            writer.write(_http(404, {"error": {"message": text}}, has_body=method != "HEAD"))
            await writer.drain()
            return True
        self.requests += 1
        return await self._answer(answerer(json.loads(body)), writer, reader)

    async def _answer(
        self, pieces: Iterator[Piece], writer: asyncio.StreamWriter, reader: asyncio.StreamReader
    ) -> bool:
        started = False
        for piece in pieces:
            match piece:
                case Refuse(status, text):
                    writer.write(_http(status, {"error": {"message": text}}))
                    await writer.drain()
                    return True
                case JsonReply(value):
                    writer.write(_http(200, value))
                    await writer.drain()
                    return True
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Forever():
                    await reader.read(1)  # returns when Codex disconnects
                    return False
                case Cut():
                    writer.transport.abort()
                    return False
                case bytes():
                    if not started:
                        writer.write(
                            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
                        )
                        started = True
                    writer.write(piece)
                    await writer.drain()
        return False


def _http(status: int, value: dict[str, Any], *, has_body: bool = True) -> bytes:
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} Rehearsed\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + (body if has_body else b"")


async def _serve_alone() -> None:
    """Serve until standard input closes; the port is the first line on standard output."""
    async with ModelServer() as model:
        print(model.port, flush=True)  # noqa: T201  the port is this program's answer
        loop = asyncio.get_running_loop()
        done = asyncio.StreamReader()
        import sys

        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(done), sys.stdin)
        await done.read()


if __name__ == "__main__":
    asyncio.run(_serve_alone())
