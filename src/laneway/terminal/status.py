"""The status line of a terminal: what is being done, for how long, and the tokens used.

Above it are the newest lines of a running command. Drawn on standard error and only on a terminal
that can erase; erased before anything else is printed, and redrawn only on a free line.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from laneway.terminal.foreign import MARK, cells, label
from laneway.terminal.style import Style, is_dumb, size

TICK_S = 0.12
"""Between two drawings, which turn the mark and count the seconds."""
ERASE_BELOW = "\r\x1b[J"
MARKS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
ASCII_MARKS = "|/-\\"
MIN_COLUMNS = 40
"""In a narrower terminal the line would wrap, and could not be erased."""
SPARE_ROWS = 3
"""Rows of the terminal that are left for earlier output."""


class StatusLine:
    """Started by `start` on a running loop, ended by `close`; call `erase` before anything is printed."""

    def __init__(self, stream: TextIO, *, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._style = Style(stream)
        self._now = now
        self._began = now()
        self._what = ""
        self._tokens = 0
        self._live: Sequence[str] = ()
        self._tick = 0
        self._rows = 0
        """How many rows are drawn."""
        self._is_paused = False
        self._can_draw = stream.isatty() and not is_dumb()
        self._is_free: Callable[[], bool] = lambda: True
        self._timer: asyncio.TimerHandle | None = None
        is_utf8 = (getattr(stream, "encoding", None) or "").lower().replace("-", "") == "utf8"
        self._marks = MARKS if is_utf8 else ASCII_MARKS

    def start(self, what: str, is_free: Callable[[], bool] = lambda: True) -> None:
        """`is_free` says whether the cursor is at the beginning of an empty line."""
        self._what, self._is_free = what, is_free
        if self._can_draw:
            self._on_tick()

    def update(
        self, what: str | None = None, *, tokens: int | None = None, live: Sequence[str] | None = None
    ) -> None:
        """Change what is shown. Drawn with the next tick: much may change in between."""
        self._what = self._what if what is None else what
        self._live = self._live if live is None else live
        self._tokens = self._tokens if tokens is None else tokens

    def erase(self) -> None:
        if self._rows:
            self._write(self._erasing())
            self._rows = 0

    def pause(self) -> None:
        self._is_paused = True
        self.erase()

    def resume(self) -> None:
        self._is_paused = False

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.pause()

    def _on_tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._on_tick)
        self._tick += 1
        if self._is_paused or not self._is_free():
            return
        columns, rows = size(self._stream)
        if columns < MIN_COLUMNS:
            return
        mark = self._marks[self._tick % len(self._marks)]
        text = status_text(self._what, self._now() - self._began, self._tokens, columns - 3)
        live = self._live[-max(rows - SPARE_ROWS, 0) :] if rows > SPARE_ROWS else ()
        lines = [self._style.dim(MARK + label(line, columns - 6)) for line in live]
        lines.append(f"{self._style.cyan(mark)} {self._style.dim(text)}")
        self._write(self._erasing() + "\n".join(lines))
        self._rows = len(lines)

    def _erasing(self) -> str:
        up = f"\x1b[{self._rows - 1}A" if self._rows > 1 else ""
        return up + ERASE_BELOW

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def status_text(what: str, seconds: float, tokens: int, columns: int) -> str:
    """One line that fits: the text is cut, the counts stay."""
    counts = f" · {elapsed(seconds)}" + (f" · {count(tokens)} tokens" if tokens else "")
    text = label(what, max(columns - len(counts), 1)) + counts
    hint = " · Ctrl-C stops"
    return text + hint if cells(text + hint) <= columns else text


def elapsed(seconds: float) -> str:
    """`7 s`, `3 min 5 s`, `1 h 4 min`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def count(number: int) -> str:
    """`950`, `12.3k`, `1.2M`."""
    if number < 1000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1000:.1f}k"
    return f"{number / 1_000_000:.1f}M"
