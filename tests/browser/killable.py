"""A process that serves the page with scripted lanes, for tests that kill it: `FOLDER PORT`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from laneway.testing.chat_script import ScriptedLanes, ScriptedTurn, echo
from tests.browser.support import ServedChat
from tests.doors.chat.chats import chatting


async def play(turn: ScriptedTurn) -> None:
    """Asks, and waits for ever; or repeats the words."""
    if turn.given.text != "ask me":
        await echo(turn)
        return
    turn.accept()
    turn.text("Half an ans")
    turn.approve("make something")


async def main(folder: Path, port: int) -> None:
    async with chatting(folder, ScriptedLanes(play=play)) as chat:
        served = ServedChat(chat, folder / "uploads", folder)
        served.port = port
        await served.start()
        print(served.address, flush=True)
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
