"""The real Claude Code with a tap on the line to a server: what went over it, when it knows the tools."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.testing import claude
from laneway.testing.claude import ClaudeHome, Message, claude_home
from tests.core.support import until

DEADLINE_S = 60.0
TAP = Path(__file__).with_name("tap.py")
BACKGROUND = "It was moved to the background as task "


class TappedClaude:
    def __init__(self, home: ClaudeHome) -> None:
        self.home = home
        self.tap = home.work.parent / "tap"

    async def register(self, name: str, *server: str) -> None:
        """As people do it, with the tap in between."""
        line = [sys.executable, str(TAP), str(self.tap), *server]
        added = await self.home.run("mcp", "add", "--scope", "user", name, "--", *line)
        assert added.end.code == 0, added

    def passed(self) -> list[tuple[str, Message]]:
        """What went over the line so far: `>` from Claude Code, `<` from the server."""
        lines = self.tap.read_text().splitlines(keepends=True) if self.tap.exists() else []
        whole = [json.loads(line) for line in lines if line.endswith("\n")]
        return [(way, json.loads(frame)) for way, frame in whole]

    def sent(self) -> list[Message]:
        """What Claude Code has sent to the server so far."""
        return [message for way, message in self.passed() if way == ">"]

    def methods(self) -> list[str]:
        return [message["method"] for message in self.sent()]

    async def wait_connected(self) -> None:
        """Until Claude Code knows the tools: it takes words before that, and its model would have none."""
        await until(lambda: "tools/list" in self.methods(), DEADLINE_S)


@asynccontextmanager
async def real_claude(environment: dict[str, str] | None = None) -> AsyncIterator[ClaudeHome]:
    """A home of its own; skips the test where Claude Code is missing."""
    binary = claude.find()
    if binary is None:
        pytest.skip("needs claude-agent-sdk, which `make setup` installs")
    async with claude_home(binary, environment or {}) as home:
        yield home
