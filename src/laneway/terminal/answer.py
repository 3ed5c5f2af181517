"""Writes the model's answer to standard output: raw into a pipe, with visible controls on a terminal.

A message is written as it streams. Each message of a turn starts on a new line.
"""

from __future__ import annotations

from typing import Protocol, TextIO

from laneway.base.plain import PlainStream


class AnswerWriter(Protocol):
    """Writes the text of messages, one after the other."""

    def write(self, text: str) -> None: ...

    def end_message(self) -> None:
        """The message is complete: what follows starts on a new line."""
        ...

    def interrupt(self) -> None:
        """Something else is about to be drawn on the terminal."""
        ...

    @property
    def is_at_line_start(self) -> bool:
        """Whether the cursor is not in the middle of a line."""
        ...


class RawAnswer:
    """Writes the text unchanged, for the reader of a pipe."""

    is_at_line_start = True
    """The answer is not shown on the terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_mid_line = False

    def write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
        self._is_mid_line = not text.endswith("\n")

    def end_message(self) -> None:
        if self._is_mid_line:
            self.write("\n")

    def interrupt(self) -> None:
        pass  # the reader of the pipe does not see it


class PlainAnswer:
    """Writes to a terminal without rendering: control characters are made visible."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._stream = PlainStream()
        self.is_at_line_start = True

    def write(self, text: str) -> None:
        self._show(self._stream.feed(text))

    def end_message(self) -> None:
        self._show(self._stream.flush())
        if not self.is_at_line_start:
            self._show("\n")

    interrupt = end_message

    def _show(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._out.flush()
            self.is_at_line_start = text.endswith("\n")
