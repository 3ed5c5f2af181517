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
LINES = (
    "/codex %run seq 3 | wc -l",
    "/codex %ask Which colour? red | blue",
    "blue",
    f"%say {SAID}",
)
"""What is typed, a message each; `blue` answers the question of Codex."""
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


async def run_demo(folder: Path, note: Callable[[str], None], *flags: str) -> tuple[str, str]:
    """Run it to its end; what was shown, and how the process ended."""
    shown = bytearray()
    rest = bytearray()

    def on_stdout(data: bytes) -> None:
        nonlocal rest
        shown.extend(data)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            note(line.decode("utf-8", "replace"))

    chat = [sys.executable, "-m", "laneway", "chat", "--rehearse", "--lane", lead(), *flags]
    child = await Child.spawn(["/bin/sh", "-c", INTO_ONE, "sh", *chat], on_stdout=on_stdout, cwd=folder)
    try:
        note("laneway chat --rehearse <<MESSAGES")
        for line in LINES:
            note(line)
            child.write(f"{line}\n".encode())
        note("MESSAGES")
        child.end_input()
        end = await child.wait()
    finally:
        await child.stop()
    return shown.decode("utf-8", "replace"), str(end)
