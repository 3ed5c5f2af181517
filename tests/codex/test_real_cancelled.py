"""Cancelling a turn ends its running command, which Codex by itself would let continue."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from laneway.core.model import Activity
from laneway.core.session import Session
from tests.codex.support import play, real, say


class Pulse:
    """A named pipe that a command holds open as long as it lives; nothing is read from it but its end."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.name = path.name
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def command(self, rest: str = "sleep 1000") -> str:
        return f"exec 3> {self.name}; echo x >&3; {rest}"

    async def wait_beat(self) -> None:
        await self._readable()
        assert os.read(self._fd, 100) == b"x\n"

    @property
    def is_alive(self) -> bool:
        try:
            return os.read(self._fd, 1) != b""
        except BlockingIOError:
            return True

    async def wait_end(self) -> None:
        await self._readable()
        assert not self.is_alive

    async def _readable(self) -> None:
        readable, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(self._fd, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._fd)

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def pulses() -> Iterator[list[Pulse]]:
    made: list[Pulse] = []
    yield made
    for pulse in made:
        pulse.close()


async def cancelled(session: Session, pulse: Pulse) -> None:
    """A turn that is cancelled while its command runs."""
    turn = say(session, f"%run {pulse.command()}\n%say Not reached.")
    await pulse.wait_beat()
    async for event in turn.events:
        if isinstance(event, Activity):
            break
    turn.cancel()
    assert (await turn.result()).status == "interrupted"


async def test_a_command_ends_with_the_turn_that_is_cancelled(pulses: list[Pulse]) -> None:
    """Gone, with all that it started; the session goes on."""
    async with real() as here:
        session = await here.session()
        pulses.append(Pulse(here.rehearsal.work / "pulse"))
        await cancelled(session, pulses[0])
        await pulses[0].wait_end()
        _, result = await play(session, "%say Still here.")
        assert result.text == "Still here."


@pytest.mark.needs("one_command")
async def test_what_an_earlier_turn_left_running_runs_on(pulses: list[Pulse]) -> None:
    """A server that somebody wanted in the background is none of the cancelled turn's."""
    async with real() as here:
        session = await here.session()
        pulses += [Pulse(here.rehearsal.work / name) for name in ("left", "other")]
        left, other = pulses
        arguments = {"cmd": left.command(), "yield_time_ms": 250, "login": False}
        _, result = await play(session, f"%tool exec_command {json.dumps(arguments)}\n%say Left.")
        assert result.text == "Left."
        await left.wait_beat()
        await cancelled(session, other)
        await other.wait_end()
        assert left.is_alive
        await session.close()
        await left.wait_end()
