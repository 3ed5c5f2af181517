"""The MCP server behind any transport: routes each request's method to tools, resources, prompts or tasks.

A transport makes a `Connection` for each client and hands every request to `McpServer.serve`. Tools are
given as `Offer`s; what needs no session is answered by `ServerInfo`. Both eras of the protocol are served
on one connection, request by request. Knows no transport and no tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeAlias

import msgspec

from laneway.base.errors import LanewayError, RemoteError
from laneway.base.plain import code_label
from laneway.doors.mcp import eras
from laneway.doors.mcp.codes import wire_error
from laneway.doors.mcp.eras import UNKNOWN_CLIENT, McpClient
from laneway.doors.mcp.server_info import HANDSHAKE_ONLY, ServerInfo, meta_of, not_found, only_page, params_of
from laneway.wire.messages import INVALID_PARAMS, Raw


class CallerChannel(Protocol):
    """How the server reaches the client that made one call."""

    def notify(self, method: str, params: Any) -> bool:
        """Send a notification; false if the client does not read and it was dropped."""
        ...

    async def call(self, method: str, params: Any) -> Any:
        """Send a request and wait for the answer. Only for clients of the handshake eras."""
        ...


class Interests:
    """What one client is notified of, each with the channel for it: resources by URI, tasks by their ids."""

    def __init__(self) -> None:
        self.channels: dict[str, CallerChannel] = {}
        self.task_channels: dict[str, CallerChannel] = {}

    def clear(self) -> None:
        self.channels.clear()
        self.task_channels.clear()


class Connection:
    """One client of one transport: its principal, which owns sessions, and its channel."""

    def __init__(self, principal: str, channel: CallerChannel) -> None:
        self.principal = principal
        self.channel = channel
        self.client = UNKNOWN_CLIENT
        self.interests = Interests()
        """A transport with a connection for each request keeps one per client and sets it here."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request, with everything about its caller."""

    principal: str
    client: McpClient
    channel: CallerChannel
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
    """A tool: its definition for clients, and its handler."""

    definition: dict[str, Any]
    handler: Handler

    @property
    def name(self) -> str:
        return str(self.definition["name"])


class Resources(Protocol):
    """Resources that clients can list and read."""

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
        """A page, and the cursor to the next one."""
        ...

    def templates(self) -> list[dict[str, Any]]: ...

    async def read(self, call: Call, uri: str) -> list[dict[str, Any]]: ...


