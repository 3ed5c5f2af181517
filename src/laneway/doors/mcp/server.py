"""MCP's methods: from a request to whoever answers it. Knows the protocol, no transport and no tool.

A transport makes a `Connection` for each client and hands every request to `Server.serve`; what
it offers are `Offer`s. What needs nobody is answered by its `Front`. Both eras are served on one
connection, request by request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeAlias

import msgspec

from laneway.base.errors import LanewayError, RemoteError
from laneway.base.plain import code_label
from laneway.doors.mcp import eras
from laneway.doors.mcp.codes import wire_error
from laneway.doors.mcp.eras import STRANGER, Client
from laneway.doors.mcp.front import HANDSHAKE_ONLY, Front, meta_of, not_found, only_page, params_of
from laneway.wire.messages import Raw

INVALID_PARAMS = -32602


class Line(Protocol):
    """The way back to one caller."""

    def notify(self, method: str, params: Any) -> bool:
        """Tell it something; false if it does not read and the message was dropped."""
        ...

    async def call(self, method: str, params: Any) -> Any:
        """Ask it something. Only for clients that shook hands."""
        ...


class Interests:
    """What one client wants to hear of, by its name, and how it is told. Goes when the client goes."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}


class Connection:
    """One client of one transport: whose sessions are its own, and how it can be reached."""

    def __init__(self, principal: str, line: Line) -> None:
        self.principal = principal
        self.line = line
        self.client = STRANGER
        self.interests = Interests()
        """A transport with a connection for each request keeps these for its client and puts them here."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request, with everything about who asks."""

    principal: str
    client: Client
    line: Line
    interests: Interests
    request_id: bytes
    """As it stood on the wire."""
    params: dict[str, Any]
    meta: dict[str, Any]

    @property
    def id_text(self) -> str:
        return self.request_id.decode().strip('"')


Handler: TypeAlias = Callable[[Call, dict[str, Any]], Awaitable[dict[str, Any]]]
"""From a call and its arguments to the result of `tools/call`."""


class Offer(msgspec.Struct, frozen=True):
    """A tool: what clients are told of it, and who runs it."""

    definition: dict[str, Any]
    handler: Handler

    @property
    def name(self) -> str:
        return str(self.definition["name"])


class Resources(Protocol):
    """What clients can read."""

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        """A page, and the cursor to the next one."""
        ...

    def templates(self) -> list[dict[str, Any]]: ...

    async def read(self, call: Call, uri: str) -> list[dict[str, Any]]: ...


class News(Protocol):
    """Tells clients what has changed of what they can read."""

    async def subscribe(self, call: Call) -> None: ...

    def unsubscribe(self, call: Call) -> None: ...

    async def listen(self, call: Call) -> dict[str, Any]: ...

    def end(self) -> None: ...


class Upstream(Protocol):
    """Whoever gets what the server behind us says by itself: the client."""

    async def request(self, method: str, params: Raw) -> Raw: ...

    def notify(self, method: str, params: Raw) -> None: ...


class Beyond(Protocol):
    """A server behind us, which may know what we do not. Everything is passed on as it came but for ids."""

    async def forward(self, method: str, params: Raw) -> Raw: ...

    def forward_notification(self, method: str, params: Raw) -> None: ...

    def connect_client(self, client: Upstream | None) -> None: ...


