"""The page's ASGI application: who may speak, static files, the stream of events, and the requests of parts.

Every request passes the gate of the HTTP servers (`Host`, token); beyond it an `Origin` that is sent must be
our own, port included, and every POST sends one. Static files are served without the token.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

import msgspec

from laneway import __version__
from laneway.base.errors import LanewayError
from laneway.base.plain import plain
from laneway.doors.console.event_feed import EventFeed
from laneway.doors.console.repeated_posts import RepeatedPosts
from laneway.doors.console.static_files import StaticFile, static_files
from laneway.doors.gate import AccessDenied, Gate
from laneway.doors.http.exchange import HttpExchange, Receive, Scope, Send
from laneway.doors.http.streams import PING
from laneway.doors.page_parts import JSON, PagePart, PageRefused, PageReply, PageRequest, json_reply, unknown

log = logging.getLogger(__name__)

PING_S = 15.0
"""Between two comments in a silent stream; a browser that hears nothing for thrice as long reconnects."""
SECURITY = (
    (
        "content-security-policy",
        "default-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'none'; object-src 'none'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
)
_PRIVATE = (("cache-control", "no-store"),)
_STREAM = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-store, no-transform"),
    # Proxies would buffer events.
    ("x-accel-buffering", "no"),
)


class PageApp:
    """The application: called once for each request."""

    def __init__(
        self,
        parts: Sequence[PagePart],
        feed: EventFeed,
        gate: Gate,
        origins: Iterable[str],
        *,
        ping_s: float = PING_S,
    ) -> None:
        """`origins` are our own, as browsers send them: `http://127.0.0.1:8000`."""
        self._parts = {part.name: part for part in parts}
        self._feed = feed
        self._gate = gate
        self._origins = frozenset(origin.lower() for origin in origins)
        self._files = static_files(parts)
        self._posts = RepeatedPosts()
        self._ping_s = ping_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange: HttpExchange | None = None
        try:
            exchange = HttpExchange(scope, receive, send)
            await self._respond(exchange)
        except AccessDenied as refusal:
            await _refuse(exchange or _headless(scope, receive, send), refusal)

    async def _respond(self, exchange: HttpExchange) -> None:
        self._check_place(exchange)
        file = self._files.get(exchange.path)
        if file is not None:
            await _send_file(exchange, file)
            return
        if not exchange.path.startswith("/api/"):
            raise unknown()
        self._gate.admit(exchange.headers)
        exchange.prove()
        names = tuple(unquote(name) for name in exchange.path.split("/")[2:])
        if exchange.method == "GET" and names == ("page",):
            await _send_reply(exchange, self._about())
        elif exchange.method == "GET" and names == ("events",):
            await self._stream(exchange)
        else:
            await _send_reply(exchange, await self._of_part(exchange, names))

    def _check_place(self, exchange: HttpExchange) -> None:
        self._gate.check_place(exchange.headers)
        origin = exchange.headers.get("origin")
        if origin is None and exchange.method not in ("GET", "HEAD"):
            raise AccessDenied(403, "A request that changes something says where it comes from (Origin)")
        if origin is not None and origin.lower() not in self._origins:
            raise AccessDenied(403, "Pages of this origin may not speak to this server")

    def _about(self) -> PageReply:
        """What a browser has to know to show the page."""
        parts = [
            {
                "name": part.name,
                "title": part.title,
                "has_style": f"/static/{part.name}/{part.name}.css" in self._files,
            }
            for part in self._parts.values()
        ]
        return json_reply({"version": __version__, "position": self._feed.position, "parts": parts})

    async def _of_part(self, exchange: HttpExchange, names: tuple[str, ...]) -> PageReply:
        part = self._parts.get(names[0]) if names else None
        if part is None:
            raise unknown()
        if exchange.method not in ("GET", "POST"):
            raise AccessDenied(405, "This method is not served here", headers=(("allow", "GET, POST"),))
        key = exchange.headers.get("idempotency-key") or ""
        request = PageRequest(exchange, names[1:], key)
        try:
            if exchange.method == "GET":
                return await part.get(request)
            return await self._posts.once(key, exchange.path, lambda: part.post(request))
        except LanewayError as problem:
            raise PageRefused(409, plain(str(problem))) from problem
        except AccessDenied:
            raise
        except Exception as bug:
            log.exception("a request of the page failed: %s %s", exchange.method, names[0])
            raise PageRefused(500, "This did not work; the log says why") from bug

    async def _stream(self, exchange: HttpExchange) -> None:
        reader = self._feed.attach(exchange.headers.get("last-event-id"))
        try:
            with exchange.watched(reader):
                await exchange.begin(200, *_STREAM, *SECURITY)
                await exchange.write(reader.opening())
                while not reader.is_over:
                    # A browser that does not read makes this wait; nobody else does.
                    await exchange.write(reader.take() or PING)
                    await reader.wait(self._ping_s)
                if not reader.has_left:
                    await exchange.write(b"", more=False)
        finally:
            self._feed.detach(reader)


async def _send_file(exchange: HttpExchange, file: StaticFile) -> None:
    if exchange.method not in ("GET", "HEAD"):
        raise AccessDenied(405, "This method is not served here", headers=(("allow", "GET, HEAD"),))
    common = (("etag", file.etag), ("cache-control", "no-cache"), *SECURITY)
    if exchange.headers.get("if-none-match") == file.etag:
        await exchange.answer(304, b"", *common)
    else:
        body = file.content if exchange.method == "GET" else b""
        await exchange.answer(200, body, ("content-type", file.content_type), *common)


async def _send_reply(exchange: HttpExchange, reply: PageReply) -> None:
    headers = (("content-type", reply.content_type), *reply.headers, *_PRIVATE, *SECURITY)
    await exchange.answer(reply.status, reply.body, *headers)


async def _refuse(exchange: HttpExchange, refusal: AccessDenied) -> None:
    body = msgspec.json.encode({"error": refusal.text})
    await exchange.answer(
        refusal.status, body, ("content-type", JSON), *refusal.headers, *_PRIVATE, *SECURITY
    )


def _headless(scope: Scope, receive: Receive, send: Send) -> HttpExchange:
    """For the answer to a request whose headers contradict each other."""
    return HttpExchange({**scope, "headers": ()}, receive, send)
