"""A client that is told a history: it decodes what it is sent, and reads when it is let."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from laneway.core.model import Activity
from tests.doors.acp.hand import Hand

THREAD = "t"
"""The thread of the session that every `Hand` has open."""
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Reader(Hand):
    """A client that reads when it is let; it decodes what it is sent."""

    def __init__(self, capabilities: dict[str, Any] | None = None) -> None:
        super().__init__(capabilities)
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.waits = 0

    def loads(self, session: str) -> None:
        params = {"sessionId": session, "cwd": "/work", "mcpServers": []}
        self.lint.check("client", {"jsonrpc": "2.0", "id": 9, "method": "session/load", "params": params})

    def update(self, session_id: str, update: dict[str, Any] | msgspec.Raw) -> None:
        super().update(session_id, msgspec.json.decode(msgspec.json.encode(update)))

    async def writable(self) -> None:
        self.waits += 1
        await self.may_read.wait()

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]


def command(output: str, turn_id: str = "a", item_id: str = "c", **fields: Any) -> Activity:
    return Activity(
        turn_id=turn_id,
        item_id=item_id,
        kind="command",
        title="make",
        status="completed",
        output=output,
        **fields,
    )
