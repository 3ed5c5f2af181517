"""ACP on standard input and output."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from laneway.doors.acp.agent import Agent, cancel_notice
from laneway.doors.acp.house import House
from laneway.doors.ending import EndSignals
from laneway.doors.pipe import Pipe, claim_standard_streams

PRINCIPAL = "stdio"
"""Whoever holds the other end of the pipe started us."""


async def serve_stdio(house: House, shutdown: Callable[[], Awaitable[None]]) -> None:
    """Serve until the client hangs up or a signal comes; then `shutdown`, and at a second signal leave."""
    agent = Agent(house, PRINCIPAL, lambda: pipe.peer)
    pipe = Pipe(
        on_request=agent.on_request, on_notification=agent.on_notification, cancel_notice=cancel_notice
    )
    await pipe.open(*claim_standard_streams())
    await pipe.listen()
    with EndSignals(pipe.ended):
        await pipe.ended.wait()
        try:
            await shutdown()
        finally:
            await pipe.aclose()
