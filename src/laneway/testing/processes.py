"""What other processes do: which program they run, and when they have ended (Linux)."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path


async def wait_gone(pid: int, deadline_s: float = 20.0) -> None:
    """Wait until the process has ended; raise `TimeoutError` if it does not."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()
    loop.add_reader(fd, gone.set)
    try:
        async with asyncio.timeout(deadline_s):
            await gone.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def runs(pid: int, program: str) -> bool:
    """Whether the process lives and was started as this program."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0] == os.fsencode(program)
