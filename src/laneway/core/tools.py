"""Tools that we offer to models: their definitions and their calls, for every engine and front end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from laneway.core.tool_arguments import BadArguments, checked


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The session that calls a tool: bound by us, never named by the model."""

    agent_id: str
    identity: str | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    principal: str = ""
    """The owner of the session, or the client itself where it has none."""


class ToolResult(msgspec.Struct, frozen=True):
    text: str
    is_error: bool = False
    data: dict[str, Any] | None = None
    """The same for programs, where a front end can pass it on."""
    notes: tuple[str, ...] = ()
    """Further sentences: what was left out, what went wrong on the way."""


Handler: TypeAlias = Callable[[Caller, Mapping[str, Any]], Awaitable[ToolResult]]


class Tool(msgspec.Struct, frozen=True):
    name: str
    description: str
    schema: dict[str, Any]
    handler: Handler
    title: str = ""
    is_read_only: bool = False


class ToolBox:
    """Tools by name. Two tools of one name are a bug of the caller."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"two tools are called {tool.name}")
            self._tools[tool.name] = tool

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    async def call(self, caller: Caller, name: str, arguments: Any) -> ToolResult:
        """Run a tool. A wrong name or wrong arguments become a result for the model, no exception."""
        tool = self._tools.get(name)
        if tool is None:
            return ToolResult(f"There is no tool {name}.", is_error=True)
        try:
            checked_arguments = checked(name, tool.schema, arguments)
        except BadArguments as problem:
            return ToolResult(str(problem), is_error=True)
        return await tool.handler(caller, checked_arguments)
