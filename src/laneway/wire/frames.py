"""Framing of newline-delimited JSON: splits chunks of bytes into messages of bounded size.

Splits and joins; decodes nothing. A message over the limit is skipped whole and reported once, and
reading goes on after its newline. `laneway.wire.headers` reads streams that also carry messages with
a Content-Length header.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_FRAME_BYTES = 64 * 1024 * 1024
"""One message. A peer that sends more is broken or hostile; images and long outputs stay below."""


def ignore_size(size: int) -> None:
    pass


def as_line(message: bytes) -> bytes:
    """A JSON text as one line. Inside JSON a bare newline is always white space."""
    if b"\n" in message:
        message = message.replace(b"\n", b" ")
    return message + b"\n"


class LineDecoder:
    """Feed it chunks as they come; it returns the complete lines, without their newline."""

    def __init__(
        self, max_bytes: int = MAX_FRAME_BYTES, on_oversize: Callable[[int], None] = ignore_size
    ) -> None:
        self._max_bytes = max_bytes
        self._on_oversize = on_oversize
        # One buffer, not a list of parts: a message in many small chunks costs only its own length.
        self._part = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        lines = data.split(b"\n")
        tail = lines.pop()
        if not lines:
            if tail:
                self._keep(tail)
            return []
        if self._skipping:
            self._skipping = False
            del lines[0]
        elif self._part:
            self._part += lines[0]
            if len(self._part) > self._max_bytes:
                self._on_oversize(len(self._part))
                del lines[0]
            else:
                lines[0] = bytes(self._part)
            self._part = bytearray()
        if len(data) > self._max_bytes:
            lines = [line for line in lines if self._fits(line)]
        if tail:
            self._keep(tail)
        return [line for line in lines if line] if b"" in lines else lines

    def wrap(self, message: bytes) -> bytes:
        """Frame a message for the same peer."""
        return as_line(message)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of a message whose end has not come yet."""
        return len(self._part)

    def _fits(self, line: bytes) -> bool:
        if len(line) <= self._max_bytes:
            return True
        self._on_oversize(len(line))
        return False

    def _keep(self, part: bytes) -> None:
        if self._skipping:
            return
        self._part += part
        if len(self._part) > self._max_bytes:
            self._on_oversize(len(self._part))
            self._part = bytearray()
            self._skipping = True
