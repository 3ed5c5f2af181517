"""What Codex says of a thread before it has answered that there is one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from laneway.codex.engine import CodexEngine
from laneway.codex.link import KEPT_EARLY
from laneway.core.model import Event, Notice, Other
from laneway.core.ports import ThreadSpec
from laneway.core.tools import ToolResult

STARTUP = "mcpServer/startupStatus/updated"


class Hasty:
    """An app-server that tells of MCP servers first, of strangers' and of our own, and then answers."""

    stderr_tail = ""
    backlog_bytes = 0

    def __init__(self, strangers: int) -> None:
        self._strangers = strangers
        self._say: Callable[[bytes], None]

    async def connect(self, say: Callable[[bytes], None], on_end: Callable[[Any], None]) -> Hasty:
        self._say = say
        return self

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            asked = msgspec.json.decode(line)
            if asked.get("method") == "thread/start":
                for number in range(self._strangers):
                    self._tell({"method": STARTUP, "params": {"threadId": f"other-{number}", "name": "x"}})
                for name in ("first", "second"):
                    self._tell({"method": STARTUP, "params": {"threadId": "ours", "name": name}})
                self._tell({"method": "warning", "params": {"threadId": "ours", "message": "beware"}})
            if "id" in asked:
                result = {"userAgent": "laneway/0.163.0", "thread": {"id": "ours"}, "config": {}}
                self._tell({"id": asked["id"], "result": result})

    def _tell(self, message: dict[str, Any]) -> None:
        self._say(msgspec.json.encode(message) + b"\n")

    async def stop(self, own_end_s: float = 0.0) -> None:
        pass


class Ear:
    def __init__(self) -> None:
        self.heard: list[Event] = []

    def on_event(self, event: Event) -> None:
        self.heard.append(event)

    async def on_tool(self, name: str, arguments: Any, turn_id: str) -> ToolResult:
        raise AssertionError("nobody calls a tool")


async def test_what_is_said_of_a_thread_before_it_is_open_is_heard_once_it_is(tmp_path: Path) -> None:
    """An MCP server that fails at once must not fail unheard, however many strangers' are told of."""
    for strangers in (0, 3 * KEPT_EARLY):
        engine, ear = CodexEngine(Hasty(strangers).connect), Ear()
        await engine.start(ThreadSpec(cwd=tmp_path), ear)
        names = [event.params["name"] for event in ear.heard if isinstance(event, Other)]
        assert names == ["first", "second"]
        assert [event.message for event in ear.heard if isinstance(event, Notice)] == ["beware"]
        await engine.aclose()
