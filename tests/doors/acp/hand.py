"""A client in the test's hand: it hears all that is said on its `ClientChannel`, and answers when told to.

A whole `ClientChannel` without a wire. Every message is held against the official schema by `Lint`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from tests.doors.acp.lint import Lint

SESSION = "sess_t"
DEADLINE_S = 30.0
"""For what takes milliseconds."""


class Call(msgspec.Struct, frozen=True):
    """A request that waits for the client's answer."""

    call_id: int
    method: str
    params: dict[str, Any]
    reply: asyncio.Future[Any]


class Hand:
    is_behind = False

    def __init__(self, capabilities: dict[str, Any] | None = None) -> None:
        self.lint = Lint()
        self.updates: list[dict[str, Any]] = []
        self.cancelled: list[str] = []
        """Methods of the requests that the agent took back."""
        self._calls: asyncio.Queue[Call] = asyncio.Queue()
        self._count = 100
        self._greet(capabilities or {})

    def _greet(self, capabilities: dict[str, Any]) -> None:
        hello = {"protocolVersion": 1, "clientCapabilities": capabilities}
        for number, method, params, result in (
            (1, "initialize", hello, {"protocolVersion": 1}),
            (2, "session/new", {"cwd": "/work", "mcpServers": []}, {"sessionId": SESSION}),
        ):
            self.lint.check("client", {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            self.lint.check("agent", {"jsonrpc": "2.0", "id": number, "result": result})
        self.lint.assert_clean()

    # ── as a line ──────────────────────────────────────────────────────────

    def update(self, session_id: str, update: dict[str, Any] | msgspec.Raw) -> None:
        assert isinstance(update, dict)
        self.updates.append(update)
        self.notify("session/update", {"sessionId": session_id, "update": update})

    def notify(self, method: str, params: Any) -> None:
        self.lint.check("agent", {"jsonrpc": "2.0", "method": method, "params": params})

    def before_write(self, gather: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(gather)

    async def call(self, method: str, params: Any) -> Any:
        self._count += 1
        call = Call(self._count, method, params, asyncio.get_running_loop().create_future())
        self.lint.check("agent", {"jsonrpc": "2.0", "id": call.call_id, "method": method, "params": params})
        self._calls.put_nowait(call)
        try:
            return await call.reply
        except asyncio.CancelledError:
            self.cancelled.append(method)
            self.notify("$/cancel_request", {"requestId": call.call_id})
            raise

    async def writable(self) -> None:
        return

    # ── in the test's hand ─────────────────────────────────────────────────

    async def asked(self) -> Call:
        """The next request, when it comes."""
        async with asyncio.timeout(DEADLINE_S):
            return await self._calls.get()

    def announce(self, call_id: str) -> None:
        """What is sent before a question about it comes."""
        self.update(SESSION, {"sessionUpdate": "tool_call", "toolCallId": call_id, "title": "x"})

    def open_calls(self) -> set[str]:
        """Tool calls that were announced and never ended."""
        status: dict[str, str] = {}
        for update in self.updates:
            status[update["toolCallId"]] = update.get("status", status.get(update["toolCallId"], "pending"))
        return {call for call, last in status.items() if last not in ("completed", "failed")}
