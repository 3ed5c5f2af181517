"""A Laneway whose Codex halts at a chosen call, and the ways to kill either."""

from __future__ import annotations

import os
import sys
from asyncio.subprocess import Process
from pathlib import Path

from laneway.codex import locate
from laneway.testing.processes import wait_gone
from laneway.wire.guardian import descendants
from tests.core.support import until
from tests.doors.acp.client import Client

HALTING = Path(__file__).parent / "halting_codex.py"


def halting(folder: Path, method: str) -> tuple[dict[str, str], Path]:
    """The environment of a Laneway whose Codex halts, once, before this call; the file that tells so."""
    mark, codex = folder / "halted", folder / "codex"
    words = f'"{sys.executable}" {HALTING} {mark} {method} {locate.find().path}'
    codex.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    codex.chmod(0o755)
    return {"LANEWAY_CODEX_BIN": str(codex), **own_state(folder)}, mark


def own_state(folder: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(folder / "state")}


async def wait_made(mark: Path) -> None:
    await until(lambda: mark.name in os.listdir(mark.parent))


async def kill_whole(process: Process) -> None:
    """SIGKILL for Laneway; when this returns, its Codex is gone as well."""
    below = descendants(process.pid)
    process.kill()
    await process.wait()
    for pid in below:
        await wait_gone(pid)


async def listed(client: Client) -> set[str]:
    return {each["sessionId"] for each in (await client.ask("session/list", {}))["sessions"]}
