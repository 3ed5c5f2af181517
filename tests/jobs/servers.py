"""Real `laneway mcp` servers on the jobs of a person's shell, each a process of its own."""

from __future__ import annotations

import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.cli.jobs.support import Shell
from tests.doors.mcp.support import Client
from tests.doors.stage import MAX_LINE_BYTES
from tests.forked import start_laneway


async def start(person: Shell, *words: str, **env: str) -> Process:
    """`laneway` with these words, in the person's work tree. Whoever calls ends it."""
    return await start_laneway(
        *words,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, **person.env, **env},
        cwd=person.here.work,
        limit=MAX_LINE_BYTES,
    )


@asynccontextmanager
async def server(person: Shell, *words: str, **env: str) -> AsyncIterator[Client]:
    """`laneway mcp` with a client that has shaken hands; gone at the end, if a test has not killed it."""
    client = Client(await start(person, "mcp", *words, **env))
    try:
        await client.greet({})
        yield client
    finally:
        await client.aclose()
