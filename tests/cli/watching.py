"""A second terminal: where it finds sockets, and a `laneway sessions watch` in it."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.cli.support import start


def places(run: Path) -> dict[str, str]:
    """The environment in which servers and terminals meet."""
    return {"XDG_RUNTIME_DIR": str(run), "XDG_STATE_HOME": str(run / "state")}


class Watching:
    """A `laneway sessions watch` that runs."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.out = ""
        self.err = ""
        self._news = asyncio.Event()
        self._reading = [
            asyncio.ensure_future(self._read(process.stdout, "out")),
            asyncio.ensure_future(self._read(process.stderr, "err")),
        ]

    async def _read(self, stream: asyncio.StreamReader | None, name: str) -> None:
        assert stream is not None
        while data := await stream.read(65536):
            setattr(self, name, getattr(self, name) + data.decode())
            self._news.set()
        self._news.set()

    async def wait_for(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not holds():
                assert not all(reading.done() for reading in self._reading), (self.out, self.err)
                self._news.clear()
                await self._news.wait()

    async def ended(self) -> int:
        async with asyncio.timeout(20):
            await asyncio.gather(*self._reading)
            return await self.process.wait()

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def kinds(self) -> list[str]:
        return [event["event"] for event in self.events]


@asynccontextmanager
async def watching(*words: str, env: dict[str, str]) -> AsyncIterator[Watching]:
    """It has found its session when this begins."""
    process = await start("sessions", "watch", *words, env=env, stdout=PIPE, stderr=PIPE)
    there = Watching(process)
    try:
        await there.wait_for(lambda: there.out or "process" in there.err)
        yield there
    finally:
        if process.returncode is None:
            process.kill()
        await there.ended()
