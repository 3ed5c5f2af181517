"""A scripted model for Claude Code in a process of its own, and a home for Claude Code that leads there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from bench.rig import CHILD_S, Rig
from laneway.rehearsal.claude_home import throwaway_claude
from laneway.rehearsal.messages import answer
from laneway.rehearsal.server import ModelServer


@contextmanager
def claude_rig(rig: Rig) -> Iterator[Rig]:
    """The same rig, in the environment and the folder of a Claude Code that rehearses."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.claude_rig"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=rig.environment,
    )
    try:
        assert process.stdout is not None
        origin = f"http://127.0.0.1:{int(process.stdout.readline())}"
        with throwaway_claude(origin) as folder:
            environment = folder.environment(rig.environment) | {"HOME": str(folder.work.parent)}
            yield msgspec.structs.replace(rig, work=folder.work, environment=environment)
    finally:
        process.communicate(timeout=CHILD_S)  # closes its standard input, which ends it


async def serve() -> None:
    """Serve until standard input closes; the port is the first line on standard output."""
    async with ModelServer(routes={"/v1/messages": answer}) as model:
        sys.stdout.write(f"{model.port}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
