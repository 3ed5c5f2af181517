"""A person's terminal: lines that are typed from now on, and nothing else."""

from __future__ import annotations

import asyncio
import io
import os
import termios
from collections.abc import Iterator

import pytest

from laneway.terminal.prompting.keyboard import Keyboard


class Desk:
    """A terminal with us at its screen's side and the test at its keys."""

    def __init__(self) -> None:
        self.keys, self._theirs = os.openpty()
        os.set_blocking(self._theirs, False)
        self.screen = io.StringIO()
        self.keyboard = Keyboard(self._theirs, self.screen)

    def type(self, text: str) -> None:
        os.write(self.keys, text.encode())

    @property
    def shows_typed(self) -> bool:
        return bool(termios.tcgetattr(self._theirs)[3] & termios.ECHO)

    async def prompted(self, prompt: str) -> None:
        async with asyncio.timeout(20):
            while not self.screen.getvalue().endswith(prompt):
                await asyncio.sleep(0)

    def close(self) -> None:
        os.close(self._theirs)
        os.close(self.keys)


@pytest.fixture
def desk() -> Iterator[Desk]:
    """One of each test's own."""
    made = Desk()
    yield made
    made.close()


async def test_a_line_is_read_that_was_typed_after_the_prompt(desk: Desk) -> None:
    """What was typed before is gone, half a line too."""
    desk.type("too early\nhalf")
    reading = asyncio.ensure_future(desk.keyboard.read_line("now: "))
    await desk.prompted("now: ")
    desk.type("  in time \nrest\n")
    assert await asyncio.wait_for(reading, 20) == "in time"


async def test_ctrl_d_is_the_end_of_input(desk: Desk) -> None:
    """On an empty line; behind something it only hands that over."""
    reading = asyncio.ensure_future(desk.keyboard.read_line("? "))
    await desk.prompted("? ")
    desk.type("half\x04")
    await asyncio.sleep(0)
    desk.type("\x04")
    assert await asyncio.wait_for(reading, 20) is None


async def test_a_terminal_that_hangs_up_is_the_end_of_input() -> None:
    """Its window was closed."""
    desk = Desk()
    reading = asyncio.ensure_future(desk.keyboard.read_line("? "))
    await desk.prompted("? ")
    os.close(desk.keys)
    assert await asyncio.wait_for(reading, 20) is None
    desk.keyboard.discard_typed()


async def test_a_secret_is_not_shown_and_the_terminal_is_as_before(desk: Desk) -> None:
    """Also when it is taken back half-way, and for whoever leaves at once."""
    reading = asyncio.ensure_future(desk.keyboard.read_line("key: ", is_hidden=True))
    await desk.prompted("key: ")
    async with asyncio.timeout(20):
        while desk.shows_typed:
            await asyncio.sleep(0)
    desk.type("s3cret\n")
    assert await asyncio.wait_for(reading, 20) == "s3cret"
    assert desk.shows_typed
    reading = asyncio.ensure_future(desk.keyboard.read_line("key: ", is_hidden=True))
    async with asyncio.timeout(20):
        while desk.shows_typed:
            await asyncio.sleep(0)
    desk.keyboard.restore()
    assert desk.shows_typed
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert desk.shows_typed
