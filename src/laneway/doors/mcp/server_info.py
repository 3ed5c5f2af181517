"""MCP answers that never change while a server runs: `initialize`, `server/discover`, `tools/list`, `ping`.

Pure. `McpServer` answers from it, and the stdio transport does so before there is an `McpServer` at
all: name, version and tools are known from the command line and the settings alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from laneway.base.errors import RemoteError
from laneway.base.plain import code_label
from laneway.doors.mcp import eras
from laneway.doors.mcp.eras import McpClient
from laneway.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND, UNREADABLE, Raw

Params: TypeAlias = dict[str, Any]


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The server's name, tools, prompts and capabilities, and the answers made from them."""

    info: dict[str, Any]
    tools: tuple[dict[str, Any], ...]
    """As they are listed."""
    instructions: str | None = None
    has_resources: bool = False
    has_subscriptions: bool = False
    """Whether a client can be told that a resource has changed."""
    prompts: tuple[dict[str, Any], ...] = ()
    """As they are listed. Without any, the stateless era has no method for them."""
    task_tools: frozenset[str] = frozenset()
    """Tools whose calls can be answered by a task. Without any, nothing is said of tasks."""

    def greet(self, raw: Raw) -> tuple[McpClient, dict[str, Any]]:
        """The client that sent `initialize`, and the answer to it."""
        client = eras.client_from_initialize(params_of(raw))
        capabilities = self._capabilities({"listChanged": True})
        if self.task_tools and client.requests_tasks:
            capabilities["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        result = {
            "protocolVersion": client.version,
            "capabilities": capabilities,
            "serverInfo": self.info,
        }
        return client, {**result, "instructions": self.instructions} if self.instructions else result

    def answers(self, method: str) -> bool:
        return method in _ANSWERS

    def answer(self, method: str, raw: Raw, introduced: McpClient) -> dict[str, Any]:
        """The answer to one of these methods, in the era of the request."""
        params = params_of(raw)
        client = eras.client_from_meta(meta_of(params)) or introduced
        is_undeclared = method == LIST_PROMPTS and not self.prompts
        if client.is_stateless and (method in HANDSHAKE_ONLY or is_undeclared):
            raise not_found(method)
        return eras.shape_result(_ANSWERS[method](self, client, params), client, self.info)

    def _capabilities(self, of_tools: dict[str, Any]) -> dict[str, Any]:
        capabilities: dict[str, Any] = {"tools": of_tools}
        if self.has_resources:
            capabilities["resources"] = {"subscribe": True} if self.has_subscriptions else {}
        if self.prompts:
            capabilities["prompts"] = {}
        return capabilities

    def _discover(self, client: McpClient, params: Params) -> dict[str, Any]:
        # Without the listChanged of the old server: Claude Code would go on listening for it.
        capabilities = self._capabilities({})
        if self.task_tools:
            capabilities["extensions"] = {eras.TASKS_EXTENSION: {}}
        result: dict[str, Any] = {
            "supportedVersions": [eras.STATELESS_VERSION],
            "capabilities": capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
        }
        return {**result, "instructions": self.instructions} if self.instructions else result

    def _nothing(self, client: McpClient, params: Params) -> dict[str, Any]:
        return {}

    def _list_tools(self, client: McpClient, params: Params) -> dict[str, Any]:
        only_page(params)
        tools: Sequence[dict[str, Any]] = self.tools
        if self.task_tools and client.requests_tasks:
            tools = [self._with_task_support(tool) for tool in tools]
        return eras.cached({"tools": tools}, client)

    def _with_task_support(self, tool: dict[str, Any]) -> dict[str, Any]:
        if tool["name"] not in self.task_tools:
            return tool
        return {**tool, "execution": {**tool.get("execution", {}), "taskSupport": "optional"}}

    def _list_prompts(self, client: McpClient, params: Params) -> dict[str, Any]:
        # Some clients ask also where none are declared; the old server left them waiting.
        only_page(params)
        return eras.cached({"prompts": self.prompts}, client)


LIST_PROMPTS = "prompts/list"
_ANSWERS: dict[str, Callable[[ServerInfo, McpClient, Params], dict[str, Any]]] = {
    "server/discover": ServerInfo._discover,
    "ping": ServerInfo._nothing,
    "logging/setLevel": ServerInfo._nothing,
    "tools/list": ServerInfo._list_tools,
    LIST_PROMPTS: ServerInfo._list_prompts,
}
HANDSHAKE_ONLY = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
"""Gone from the stateless era: there a method is either offered or not found."""


def params_of(raw: Raw) -> Params:
    if not raw:
        return {}
    try:
        params = msgspec.json.decode(raw)
    except UNREADABLE as problem:
        raise RemoteError(INVALID_PARAMS, f"Invalid params: {problem}") from problem
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise RemoteError(INVALID_PARAMS, "Invalid params: an object is expected")
    return params


def meta_of(params: Params) -> dict[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def only_page(params: Params) -> None:
    """Raise if a page is asked for: our lists come whole, so a cursor cannot be ours."""
    if params.get("cursor") is not None:
        raise RemoteError(INVALID_PARAMS, "There is no such page")


def not_found(method: str) -> RemoteError:
    return RemoteError(METHOD_NOT_FOUND, f"method not found: {code_label(method)}", {"method": method[:200]})
