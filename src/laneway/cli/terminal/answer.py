"""The model's words on standard output: as they are in a pipe, made harmless or rendered on a terminal.

A message is written as it streams. Messages of one turn stand on lines of their own.
"""

from __future__ import annotations

from typing import Protocol, TextIO

from laneway.base.plain import PlainStream


class AnswerWriter(Protocol):
    """Writes the text of one message after the other."""

    def write(self, text: str) -> None: ...

    def end_message(self) -> None:
        """The message is complete: whatever comes next stands on a line of its own."""
        ...

    def interrupt(self) -> None:
        """Something else is about to be drawn on the terminal."""
        ...

    @property
    def is_at_line_start(self) -> bool:
        """Whether something else may be drawn without standing behind half a line."""
        ...


class RawAnswer:
    """Byte for byte, for whoever reads the other end of a pipe."""

    is_at_line_start = True
    """Of the terminal, where none of this is seen."""

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
        pass  # whoever reads the pipe does not see it


class PlainAnswer:
    """On a terminal that renders nothing: control characters made visible."""

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
