"""Draws the changes of turns for the bots, each in a process of its own, which may hang or be killed.

One at a time, so that many turns that end together leave the machine to those that work. What cannot be
drawn, or not soon enough, is shown as text.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from laneway.base.installed import installed_how
from laneway.base.programs import child_environment
from laneway.doors.chat.platforms.bots.health import tell_on_stderr
from laneway.rendering.diff_images.drawn import DRAW_S, MAX_DIFF_CHARS, DrawnDiff

if TYPE_CHECKING:
    from laneway.base.settings import Settings
    from laneway.doors.chat.platforms.bots.pictures import DiffPictures

log = logging.getLogger(__name__)

DRAWING = (sys.executable, "-P", "-m", "laneway.rendering.diff_images")
MODULES = ("PIL", "pygments")
"""What `laneway[images]` brings, as it is imported."""
MAX_WAITING = 8
"""Diffs that wait for their turn to be drawn; those beyond are shown as text."""
MAX_KEPT = 8
"""Drawn diffs that are remembered: each is asked for twice, when it is drawn and when it is sent."""
MAX_DRAWN_BYTES = 12 * 1024 * 1024


class DiffDrawer:
    """The port `DiffPictures`."""

    def __init__(self, command: Sequence[str] = DRAWING, most_s: float = DRAW_S) -> None:
        self._command = command
        self._most_s = most_s
        self._kept: dict[str, DrawnDiff] = {}
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def draw(self, diff: str) -> DrawnDiff:
        if diff not in self._kept:
            if self._waiting >= MAX_WAITING:
                log.info("a diff is shown as text: %d others wait to be drawn", self._waiting)
                return DrawnDiff()
            self._waiting += 1
            try:
                async with self._turn:
                    drawn = await self._drawn(diff)
            finally:
                self._waiting -= 1
            if not drawn.pictures:
                return drawn
            self._kept[diff] = drawn
            while len(self._kept) > MAX_KEPT:
                del self._kept[next(iter(self._kept))]
        return self._kept[diff]

    async def _drawn(self, diff: str) -> DrawnDiff:
        # One character more tells that something was left out.
        given = diff[: MAX_DIFF_CHARS + 1].encode(errors="replace")
        try:
            printed = await self._run(given)
            return msgspec.msgpack.decode(printed, type=DrawnDiff) if printed else DrawnDiff()
        except (OSError, TimeoutError, msgspec.DecodeError, msgspec.ValidationError) as problem:
            log.warning("a diff could not be drawn: %s", type(problem).__name__)
            return DrawnDiff()

    async def _run(self, given: bytes) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=child_environment(os.environ),
        )
        try:
            async with asyncio.timeout(self._most_s):
                printed, problems = await process.communicate(given)
        finally:
            if process.returncode is None:
                process.kill()
                await asyncio.shield(process.wait())
        if process.returncode or not printed:
            lines = problems.decode(errors="replace").strip().splitlines()
            why = lines[-1][:200] if lines else f"exit code {process.returncode}"
            log.warning("a diff could not be drawn: %s", why)
            return b""
        return printed


class NoDiffDrawer:
    """For an installation without the extra: says so when the first diff is to be shown."""

    def __init__(self, missing: Sequence[str], tell: Callable[[str], None]) -> None:
        self._missing, self._tell = missing, tell
        self._has_told = False

    async def draw(self, diff: str) -> DrawnDiff:
        if not self._has_told:
            self._has_told = True
            self._tell(
                "changes are shown as text. For pictures of them install the extra laneway[images], which "
                f"brings {' and '.join(self._missing)}: {installed_how().adding('images')} "
                "(or set chat.diff_images = false)"
            )
        return DrawnDiff()


def diff_pictures(
    settings: Settings,
    tell: Callable[[str], None] = tell_on_stderr,
    is_there: Callable[[str], object] = importlib.util.find_spec,
) -> DiffPictures | None:
    """As the settings say; none where diffs are to be text."""
    if not settings.chat_diff_images:
        return None
    missing = [module for module in MODULES if not is_there(module)]
    return NoDiffDrawer(missing, tell) if missing else DiffDrawer()
