"""Watching notifications of the real Codex that belong to no thread."""

from __future__ import annotations

import asyncio
from typing import Any

from laneway.testing.rehearse import rehearsal


async def test_a_watcher_hears_its_notification_until_it_stops_or_codex_ends() -> None:
    """A login has no thread, and whoever waits for its end must not wait for a Codex that is gone."""
    login = {"type": "apiKey", "apiKey": "sk-rehearsal-0123456789"}
    received: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
    stopped: list[Any] = []
    async with asyncio.timeout(60), rehearsal() as here:
        link = await here.engine.link()
        link.watch("account/login/completed", received.put_nowait)
        stop = link.watch("account/login/completed", stopped.append)
        stop()
        stop()
        await link.call("account/login/start", login)
        completed = await received.get()
        assert completed is not None
        assert (completed["loginId"], completed["success"]) == (None, True)
    assert received.get_nowait() is None
    assert stopped == []