class Server:
    def __init__(
        self,
        info: dict[str, Any],
        offers: Iterable[Offer],
        *,
        instructions: str | None = None,
        resources: Resources | None = None,
        news: News | None = None,
        on_unknown_tool: Callable[[str], dict[str, Any]] | None = None,
        beyond: Beyond | None = None,
    ) -> None:
        self._offers = {offer.name: offer for offer in offers}
        self.front = Front(
            info=info,
            tools=tuple(offer.definition for offer in self._offers.values()),
            instructions=instructions,
            has_resources=resources is not None,
            has_news=news is not None,
        )
        self.beyond = beyond
        self._resources = resources
        self._news = news
        self._methods = _METHODS if news is None else {**_METHODS, **_of_news(news)}
        self._on_unknown_tool = on_unknown_tool

    async def serve(self, connection: Connection, method: str, params: Raw, request_id: bytes) -> Any:
        """Answer one request, or raise what becomes its error."""
        if method == "initialize":
            connection.client, answer = self.front.greet(params)
            return answer
        if self.front.answers(method):
            return self.front.answer(method, params, connection.client)
        if self.beyond is not None and method not in self._methods:
            return await _forwarded(self.beyond, method, params)
        given = params_of(params)
        meta = meta_of(given)
        call = Call(
            principal=connection.principal,
            client=eras.of_request(meta) or connection.client,
            line=connection.line,
            interests=connection.interests,
            request_id=request_id,
            params=given,
            meta=meta,
        )
        serve = self._methods.get(method)
        wrong_era = HANDSHAKE_ONLY if call.client.is_stateless else _STATELESS_ONLY
        if serve is None or method in wrong_era:
            raise not_found(method)
        return eras.shaped(await serve(self, call), call.client, self.front.info)

    def end_news(self) -> None:
        """There will be no more of them: whoever waits is answered."""
        if self._news is not None:
            self._news.end()

    def hear(self, method: str, params: Raw) -> None:
        """A notification that the transport has no use for."""
        if self.beyond is not None and method not in _OWN_NOTICES:
            self.beyond.forward_notification(method, params)

    # ── tools ──────────────────────────────────────────────────────────────

    async def _call_tool(self, call: Call) -> dict[str, Any]:
        name = call.params.get("name")
        arguments = call.params.get("arguments")
        if not isinstance(name, str):
            raise RemoteError(INVALID_PARAMS, "tools/call needs the name of a tool")
        if arguments is not None and not isinstance(arguments, dict):
            raise RemoteError(INVALID_PARAMS, "The arguments of a tool are an object")
        offer = self._offers.get(name)
        if offer is not None:
            return await offer.handler(call, arguments or {})
        if self._on_unknown_tool is not None:
            return self._on_unknown_tool(name)
        raise RemoteError(INVALID_PARAMS, f"Unknown tool '{code_label(name)}'", {"error_source": "proxy"})

    # ── what can be read ───────────────────────────────────────────────────

    async def _list_resources(self, call: Call) -> dict[str, Any]:
        cursor = call.params.get("cursor")
        if self._resources is None:
            only_page(call.params)
            return eras.cached({"resources": []}, call.client)
        if cursor is not None and not isinstance(cursor, str):
            raise RemoteError(INVALID_PARAMS, "cursor must be the nextCursor of an earlier answer")
        found, more = await self._resources.listed(call, cursor)
        page = {"resources": found, "nextCursor": more} if more is not None else {"resources": found}
        return eras.cached(page, call.client)

    async def _list_templates(self, call: Call) -> dict[str, Any]:
        only_page(call.params)
        found = self._resources.templates() if self._resources is not None else []
        return eras.cached({"resourceTemplates": found}, call.client)

    async def _read_resource(self, call: Call) -> dict[str, Any]:
        uri = call.params.get("uri")
        if not isinstance(uri, str):
            raise RemoteError(INVALID_PARAMS, "resources/read needs a uri")
        if self._resources is None:
            raise RemoteError(INVALID_PARAMS, f"There is no resource {code_label(uri)}", {"uri": uri[:200]})
        return eras.cached({"contents": await self._resources.read(call, uri)}, call.client)


Method: TypeAlias = Callable[[Server, Call], Awaitable[dict[str, Any]]]

_METHODS: dict[str, Method] = {
    "tools/call": Server._call_tool,
    "resources/list": Server._list_resources,
    "resources/templates/list": Server._list_templates,
    "resources/read": Server._read_resource,
}
_SUBSCRIBE, _UNSUBSCRIBE, _LISTEN = "resources/subscribe", "resources/unsubscribe", "subscriptions/listen"
_STATELESS_ONLY = frozenset({_LISTEN})

_OWN_NOTICES = frozenset({"notifications/initialized", "notifications/cancelled"})
"""About this connection and its ids: the server behind us has its own."""


async def _forwarded(beyond: Beyond, method: str, params: Raw) -> Raw:
    try:
        return await beyond.forward(method, params)
    except LanewayError as error:
        raise wire_error(error) from error


def _of_news(news: News) -> dict[str, Method]:
    async def subscribe(server: Server, call: Call) -> dict[str, Any]:
        await news.subscribe(call)
        return {}

    async def unsubscribe(server: Server, call: Call) -> dict[str, Any]:
        news.unsubscribe(call)
        return {}

    async def listen(server: Server, call: Call) -> dict[str, Any]:
        return await news.listen(call)

    return {_SUBSCRIBE: subscribe, _UNSUBSCRIBE: unsubscribe, _LISTEN: listen}
