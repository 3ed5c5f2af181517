"""ACP on standard input and output: one client, served until it closes its end or a signal arrives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from laneway.doors.acp.handshake import MAX_MESSAGE_BYTES, Engage, Greeting, Handshake, cancel_notice
from laneway.doors.ending import EndSignals
from laneway.doors.pipe import Pipe, claim_standard_streams
from laneway.wire.messages import INTERNAL_ERROR


async def serve_stdio(greeting: Greeting, engage: Engage, shutdown: Callable[[], Awaitable[None]]) -> None:
    """Serve until the client closes stdin or a signal arrives, then `shutdown`; a second signal exits."""
    handshake = Handshake(greeting, engage, lambda: pipe.peer)
    pipe = Pipe(
        on_request=handshake.on_request,
        on_notification=handshake.on_notification,
        cancel_notice=cancel_notice,
        refusal=INTERNAL_ERROR,  # the usual code, -32000, means in ACP that a login is required
        max_bytes=MAX_MESSAGE_BYTES,
    )
    await pipe.open(*claim_standard_streams())
    await pipe.listen()
    with EndSignals(pipe.ended):
        await pipe.ended.wait()
        try:
            await shutdown()
        finally:
            await pipe.aclose()
