"""The programs that `scripts/fetch_peers.py` brought, and how they are run."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

FOLDER = os.environ.get("LANEWAY_PEERS", "")
DEADLINE_S = 300.0


def brought(folder: str, pattern: str) -> Path:
    """A file of a fetched program; the test is skipped, and counted, where it is not there."""
    found = next(iter(sorted((Path(FOLDER) / folder).glob(pattern))), None)
    if found is None:
        pytest.skip(f"{folder} was not fetched")
    return found


class Ended:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


async def node(script: Path, *words: str, env: dict[str, str] | None = None) -> Ended:
    """Run a script on the Node that was brought along, to its end."""
    runtime = brought("node-22", "node_modules/node-*/bin/node")
    # Some of these programs start others by the name of `node`.
    given = {**os.environ, **(env or {}), "PATH": f"{runtime.parent}:{os.environ['PATH']}"}
    async with asyncio.timeout(DEADLINE_S):
        process = await asyncio.create_subprocess_exec(
            runtime,
            script,
            *words,
            env=given,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        try:
            out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())
