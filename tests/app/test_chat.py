"""One process of `laneway chat`: its settings, what a platform needs, and how the process ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from laneway.app.chat import chat_options, run_platforms
from laneway.app.chat_platforms import PLATFORMS, TERMINAL, require
from laneway.base.errors import UsageError
from laneway.base.settings import load
from laneway.doors.chat.options import ChatOptions
from laneway.doors.chat.ports import Chat
from laneway.testing.hand_chat import HandChat

DEADLINE_S = 30.0


class EndsWith:
    """A platform that shows nothing, and ends when it is told to."""

    def __init__(self, name: str, code: int | None) -> None:
        self.name = name
        self._code = code
        self.is_cancelled = False

    async def run(self, chat: Chat) -> int:
        try:
            if self._code is None:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise
        assert self._code is not None
        return self._code


async def test_the_first_platform_that_ends_ends_the_process_with_its_code() -> None:
    """The others are cancelled, and have closed what they opened when this returns."""
    stays = EndsWith("web", None)
    async with asyncio.timeout(DEADLINE_S):
        assert await run_platforms([EndsWith("terminal", 7), stays], HandChat(), asyncio.Event()) == 7
    assert stays.is_cancelled


async def test_a_signal_ends_the_process_with_130() -> None:
    """Whatever the platforms do."""
    stays, stop = EndsWith("web", None), asyncio.Event()
    stop.set()
    async with asyncio.timeout(DEADLINE_S):
        assert await run_platforms([stays], HandChat(), stop) == 130


async def test_what_a_platform_raises_is_raised_and_the_others_end() -> None:
    """A bot without a token, a port that is taken."""

    class Fails(EndsWith):
        async def run(self, chat: Chat) -> int:
            raise UsageError("the port is taken")

    stays = EndsWith("terminal", None)
    async with asyncio.timeout(DEADLINE_S):
        with pytest.raises(UsageError, match="the port is taken"):
            await run_platforms([stays, Fails("web", None)], HandChat(), asyncio.Event())


def test_each_setting_reaches_the_conversations(tmp_path: Path) -> None:
    """Seconds are seconds."""
    variables = {
        "LANEWAY_CHAT_DEFAULT_LANE": "codex",
        "LANEWAY_CHAT_BUSY": "queue",
        "LANEWAY_CHAT_QUESTION_SECS": "1",
        "LANEWAY_CHAT_WARN_SECS": "2",
        "LANEWAY_CHAT_SILENCE_SECS": "3",
        "LANEWAY_CHAT_COMMAND_SECS": "4",
        "LANEWAY_CHAT_IMAGE_SECS": "5",
        "LANEWAY_CHAT_CATCH_UP_SECS": "6",
    }
    assert chat_options(load({}, variables, tmp_path, tmp_path), tmp_path) == ChatOptions(
        cwd=tmp_path,
        default_lane="codex",
        busy="queue",
        question_s=1,
        warn_s=2,
        silent_s=3,
        command_silent_s=4,
        image_s=5,
        catch_up_s=6,
    )


def test_a_platform_whose_packages_are_missing_says_how_to_get_them() -> None:
    """A pipe needs none of the terminal's."""
    lacking = replace(PLATFORMS[TERMINAL], modules=("no_such_module",), needs_modules=lambda: True)
    with pytest.raises(UsageError, match=r"terminal needs the extra laneway\[chat\].* no_such_module: "):
        require([TERMINAL], {TERMINAL: lacking})
    require([TERMINAL], {TERMINAL: replace(lacking, needs_modules=lambda: False)})
    require([TERMINAL])
