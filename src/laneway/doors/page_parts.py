"""The contract between the page in the browser and its parts: what they serve, and what they tell browsers.

A part (the chat, live sessions, jobs, …) answers requests below `/api/NAME/`, publishes events, and brings
the JavaScript that shows it. `laneway.doors.console` owns the page and its HTTP server; who may speak is
decided there, before a part is asked. docs/page.md explains how a part is added.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import parse_qs

import msgspec

from laneway.doors.gate import AccessDenied
from laneway.doors.http.exchange import HttpExchange

MAX_JSON_BYTES = 1024 * 1024
"""Of a request's body, unless it is an upload: much more than anybody types."""
BODY_S = 60.0
"""For the body of one request to arrive."""
JSON = "application/json"

T = TypeVar("T")


class PageRefused(AccessDenied):
    """What a part raises: the HTTP status, and a sentence for the person at the page."""


class PageReply(msgspec.Struct, frozen=True, kw_only=True):
    """A part's answer to one request."""

    body: bytes = b"{}"
    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


def json_reply(value: object, status: int = 200) -> PageReply:
    return PageReply(body=msgspec.json.encode(value), status=status)


class PageRequest:
    """A request of somebody who has the token."""

    def __init__(self, exchange: HttpExchange, path: tuple[str, ...], key: str = "") -> None:
        self.path = path
        """What follows the part's name: `("conversations", "c1")`."""
        self.key = key
        """Of a POST: its idempotency key. The same key again is answered without asking the part again."""
        self._exchange = exchange

    def header(self, name: str) -> str | None:
        return self._exchange.headers.get(name)

    def query(self, name: str) -> str | None:
        """The first value of that name in the address."""
        try:
            found = parse_qs(self._exchange.query.decode("ascii"), max_num_fields=32).get(name)
        except ValueError:
            raise PageRefused(400, "The address of this request cannot be read") from None
        return found[0] if found else None

    def whole(self, name: str, default: int) -> int:
        """A whole number in the address, 0 or more."""
        text = self.query(name)
        if text is None:
            return default
        if not (text.isascii() and text.isdigit() and len(text) <= 15):
            raise PageRefused(400, f"{name} is a whole number")
        return int(text)

    async def value(self, shape: type[T], max_bytes: int = MAX_JSON_BYTES) -> T:
        """The JSON body, which has to be of this shape."""
        body = await self._exchange.body(BODY_S, max_bytes)
        try:
            return msgspec.json.decode(body, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise PageRefused(400, "The body of this request is not what is expected here") from None

    def pieces(self, max_bytes: int, timeout_s: float = BODY_S) -> AsyncIterator[bytes]:
        """The body of an upload, as it arrives."""
        return self._exchange.pieces(timeout_s, max_bytes)


class PageFeed(Protocol):
    """Tells all browsers what happens in one part. Called on the event loop; it returns at once."""

    def publish(self, topic: str, data: object) -> None:
        """`data` becomes JSON. A browser that is away too long is told to read everything anew instead."""
        ...

    @property
    def is_watched(self) -> bool:
        """Whether any browser listens now."""
        ...

    async def wait_watched(self) -> None:
        """Wait until a browser listens, for parts that have to look for news."""
        ...


class PagePart(Protocol):
    """One part of the page. Its folder of static files is public: it holds nothing private."""

    @property
    def name(self) -> str:
        """In addresses: lower-case letters."""
        ...

    @property
    def title(self) -> str:
        """In the page's navigation."""
        ...

    @property
    def static(self) -> Path:
        """The folder of its static files. `NAME.js` shows it; `NAME.css`, if there is one, is its style."""
        ...

    def running(self, feed: PageFeed) -> AbstractAsyncContextManager[None]:
        """Entered before the first request and left after the last: the life of the part's own tasks."""
        ...

    async def get(self, request: PageRequest) -> PageReply:
        """Raises `PageRefused`."""
        ...

    async def post(self, request: PageRequest) -> PageReply:
        """Raises `PageRefused`."""
        ...


class PageHost(Protocol):
    """Serves the page with further parts; made where everything is composed."""

    async def serve(self, parts: Sequence[PagePart]) -> None:
        """For ever, until cancelled."""
        ...


Announce = Callable[[str], None]
"""Is given the address with the token, once browsers can connect."""


def unknown(what: str = "page") -> PageRefused:
    return PageRefused(404, f"There is no such {what}")
