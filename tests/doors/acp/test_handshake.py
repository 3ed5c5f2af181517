"""The order of what a client sends, however long the agent takes to be there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from laneway.doors.acp.handshake import Greeting, Handshake
from laneway.wire.peer import Raw

HELLO = Raw(b'{"protocolVersion": 1}')
IN_SESSION = Raw(b'{"sessionId": "s"}')


class Agent:
    """Notes what it is asked to do, as it begins."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    async def serve(self, method: str, params: dict[str, Any], request_id: bytes) -> str:
        self.begun.append(request_id.decode())
        await asyncio.sleep(0)
        return method

    def cancel(self, session_id: str) -> None:
        self.begun.append(f"cancel {session_id}")

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("turns", range(8))
async def test_what_was_sent_first_is_begun_first(turns: int) -> None:
    """Also what comes in the very moment in which the agent is there, and others still wait for it."""
    agent, may_come = Agent(), asyncio.Event()

    async def engage(client: Any, peer: Any) -> Any:
        await may_come.wait()
        return agent

    handshake = Handshake(Greeting("0", (), {}), engage, lambda: None)  # type: ignore[arg-type, return-value]
    await handshake.on_request("initialize", HELLO, b"0")

    def send(*names: str) -> list[asyncio.Future[Any]]:
        return [
            asyncio.ensure_future(handshake.on_request("session/prompt", IN_SESSION, name.encode()))
            for name in names
        ]

    sent = send("1", "2", "3")
    await asyncio.sleep(0)
    may_come.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    sent += send("4")
    handshake.on_notification("session/cancel", IN_SESSION, b"")
    sent += send("5")
    async with asyncio.timeout(10):
        await asyncio.gather(*sent)
    assert agent.begun == ["1", "2", "3", "4", "cancel s", "5"]
    await handshake.aclose()
