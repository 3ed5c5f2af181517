"""`laneway ask` as a person has it before them: in a terminal, with the real Codex in rehearsal."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.testing.terminal import Terminal, terminal
from tests.cli.support import LANEWAY

ASKS = "Enter declines:"
"""How the last row of the screen ends when a question waits for its answer."""
READ_ONLY = ("-s", "read-only", "-a", "on-request")


def given(**more: str) -> dict[str, str]:
    """The environment of a person's terminal."""
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return {**env, "TERM": "xterm-256color", "PYTHONPATH": os.pathsep.join(sys.path), **more}


@asynccontextmanager
async def asking(
    *words: str,
    cwd: Path,
    rows: int = 50,
    columns: int = 120,
    env: dict[str, str] | None = None,
    rehearse: bool = True,
) -> AsyncIterator[Terminal]:
    """`laneway ask` in a terminal of its own."""
    argv = [*LANEWAY, "ask", *(["--rehearse"] if rehearse else []), *words]
    async with terminal(argv, env=given(**(env or {})), cwd=cwd, rows=rows, columns=columns) as screen:
        yield screen


async def wait_asked(screen: Terminal) -> None:
    """Until a question waits for its answer, in the last row of all."""

    def is_asked() -> bool:
        last = screen.text.rpartition("\n")[2]
        return last.startswith("  ") and last.endswith(ASKS)

    await screen.wait_until(is_asked, "question at the end of")


@asynccontextmanager
async def shell(line: str, *, cwd: Path, **env: str) -> AsyncIterator[Terminal]:
    """A line as somebody types it into a shell; `LANEWAY` in it is the program."""
    typed = line.replace("LANEWAY", shlex.join(LANEWAY))
    async with terminal(["/bin/sh", "-c", typed], env=given(**env), cwd=cwd) as screen:
        yield screen
