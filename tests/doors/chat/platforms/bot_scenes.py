"""What the scenes of both bots share: their commands, a turn that has begun, a process of `laneway chat`."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.doors.chat.ports import ChatCommand
from laneway.doors.chat.routing import CONTROLS
from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn
from tests.cli.support import start

COMMANDS = (
    ChatCommand("claude", "Claude", kind="lane"),
    ChatCommand("codex", "Codex", kind="lane"),
    *(ChatCommand(name, what) for name, what in CONTROLS.items()),
)


async def begun(lanes: ScriptedLanes, name: str = "claude", count: int = 1) -> ScriptedTurn:
    """The so manyth turn of the latest lane of that name, once it has begun."""
    while not any(lane.name == name for lane in lanes.made):
        await asyncio.sleep(0.002)
    return await lanes.lane(name).begun(count)


@asynccontextmanager
async def chatting(
    platform: str,
    wait_ready: Callable[[], Coroutine[Any, Any, None]],
    folder: Path,
    *words: str,
    env: dict[str, str],
) -> AsyncIterator[Process]:
    """`laneway chat` on that platform in a process of its own, from when it is ready to its end."""
    process = await start("chat", "-C", str(folder), "--platform", platform, *words, env=env)
    try:
        ready = asyncio.create_task(wait_ready())
        ended = asyncio.create_task(process.wait())
        await asyncio.wait({ready, ended}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        assert not ended.done(), await process.stderr.read() if process.stderr is not None else ""
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
