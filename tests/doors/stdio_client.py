"""The process at the other end of a test's client: its pipes, what it wrote to standard error, its end."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from asyncio.subprocess import Process


class StdioClient(ABC):
    """`_read` takes what the process says, from the first line on."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._stderr: list[bytes] = []
        self._tasks = [asyncio.ensure_future(self._read()), asyncio.ensure_future(self._drain())]

    @abstractmethod
    async def _read(self) -> None: ...

    async def _drain(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self._stderr.append(line)

    @property
    def stderr(self) -> str:
        return b"".join(self._stderr).decode(errors="replace")

    def stop_reading(self) -> None:
        """From now on a test reads the pipe itself, or nobody does."""
        self._tasks[0].cancel()

    async def hang_up(self) -> int:
        """Close our end and wait for the process to be gone; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.process.wait()
