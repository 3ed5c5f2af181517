"""Bytes to messages: newline-delimited JSON, bounded, whatever the chunks.

Splits and joins; decodes nothing. A message over the bound is skipped whole, told
once, and the stream goes on after its newline.
"""

from __future__ import annotations

from collections.abc import Callable

MAX_FRAME_BYTES = 64 * 1024 * 1024
"""One message. Past it a peer is broken or hostile; images and long outputs stay below."""


def _ignore(size: int) -> None:
    pass


class LineDecoder:
    """Feed it chunks as they come; it returns the complete lines, without their newline."""

    def __init__(
        self, max_bytes: int = MAX_FRAME_BYTES, on_oversize: Callable[[int], None] = _ignore
    ) -> None:
        self._max_bytes = max_bytes
        self._on_oversize = on_oversize
        self._parts: list[bytes] = []
        self._waiting = 0
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
        elif self._waiting:
            if self._waiting + len(lines[0]) > self._max_bytes:
                self._on_oversize(self._waiting + len(lines[0]))
                del lines[0]
            else:
                lines[0] = b"".join((*self._parts, lines[0]))
        self._parts.clear()
        self._waiting = 0
        if len(data) > self._max_bytes:
            lines = [line for line in lines if self._fits(line)]
        if tail:
            self._keep(tail)
        return [line for line in lines if line] if b"" in lines else lines

    @property
    def waiting_bytes(self) -> int:
        """Bytes of a message whose end has not come yet."""
        return self._waiting

    def _fits(self, line: bytes) -> bool:
        if len(line) <= self._max_bytes:
            return True
        self._on_oversize(len(line))
        return False

    def _keep(self, part: bytes) -> None:
        if self._skipping:
            return
        self._parts.append(part)
        self._waiting += len(part)
        if self._waiting > self._max_bytes:
            self._on_oversize(self._waiting)
            self._parts.clear()
            self._waiting = 0
            self._skipping = True
