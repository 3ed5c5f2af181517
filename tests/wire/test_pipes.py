"""Pipes read into one buffer: all that was written, in order, its end, and no memory taken in advance."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from laneway.wire.pipes import READ_BYTES, PipeReader

DEADLINE_S = 30.0


class Ear(asyncio.Protocol):
    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.said: list[str] = []
        self.news = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.said.append("made")

    def data_received(self, data: bytes) -> None:
        self.heard.append(data)
        self.news.set()

    def eof_received(self) -> None:
        self.said.append("eof")

    def connection_lost(self, error: Exception | None) -> None:
        self.said.append(f"lost {error}")
        self.news.set()

    async def wait(self, count: int) -> bytes:
        """Until so many bytes were heard."""
        async with asyncio.timeout(DEADLINE_S):
            while len(b"".join(self.heard)) < count:
                self.news.clear()
                await self.news.wait()
        return b"".join(self.heard)

    async def wait_lost(self) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not self.said[-1].startswith("lost"):
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def piped() -> AsyncIterator[tuple[Ear, PipeReader, int]]:
    reading, writing = os.pipe()
    ear = Ear()
    reader = PipeReader(ear, os.fdopen(reading, "rb"))
    try:
        yield ear, reader, writing
    finally:
        try:
            os.close(writing)
        except OSError:
            pass  # the test has closed it
        await ear.wait_lost()


async def test_all_that_is_written_comes_in_order_and_then_the_end() -> None:
    async with piped() as (ear, reader, writing):
        data = os.urandom(5 * READ_BYTES)
        writer = asyncio.create_task(asyncio.to_thread(os.write, writing, data))
        assert await ear.wait(len(data)) == data
        await writer
        assert max(map(len, ear.heard)) <= READ_BYTES
        os.close(writing)
        await ear.wait_lost()
    assert ear.said == ["made", "eof", "lost None"]
    assert reader.is_closing()


async def test_what_came_is_not_overwritten_by_what_comes_next() -> None:
    async with piped() as (ear, _, writing):
        for number in range(100):
            os.write(writing, b"%03d" % number)
            await ear.wait(3 * (number + 1))
        assert ear.heard == [b"%03d" % number for number in range(100)]


async def test_a_paused_pipe_is_not_read_and_loses_nothing() -> None:
    async with piped() as (ear, reader, writing):
        reader.pause_reading()
        reader.pause_reading()
        os.write(writing, b"kept")
        for _ in range(10):
            await asyncio.sleep(0)
        assert (ear.heard, reader.is_reading()) == ([], False)
        reader.resume_reading()
        reader.resume_reading()
        assert await ear.wait(4) == b"kept"


async def test_closing_ends_it_and_twice_is_harmless() -> None:
    async with piped() as (ear, reader, writing):
        reader.close()
        reader.close()
        reader.resume_reading()
        await ear.wait_lost()
        with pytest.raises(BrokenPipeError):
            os.write(writing, b"x")
    assert ear.said == ["made", "lost None"]


async def test_a_short_read_takes_no_more_memory_than_it_brings() -> None:
    """A transport that asks for a quarter of a megabyte first leaves holes in the heap that nothing fits."""
    async with piped() as (ear, _, writing):
        os.write(writing, b"warm")
        await ear.wait(4)
        tracemalloc.start()
        try:
            before, _peak = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            os.write(writing, b"x" * 100)
            await ear.wait(104)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak - before < READ_BYTES // 2
