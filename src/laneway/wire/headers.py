"""Framing of streams that mix two kinds of messages: lines, and bodies with a Content-Length header.

Each message shows which kind it is: one that begins with a header line is framed by its length, every
other one by its newline. Answers go out in the framing that the peer used last. Decodes no JSON.
Wrong headers are reported with the reason, and reading goes on at the next line: a broken header is
often followed by a whole message.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from laneway.wire.frames import MAX_FRAME_BYTES, as_line, ignore_size

MAX_HEADER_BYTES = 8 * 1024
"""One header block. Real ones have two lines; a longer text is no header."""
MAX_SKIP_FRAMES = 16
"""A body up to this many times the longest message is skipped, so that an honest peer stays in step.
A greater length is taken for wrong: to believe it would mean to swallow everything after it."""

_HEADER = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,64}+)[ \t]{0,64}+:")
_LENGTH = re.compile(rb"[ \t]*+([0-9]++)[ \t]*+\r?")
_BURIED = re.compile(rb"(?i)content-length[ \t]*+:[ \t]*+[0-9]++[ \t]*+\r?\Z")
_BURIED_BYTES = 64
"""How far from the end of a line a header is looked for."""
_ENDS = (b"}", b"}\r")
_OPENS = re.compile(rb"[ \t\r]*+[{\[]")


def _ignore_problem(problem: str) -> None:
    pass


class _HeaderBlock:
    """A header block that is being read: only the facts that matter."""

    def __init__(self) -> None:
        self.size = 0
        self.length: int | None = None
        self.problem = ""


class MixedDecoder:
    """Feed it chunks as they come; it returns the complete messages of either framing."""

    def __init__(
        self,
        max_bytes: int = MAX_FRAME_BYTES,
        on_oversize: Callable[[int], None] = ignore_size,
        on_problem: Callable[[str], None] = _ignore_problem,
    ) -> None:
        self._max_bytes = max_bytes
        self._on_oversize = on_oversize
        self._on_problem = on_problem
        self._part = bytearray()
        self._block: _HeaderBlock | None = None
        self._body_bytes = 0
        self._skip_bytes = 0
        self._skipping_line = False
        self.uses_lengths = False
        """Whether the last message had a Content-Length."""

    def feed(self, data: bytes) -> list[bytes]:
        frames: list[bytes] = []
        at = 0
        while at < len(data):
            if self._skip_bytes:
                step = min(self._skip_bytes, len(data) - at)
                self._skip_bytes -= step
                at += step
            elif self._body_bytes:
                at = self._take_body(data, at, frames)
            else:
                at = self._take_line(data, at, frames)
        return frames

    def wrap(self, message: bytes) -> bytes:
        """Frame a message for the same peer, as that peer did last."""
        if self.uses_lengths:
            return b"Content-Length: %d\r\n\r\n%b" % (len(message), message)
        return as_line(message)

    @property
    def waiting_bytes(self) -> int:
        """Bytes of a message or a header line whose end has not come yet."""
        return len(self._part)

    def _take_body(self, data: bytes, at: int, frames: list[bytes]) -> int:
        end = at + self._body_bytes - len(self._part)
        self._part += data[at:end]
        if len(self._part) == self._body_bytes:
            self._body_bytes = 0
            self._message(self._taken(), frames, has_length=True)
        return min(end, len(data))

    def _take_line(self, data: bytes, at: int, frames: list[bytes]) -> int:
        end = data.find(b"\n", at)
        is_whole = end >= 0
        if is_whole and not self._part and not self._skipping_line and end - at <= self._max_bytes:
            line = data[at:end]
            if line[:1] == b"{" and self._block is None and line.endswith(_ENDS):
                frames.append(line)  # the usual case, without a closer look
                self.uses_lengths = False
            else:
                self._line(line, frames)
            return end + 1
        if not self._skipping_line:
            self._part += data[at:end] if is_whole else data[at:]
            if len(self._part) > self._max_bytes:
                self._on_oversize(len(self._part))
                self._part = bytearray()
                self._block = None
                self._skipping_line = True
        if not is_whole:
            return len(data)
        if self._skipping_line:
            self._skipping_line = False
        else:
            self._line(self._taken(), frames)
        return end + 1

    def _taken(self) -> bytes:
        taken, self._part = bytes(self._part), bytearray()
        return taken

    def _line(self, line: bytes, frames: list[bytes]) -> None:
        header = _HEADER.match(line)
        if header:
            self._header(header, line)
        elif not line or line.isspace():
            self._end_block(frames)
        else:
            if self._block is not None:
                self._refuse("A header block ended without an empty line")
            # A body with a wrong length leaves a rest that runs into the next header. No message ends
            # in a digit, so no real message is split here.
            buried = _BURIED.search(line, max(0, len(line) - _BURIED_BYTES))
            if buried:
                self._message(line[: buried.start()], frames, has_length=False)
                self._line(buried[0], frames)
            else:
                self._message(line, frames, has_length=False)

    def _message(self, frame: bytes, frames: list[bytes], *, has_length: bool) -> None:
        frames.append(frame)
        # Noise between messages does not change how we answer.
        if has_length or _OPENS.match(frame):
            self.uses_lengths = has_length

    def _header(self, header: re.Match[bytes], line: bytes) -> None:
        if self._block is None:
            self._block = _HeaderBlock()
        block = self._block
        block.size += len(line) + 1
        if block.size > MAX_HEADER_BYTES:
            self._refuse(f"A header block is longer than {MAX_HEADER_BYTES} bytes")
        elif header[1].lower() == b"content-length":
            number = _LENGTH.fullmatch(line, header.end())
            if block.length is not None:
                block.problem = "There is more than one Content-Length"
            elif number is None:
                block.problem = "The Content-Length is not a number of bytes"
            # 20 digits are more bytes than any machine has; no need to parse them.
            elif len(number[1]) >= 20 or int(number[1]) > MAX_SKIP_FRAMES * self._max_bytes:
                block.problem = "The Content-Length is too great to be true"
            block.length = int(number[1]) if number and not block.problem else 0

    def _end_block(self, frames: list[bytes]) -> None:
        block, self._block = self._block, None
        if block is None:
            return  # an empty line between messages
        if block.problem or block.length is None:
            self._refuse(block.problem or "A header block has no Content-Length")
        elif block.length > self._max_bytes:
            self._on_oversize(block.length)
            self._skip_bytes = block.length
        elif block.length:
            self._body_bytes = block.length
        else:
            self._message(b"", frames, has_length=True)

    def _refuse(self, problem: str) -> None:
        self._block = None
        self._on_problem(problem)
