"""`laneway` as people run it: a process of its own."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any

LANEWAY = [sys.executable, "-m", "laneway"]


class Ran:
    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out.decode()
        self.err = err.decode()


async def start(*words: str, env: dict[str, str] | None = None, **streams: Any) -> Process:
    given = {"stdin": asyncio.subprocess.DEVNULL, "stdout": PIPE, "stderr": PIPE, **streams}
    return await asyncio.create_subprocess_exec(*LANEWAY, *words, env={**os.environ, **(env or {})}, **given)


async def laneway(*words: str, env: dict[str, str] | None = None, stdin: str | None = None) -> Ran:
    """Run to the end, under a deadline."""
    async with asyncio.timeout(60):
        streams = {} if stdin is None else {"stdin": PIPE}
        process = await start(*words, env=env, **streams)
        out, err = await process.communicate(None if stdin is None else stdin.encode())
        assert process.returncode is not None
        return Ran(process.returncode, out, err)


def misbehaving_codex(folder: Path, *flags: str) -> str:
    """Something to name with --codex-bin that goes wrong on demand."""
    path = folder / "codex"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m laneway.testing.misbehave {" ".join(flags)}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
