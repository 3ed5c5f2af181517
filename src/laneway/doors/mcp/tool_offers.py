"""The core's tools as MCP tools: for clients, who say in whose name they call, and for sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import msgspec

from laneway.core.tool_arguments import BadArguments, checked
from laneway.core.tools import Caller, Tool, ToolResult
from laneway.doors.mcp.codes import proxy_error
from laneway.doors.mcp.definitions import definition
from laneway.doors.mcp.server import INVALID_PARAMS, Call, Handler, Offer


class Who(Protocol):
    """Finds the caller of a tool."""

    @property
    def properties(self) -> dict[str, Any]:
        """The arguments by which a client says who it is; empty where it is known."""
        ...

    def caller(self, call: Call, tool: str, said: dict[str, Any]) -> AbstractAsyncContextManager[Caller]: ...


class Bound:
    """A connection of one session: the caller is known, and is nobody else."""

    def __init__(self, find: Callable[[Call], Caller]) -> None:
        """`find` raises an error of the wire if the session is gone."""
        self.properties: dict[str, Any] = {}
        self._find = find

    @asynccontextmanager
    async def caller(self, call: Call, tool: str, said: dict[str, Any]) -> AsyncIterator[Caller]:
        yield self._find(call)


def offers_of(tools: Iterable[Tool], who: Who, *, with_data: bool = True) -> list[Offer]:
    """`with_data`: for programs, too. A client that shows its model data in the place of text wants none."""
    return [Offer(definition(tool, who.properties), _handler(tool, who, with_data)) for tool in tools]


def _handler(tool: Tool, who: Who, with_data: bool) -> Handler:
    async def handle(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        said = {name: arguments[name] for name in who.properties if name in arguments}
        given = {name: value for name, value in arguments.items() if name not in said}
        try:
            taken = checked(tool.name, tool.schema, given)
        except BadArguments as problem:
            raise proxy_error(INVALID_PARAMS, str(problem)) from problem
        async with who.caller(call, tool.name, said) as caller:
            result = await tool.handler(caller, taken)
        return rendered(result if with_data else msgspec.structs.replace(result, data=None))

    return handle


def rendered(result: ToolResult) -> dict[str, Any]:
    """The result of `tools/call`: as text, for clients that show no more, and as data."""
    content = [{"type": "text", "text": each} for each in (result.text, *result.notes)]
    shown: dict[str, Any] = {"content": content}
    if result.data is not None:
        shown["structuredContent"] = msgspec.to_builtins(result.data)
    return {**shown, "isError": True} if result.is_error else shown
