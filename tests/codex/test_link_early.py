"""Notifications about a thread that come before Codex has answered the call that opens it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from laneway.codex.engine import CodexEngine
from laneway.codex.link import MAX_EARLY
from laneway.core.model import Event, Notice, Other
from laneway.core.ports import ThreadSpec
from laneway.core.tools import ToolResult

STARTUP = "mcpServer/startupStatus/updated"


class Hasty:
    """An app-server that first reports MCP servers, of other threads and of ours, and then answers."""

    stderr_tail = ""
    backlog_bytes = 0

    def __init__(self, others: int) -> None:
        self._others = others
        self._on_bytes: Callable[[bytes], None]

    async def connect(self, on_bytes: Callable[[bytes], None], on_end: Callable[[Any], None]) -> Hasty:
        self._on_bytes = on_bytes
        return self

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            message = msgspec.json.decode(line)
            if message.get("method") == "thread/start":
                for number in range(self._others):
                    self._send({"method": STARTUP, "params": {"threadId": f"other-{number}", "name": "x"}})
                for name in ("first", "second"):
                    self._send({"method": STARTUP, "params": {"threadId": "ours", "name": name}})
                self._send({"method": "warning", "params": {"threadId": "ours", "message": "beware"}})
            if "id" in message:
                result = {"userAgent": "laneway/0.163.0", "thread": {"id": "ours"}, "config": {}}
                self._send({"id": message["id"], "result": result})

    def _send(self, message: dict[str, Any]) -> None:
        self._on_bytes(msgspec.json.encode(message) + b"\n")

    async def stop(self, own_end_s: float = 0.0) -> None:
        pass


class Recorder:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    async def on_tool(self, name: str, arguments: Any, turn_id: str) -> ToolResult:
        raise AssertionError("nobody calls a tool")


async def test_what_is_said_of_a_thread_before_it_is_open_is_heard_once_it_is(tmp_path: Path) -> None:
    """An MCP server that fails at once must not fail unheard, however many strangers' are told of."""
    for others in (0, 3 * MAX_EARLY):
        engine, recorder = CodexEngine(Hasty(others).connect), Recorder()
        await engine.start(ThreadSpec(cwd=tmp_path), recorder)
        names = [event.params["name"] for event in recorder.events if isinstance(event, Other)]
        assert names == ["first", "second"]
        assert [event.message for event in recorder.events if isinstance(event, Notice)] == ["beware"]
        await engine.aclose()
