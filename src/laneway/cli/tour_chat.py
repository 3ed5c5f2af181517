"""The tour's chat: `laneway chat` in a pipe, two lanes in one conversation, both on scripted models.

Claude leads, if there is a Claude Code on this machine; else a second Codex does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from laneway.base.errors import BinaryError
from laneway.wire.child import Child

SAID = "Blue it is."
COMMAND = "/codex %run seq 3 | wc -l"
QUESTION = ("/codex %ask Which colour? red | blue", "blue")
"""`blue` answers the question of Codex."""
INTO_ONE = 'exec "$@" 2>&1'
"""Answers and work go to two streams: here they are shown in their order."""


def lead() -> str:
    """The lane that plain words go to."""
    from laneway.claude import locate

    try:
        locate.find()
    except BinaryError:
        return "rehearse"
    return "claude"


async def run_demo(folder: Path, note: Callable[[str], None], *flags: str, asks: bool) -> tuple[str, str]:
    """Run it to its end; what was shown, and how the process ended. `asks`: whether this Codex can."""
    lines = (COMMAND, *(QUESTION if asks else ()), f"%say {SAID}")
    shown = bytearray()
    rest = bytearray()

    def on_stdout(data: bytes) -> None:
        nonlocal rest
        shown.extend(data)
        *whole, rest = (rest + data).split(b"\n")
        for row in whole:
            note(row.decode("utf-8", "replace"))

    chat = [sys.executable, "-m", "laneway", "chat", "--rehearse", "--lane", lead(), *flags]
    child = await Child.spawn(["/bin/sh", "-c", INTO_ONE, "sh", *chat], on_stdout=on_stdout, cwd=folder)
    try:
        note("laneway chat --rehearse <<MESSAGES")
        for line in lines:
            note(line)
            child.write(f"{line}\n".encode())
        note("MESSAGES")
        child.end_input()
        end = await child.wait()
    finally:
        await child.stop()
    return shown.decode("utf-8", "replace"), str(end)
