"""`laneway` as people run it: a process of its own."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import laneway as package
from laneway.testing.terminal import Terminal, terminal
from tests.forked import start_laneway

LANEWAY = [sys.executable, "-m", "laneway"]
Start: TypeAlias = Callable[..., Awaitable[Process]]


class Ran:
    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out.decode()
        self.err = err.decode()


async def start(*words: str, env: dict[str, str] | None = None, **streams: Any) -> Process:
    """A `laneway` that runs; see `tests.forked` for what it is spared."""
    given = {"stdin": asyncio.subprocess.DEVNULL, "stdout": PIPE, "stderr": PIPE, **streams}
    return await start_laneway(*words, env={**os.environ, **(env or {})}, **given)


async def start_python(*words: str, env: dict[str, str] | None = None, **streams: Any) -> Process:
    """The same with a Python of its own, which loads what it needs: as people have it."""
    given = {"stdin": asyncio.subprocess.DEVNULL, "stdout": PIPE, "stderr": PIPE, **streams}
    return await asyncio.create_subprocess_exec(*LANEWAY, *words, env={**os.environ, **(env or {})}, **given)


async def laneway(
    *words: str, env: dict[str, str] | None = None, stdin: str | None = None, begin: Start | None = None
) -> Ran:
    """Run to the end, under a deadline."""
    async with asyncio.timeout(60):
        streams = {} if stdin is None else {"stdin": PIPE}
        process = await (begin or start)(*words, env=env, **streams)
        out, err = await process.communicate(None if stdin is None else stdin.encode())
        assert process.returncode is not None
        return Ran(process.returncode, out, err)


@asynccontextmanager
async def in_terminal(*words: str, env: dict[str, str], cwd: Path) -> AsyncIterator[Terminal]:
    """`laneway` where a person sees it."""
    source = str(Path(package.__file__).parent.parent)  # PYTHONPATH may be relative to another folder
    surroundings = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": source, **env}
    async with terminal([*LANEWAY, *words], env=surroundings, cwd=cwd) as screen:
        yield screen


def misbehaving_codex(folder: Path, *flags: str) -> str:
    """Something to name with --codex-bin that goes wrong on demand."""
    path = folder / "codex"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m laneway.testing.misbehave {" ".join(flags)}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


async def read_until(fd: int, text: bytes) -> bytes:
    """Read a terminal until it shows something."""
    loop = asyncio.get_running_loop()
    seen, ready = b"", asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        while text not in seen:
            await ready.wait()
            ready.clear()
            seen += os.read(fd, 65536)
    finally:
        loop.remove_reader(fd)
    return seen


def everything(folder: Path) -> dict[str, bytes]:
    """The content of all files below a folder, by their paths."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
