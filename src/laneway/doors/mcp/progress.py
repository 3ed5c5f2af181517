"""Progress notifications of a call: clients give up on one that is silent for too long.

Used by `events`, for what Codex does, and by tools that only wait (`with_progress`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from laneway.base.plain import label
from laneway.core.ports import Clock
from laneway.doors.mcp.server import Call, CallerChannel

HEARTBEAT_S = 10.0
"""Between two progress messages: clients give up on a call that is silent for one to thirty minutes."""
MESSAGE_CHARS = 200
"""Of a progress message: clients show it in one line."""

T = TypeVar("T")


def send_progress(channel: CallerChannel, token: Any, step: int, message: str) -> bool:
    """Notify of progress; false if the client does not read. `step` must grow from message to message."""
    params = {
        "progressToken": token,
        "progress": step,
        "message": label(" ".join(message.split()), MESSAGE_CHARS),
    }
    return channel.notify("notifications/progress", params)


def every(clock: Clock, seconds: float, beat: Callable[[], None]) -> Callable[[], None]:
    """Call `beat` at intervals; the function returned stops that."""
    cancel: list[Callable[[], None]] = []

    def again() -> None:
        beat()
        cancel[:] = [clock.after(seconds, again)]

    cancel.append(clock.after(seconds, again))
    return lambda: cancel[0]()


async def with_progress(
    call: Call,
    work: Awaitable[T],
    clock: Clock,
    *,
    message: Callable[[], str],
    every_s: float = HEARTBEAT_S,
) -> T:
    """Wait for `work`, and report progress to a client that wants it. Cancelling this cancels `work`."""
    token = call.meta.get("progressToken")
    if token is None:
        return await work
    step = 0

    def beat() -> None:
        nonlocal step
        step += 1
        send_progress(call.channel, token, step, message())

    stop = every(clock, every_s, beat)
    try:
        return await work
    finally:
        stop()
