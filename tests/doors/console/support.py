"""A page with a small part for tests, spoken to without a socket, and served on one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from laneway.doors.console.event_feed import EventFeed
from laneway.doors.console.page_app import PageApp
from laneway.doors.console.page_server import own_origins, serve_page
from laneway.doors.gate import Gate, host_names
from laneway.doors.page_parts import (
    PageFeed,
    PagePart,
    PageRefused,
    PageReply,
    PageRequest,
    json_reply,
    unknown,
)

TOKEN = "page-token-0123456789"
PORT = 8123
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
DEADLINE_S = 30.0


class Noted(msgspec.Struct):
    text: str


class NotesPart:
    """Takes notes, and tells browsers of them."""

    name = "notes"
    title = "Notes"

    def __init__(self, static: Path) -> None:
        self.static = static
        self.notes: list[str] = []
        self.is_running = False
        self.feed: PageFeed

    @asynccontextmanager
    async def running(self, feed: PageFeed) -> AsyncIterator[None]:
        self.feed, self.is_running = feed, True
        try:
            yield
        finally:
            self.is_running = False

    async def get(self, request: PageRequest) -> PageReply:
        if request.path == ("all",):
            return json_reply(self.notes[request.whole("after", 0) :])
        if request.path == ("bug",):
            raise RuntimeError("secret detail")
        raise unknown("note")

    async def post(self, request: PageRequest) -> PageReply:
        noted = await request.value(Noted)
        if not noted.text:
            raise PageRefused(422, "A note has words")
        self.notes.append(noted.text)
        self.feed.publish("noted", noted.text)
        return json_reply({"count": len(self.notes)})


class Answered(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class PageWithoutSocket:
    """The application, called as uvicorn calls it."""

    def __init__(self, *parts: PagePart, feed: EventFeed | None = None, ping_s: float = 60.0) -> None:
        self.feed = feed or EventFeed("run")
        hosts = host_names("127.0.0.1", PORT)
        self.app = PageApp(
            parts,
            self.feed,
            Gate([TOKEN], hosts, own_origins(hosts, PORT)),
            own_origins(hosts, PORT),
            ping_s=ping_s,
        )

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        drop: tuple[str, ...] = (),
        pieces: list[bytes] | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
        **more: str,
    ) -> Answered:
        """One request with everything that a browser of ours sends; `drop` leaves headers out."""
        sent: list[dict[str, Any]] = []

        async def send(message: Any) -> None:
            sent.append(dict(message))

        scope = self.scope(method, path, {**headers, **more}, drop=drop)
        await self.app(scope, receiver(pieces or [body or b""]), send)
        start = sent[0]
        found = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answered(start["status"], found, b"".join(each.get("body", b"") for each in sent[1:]))

    def scope(
        self, method: str, path: str, headers: dict[str, str], *, drop: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        usual = {"host": HOST, "authorization": f"Bearer {TOKEN}"}
        if method == "POST":
            usual |= {"origin": ORIGIN, "idempotency-key": "key-00000001"}
        usual |= {name.replace("_", "-"): value for name, value in headers.items()}
        path, _, query = path.partition("?")
        return {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in usual.items() if name not in drop],
        }

    @asynccontextmanager
    async def reading(self, after: str | None = None) -> AsyncIterator[StreamOfEvents]:
        """A browser's stream of events, which is read piece by piece."""
        stream = StreamOfEvents()
        headers = {"last-event-id": after} if after is not None else {}
        scope = self.scope("GET", "/api/events", headers)
        task = asyncio.create_task(self.app(scope, stream.receive, stream.send))
        try:
            yield stream
        finally:
            stream.hang_up()
            async with asyncio.timeout(DEADLINE_S):
                await task


class StreamOfEvents:
    def __init__(self) -> None:
        self.status = 0
        self.may_read = asyncio.Event()
        """Cleared: a browser that does not read."""
        self.may_read.set()
        self._gone = asyncio.Event()
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._text = ""

    async def receive(self) -> dict[str, Any]:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            await self.may_read.wait()
            self._pieces.put_nowait(message.get("body", b""))

    def hang_up(self) -> None:
        self.may_read.set()
        self._gone.set()

    async def next(self) -> dict[str, str]:
        """The next event, without comments."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                while "\n\n" in self._text:
                    block, _, self._text = self._text.partition("\n\n")
                    fields = dict(
                        line.split(": ", 1) for line in block.split("\n") if not line.startswith(":")
                    )
                    if "data" in fields:
                        return fields
                self._text += (await self._pieces.get()).decode().replace("\r\n", "\n")

    async def news(self) -> Any:
        """What the next event of a part says."""
        while True:
            event = await self.next()
            if "event" not in event:
                return json.loads(event["data"])["data"]


def receiver(pieces: list[bytes]) -> Any:
    waiting = list(pieces)

    async def receive() -> dict[str, Any]:
        piece = waiting.pop(0) if waiting else b""
        return {"type": "http.request", "body": piece, "more_body": bool(waiting)}

    return receive


@asynccontextmanager
async def served_page(*parts: PagePart, token: str = TOKEN, **more: Any) -> AsyncIterator[str]:
    """The page on a socket; its address with the token."""
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve_page(parts, token=token, on_ready=ready.set_result, **more))
    try:
        waited: set[asyncio.Future[Any]] = {serving, ready}
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            await serving
        yield ready.result()
    finally:
        serving.cancel()
        await asyncio.wait({serving})