class Prompts(Protocol):
    """Prompts that clients can list and get, for their people to choose from."""

    def prompts(self) -> list[dict[str, Any]]:
        """All of them, as they are listed."""
        ...

    async def prompt(self, call: Call, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        """The result of `prompts/get`."""
        ...


class ResourceSubscriptions(Protocol):
    """Notifies clients of changed resources: their subscriptions."""

    async def subscribe(self, call: Call) -> None: ...

    def unsubscribe(self, call: Call) -> None: ...

    async def listen(self, call: Call) -> dict[str, Any]: ...

    def end(self) -> None: ...


class TaskHandler(Protocol):
    """Answers calls by tasks, and the requests about them. Implemented by `tasks.TaskRequests`."""

    @property
    def tools(self) -> frozenset[str]:
        """The tools whose calls can be answered by a task."""
        ...

    @property
    def methods(self) -> frozenset[str]: ...

    async def begin(self, call: Call, tool: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Answer this call by a task; none if it is to be answered as any other."""
        ...

    async def serve(self, call: Call, method: str) -> dict[str, Any]:
        """Answer a request about tasks."""
        ...

    def check_listen(self, call: Call) -> None:
        """Raise if this `subscriptions/listen` wants news of tasks and must not."""
        ...


class Upstream(Protocol):
    """The client, for messages that the server behind us sends by itself."""

    async def request(self, method: str, params: Raw) -> Raw: ...

    def notify(self, method: str, params: Raw) -> None: ...


class FallbackServer(Protocol):
    """A server behind us, for the methods we do not serve. Messages are passed on unchanged but for ids."""

    async def forward(self, method: str, params: Raw) -> Raw: ...

    def forward_notification(self, method: str, params: Raw) -> None: ...

    def connect_client(self, client: Upstream | None) -> None: ...


class McpServer:
    """Answers MCP requests of all clients, by the offers, resources and prompts that it is given."""

    def __init__(
        self,
        info: dict[str, Any],
        offers: Iterable[Offer],
        *,
        instructions: str | None = None,
        resources: Resources | None = None,
        subscriptions: ResourceSubscriptions | None = None,
        prompts: Prompts | None = None,
        on_unknown_tool: Callable[[str], dict[str, Any]] | None = None,
        fallback: FallbackServer | None = None,
        tasks: TaskHandler | None = None,
    ) -> None:
        self._offers = {offer.name: offer for offer in offers}
        self.server_info = ServerInfo(
            info=info,
            tools=tuple(offer.definition for offer in self._offers.values()),
            instructions=instructions,
            has_resources=resources is not None,
            has_subscriptions=subscriptions is not None,
            prompts=tuple(prompts.prompts()) if prompts is not None else (),
            task_tools=tasks.tools if tasks is not None else frozenset(),
        )
        self.fallback = fallback
        self._resources = resources
        self._subscriptions = subscriptions
        self._tasks = tasks
        self._methods = {
            **_METHODS,
            **(_subscription_methods(subscriptions, tasks) if subscriptions is not None else {}),
            **(_prompt_methods(prompts) if prompts is not None else {}),
            **(_of_tasks(tasks) if tasks is not None else {}),
        }
        self._on_unknown_tool = on_unknown_tool

    async def serve(self, connection: Connection, method: str, params: Raw, request_id: bytes) -> Any:
        """Answer one request, or raise what becomes its error."""
        if method == "initialize":
            connection.client, answer = self.server_info.greet(params)
            return answer
        if self.server_info.answers(method):
            return self.server_info.answer(method, params, connection.client)
        if self.fallback is not None and method not in self._methods:
            return await _forwarded(self.fallback, method, params)
        decoded = params_of(params)
        meta = meta_of(decoded)
        call = Call(
            principal=connection.principal,
            client=eras.client_from_meta(meta) or connection.client,
            channel=connection.channel,
            interests=connection.interests,
            request_id=request_id,
            params=decoded,
            meta=meta,
        )
        serve = self._methods.get(method)
        wrong_era = HANDSHAKE_ONLY if call.client.is_stateless else _STATELESS_ONLY
        if serve is None or method in wrong_era:
            raise not_found(method)
        return eras.shape_result(await serve(self, call), call.client, self.server_info.info)

    def end_subscriptions(self) -> None:
        """There will be no more notifications: answer the requests that wait for them."""
        if self._subscriptions is not None:
            self._subscriptions.end()

    def receive_notification(self, method: str, params: Raw) -> None:
        """Pass on a notification that the transport does not handle."""
        if self.fallback is not None and method not in _OWN_NOTICES:
            self.fallback.forward_notification(method, params)

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
            task = await self._tasks.begin(call, name, arguments or {}) if self._tasks is not None else None
            return task if task is not None else await offer.handler(call, arguments or {})
        if self._on_unknown_tool is not None:
            return self._on_unknown_tool(name)
        raise RemoteError(INVALID_PARAMS, f"Unknown tool '{code_label(name)}'", {"error_source": "proxy"})

    # ── resources ──────────────────────────────────────────────────────────

    async def _list_resources(self, call: Call) -> dict[str, Any]:
        cursor = call.params.get("cursor")
        if self._resources is None:
            only_page(call.params)
            return eras.cached({"resources": []}, call.client)
        if cursor is not None and not isinstance(cursor, str):
            raise RemoteError(INVALID_PARAMS, "cursor must be the nextCursor of an earlier answer")
        rows, next_cursor = await self._resources.listed(call, cursor)
        more = {"nextCursor": next_cursor} if next_cursor is not None else {}
        return eras.cached({"resources": rows, **more}, call.client)

    async def _list_templates(self, call: Call) -> dict[str, Any]:
        only_page(call.params)
        templates = self._resources.templates() if self._resources is not None else []
        return eras.cached({"resourceTemplates": templates}, call.client)

    async def _read_resource(self, call: Call) -> dict[str, Any]:
        uri = call.params.get("uri")
        if not isinstance(uri, str):
            raise RemoteError(INVALID_PARAMS, "resources/read needs a uri")
        if self._resources is None:
            raise RemoteError(INVALID_PARAMS, f"There is no resource {code_label(uri)}", {"uri": uri[:200]})
        return eras.cached({"contents": await self._resources.read(call, uri)}, call.client)


Method: TypeAlias = Callable[[McpServer, Call], Awaitable[dict[str, Any]]]

_METHODS: dict[str, Method] = {
    "tools/call": McpServer._call_tool,
    "resources/list": McpServer._list_resources,
    "resources/templates/list": McpServer._list_templates,
    "resources/read": McpServer._read_resource,
}
_SUBSCRIBE, _UNSUBSCRIBE, _LISTEN = "resources/subscribe", "resources/unsubscribe", "subscriptions/listen"
_STATELESS_ONLY = frozenset({_LISTEN})

_OWN_NOTICES = frozenset({"notifications/initialized", "notifications/cancelled"})
"""About this connection and its ids: the server behind us has its own."""


async def _forwarded(fallback: FallbackServer, method: str, params: Raw) -> Raw:
    try:
        return await fallback.forward(method, params)
    except LanewayError as error:
        raise wire_error(error) from error


def _subscription_methods(
    subscriptions: ResourceSubscriptions, tasks: TaskHandler | None
) -> dict[str, Method]:
    async def subscribe(server: McpServer, call: Call) -> dict[str, Any]:
        await subscriptions.subscribe(call)
        return {}

    async def unsubscribe(server: McpServer, call: Call) -> dict[str, Any]:
        subscriptions.unsubscribe(call)
        return {}

    async def listen(server: McpServer, call: Call) -> dict[str, Any]:
        if tasks is not None:
            tasks.check_listen(call)
        return await subscriptions.listen(call)

    return {_SUBSCRIBE: subscribe, _UNSUBSCRIBE: unsubscribe, _LISTEN: listen}


def _prompt_methods(prompts: Prompts) -> dict[str, Method]:
    async def get(server: McpServer, call: Call) -> dict[str, Any]:
        name, arguments = call.params.get("name"), call.params.get("arguments")
        if not isinstance(name, str):
            raise RemoteError(INVALID_PARAMS, "prompts/get needs the name of a prompt")
        if arguments is not None and not _is_text_by_name(arguments):
            raise RemoteError(INVALID_PARAMS, "The arguments of a prompt are an object of strings")
        return await prompts.prompt(call, name, arguments or {})

    return {"prompts/get": get}


def _is_text_by_name(arguments: Any) -> bool:
    return isinstance(arguments, dict) and all(isinstance(each, str) for each in arguments.values())


def _of_tasks(tasks: TaskHandler) -> dict[str, Method]:
    def of(method: str) -> Method:
        async def serve(server: McpServer, call: Call) -> dict[str, Any]:
            return await tasks.serve(call, method)

        return serve

    return {method: of(method) for method in tasks.methods}
