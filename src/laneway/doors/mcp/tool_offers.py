"""Offers the tools of `core.tools` over MCP: to clients, which must name an identity, and to sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import msgspec

from laneway.core.tool_arguments import BadArguments, checked
from laneway.core.tools import Caller, Tool, ToolResult
from laneway.doors.mcp.codes import proxy_error
from laneway.doors.mcp.definitions import definition
from laneway.doors.mcp.server import Call, Handler, Offer
from laneway.wire.messages import INVALID_PARAMS


class Who(Protocol):
    """Finds out who calls a tool."""

    @property
    def properties(self) -> dict[str, Any]:
        """The arguments by which a client names its identity; empty where the caller is known."""
        ...

    def caller(
        self, call: Call, tool: str, arguments: dict[str, Any]
    ) -> AbstractAsyncContextManager[Caller]: ...


class BoundCaller:
    """The caller on a connection that belongs to one session."""

    def __init__(self, find: Callable[[Call], Caller]) -> None:
        """`find` raises a wire error if the session is gone."""
        self.properties: dict[str, Any] = {}
        self._find = find

    @asynccontextmanager
    async def caller(self, call: Call, tool: str, arguments: dict[str, Any]) -> AsyncIterator[Caller]:
        yield self._find(call)


def offers_of(tools: Iterable[Tool], who: Who, *, with_data: bool = True) -> list[Offer]:
    """One offer per tool. `with_data` is false for clients that show their model data in place of text."""
    return [Offer(definition(tool, who.properties), _handler(tool, who, with_data)) for tool in tools]


def _handler(tool: Tool, who: Who, with_data: bool) -> Handler:
    async def handle(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        about_caller = {name: arguments[name] for name in who.properties if name in arguments}
        for_tool = {name: value for name, value in arguments.items() if name not in about_caller}
        try:
            for_tool = checked(tool.name, tool.schema, for_tool)
        except BadArguments as problem:
            raise proxy_error(INVALID_PARAMS, str(problem)) from problem
        async with who.caller(call, tool.name, about_caller) as caller:
            result = await tool.handler(caller, for_tool)
        return rendered(result if with_data else msgspec.structs.replace(result, data=None))

    return handle


def rendered(result: ToolResult) -> dict[str, Any]:
    """The result of `tools/call`: text, for clients that show only that, and data."""
    content = [{"type": "text", "text": each} for each in (result.text, *result.notes)]
    tool_result: dict[str, Any] = {"content": content}
    if result.data is not None:
        tool_result["structuredContent"] = msgspec.to_builtins(result.data)
    return {**tool_result, "isError": True} if result.is_error else tool_result
