"""Our own tools for one Claude Code: an MCP server whose messages come through the pipe.

Each call is a task of its own, which `notifications/cancelled` cancels. Claude Code starts no process
for it, and needs no permission to use it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from laneway import __version__
from laneway.claude.launching import SERVER
from laneway.core.tools import Tool, ToolResult

log = logging.getLogger(__name__)

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
MAX_CALLS = 64
"""Calls at once: a model makes a few. More is refused."""

Run = Callable[[str, Any], Awaitable[ToolResult]]
"""Runs a tool by its name, with its arguments."""
Respond = Callable[[str, dict[str, Any]], None]


class ToolServer:
    def __init__(self, tools: tuple[Tool, ...], run: Run, respond: Respond) -> None:
        """`respond` answers a request of Claude Code's by the request's id."""
        self._tools = tools
        self._run = run
        self._respond = respond
        self._calls: dict[asyncio.Task[ToolResult], Any] = {}
        """Those that run, with the ids of their MCP requests, which may be anything."""

    def take(self, request_id: str, request: dict[str, Any]) -> None:
        """A `mcp_message` of Claude Code's."""
        message = _object(request.get("message"))
        params = _object(message.get("params"))
        match message.get("method"):
            case _ if request.get("server_name") != SERVER:
                self._refuse(request_id, message, METHOD_NOT_FOUND, "There is no such server here")
            case "initialize":
                self._reply(request_id, message, self._hello(params))
            case "tools/list":
                self._reply(request_id, message, {"tools": [definition(tool) for tool in self._tools]})
            case "tools/call":
                self._call(request_id, message, params)
            case "ping":
                self._reply(request_id, message, {})
            case "notifications/cancelled":
                for call in self._calls_of(params.get("requestId")):
                    call.cancel()
                self._reply(request_id, message, {})
            case str(method) if "id" in message:
                self._refuse(request_id, message, METHOD_NOT_FOUND, f"Laneway does not serve {method}")
            case _:
                self._reply(
                    request_id, message, {}
                )  # a notification; the request that carries it is answered

    def cancel_all(self) -> None:
        """The process is gone: nobody waits for a result."""
        for call in self._calls:
            call.cancel()

    async def aclose(self) -> None:
        self.cancel_all()
        await asyncio.gather(*self._calls, return_exceptions=True)

    def _calls_of(self, call_id: Any) -> list[asyncio.Task[ToolResult]]:
        return [call for call, each in self._calls.items() if each == call_id]

    def _hello(self, params: dict[str, Any]) -> dict[str, Any]:
        return {
            "protocolVersion": params.get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": SERVER, "version": __version__},
        }

    def _call(self, request_id: str, message: dict[str, Any], params: dict[str, Any]) -> None:
        if len(self._calls) >= MAX_CALLS:
            self._refuse(request_id, message, INTERNAL_ERROR, f"More than {MAX_CALLS} calls at once")
            return
        work = self._run_tool(str(params.get("name")), params.get("arguments") or {})
        call = asyncio.get_running_loop().create_task(work)
        self._calls[call] = message.get("id")
        # Answered here, because a task that is cancelled before it has begun runs nothing.
        call.add_done_callback(partial(self._answer, request_id, message))

    async def _run_tool(self, name: str, arguments: Any) -> ToolResult:
        return await self._run(name, arguments)

    def _answer(self, request_id: str, message: dict[str, Any], call: asyncio.Task[ToolResult]) -> None:
        del self._calls[call]
        if call.cancelled():
            self._refuse(request_id, message, INTERNAL_ERROR, "The call was cancelled")
        elif (problem := call.exception()) is not None:
            log.error("a tool failed", exc_info=problem)
            self._refuse(request_id, message, INTERNAL_ERROR, "Internal error")
        else:
            result = call.result()
            texts = [{"type": "text", "text": text} for text in (result.text, *result.notes)]
            self._reply(request_id, message, {"content": texts, "isError": result.is_error})

    def _reply(self, request_id: str, message: dict[str, Any], result: dict[str, Any]) -> None:
        answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
        self._respond(request_id, {"mcp_response": answer})

    def _refuse(self, request_id: str, message: dict[str, Any], code: int, problem: str) -> None:
        error = {"code": code, "message": problem}
        answer = {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
        self._respond(request_id, {"mcp_response": answer})


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def definition(tool: Tool) -> dict[str, Any]:
    """A tool as MCP describes it; the mark keeps Claude Code from hiding it until it is searched for."""
    described: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": {"readOnlyHint": tool.is_read_only},
        "_meta": {"anthropic/alwaysLoad": True},
    }
    return described | ({"title": tool.title} if tool.title else {})
