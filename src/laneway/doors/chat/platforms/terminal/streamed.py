"""A text that a lane is writing: what of it is complete is written out once, what is not can be looked at.

Pieces carry their place in the text, so a piece that was missed shows; the complete text at the end makes
up for it.
"""

from __future__ import annotations

from collections.abc import Callable

from laneway.base.plain import PlainStream, plain
from laneway.terminal.blocks import Block, MarkdownBlocks
from laneway.terminal.foreign import fenced
from laneway.terminal.markdown import rendered

MAX_OPEN_CHARS = 4000
"""Of an unfinished paragraph that is rendered while it grows: a longer one is shown without rendering."""


class StreamedMarkdown:
    """Writes the blocks of Markdown as they are finished, rendered, without redrawing any."""

    def __init__(self, write: Callable[[str], None], columns: Callable[[], int]) -> None:
        self._write = write
        self._columns = columns
        self._blocks = MarkdownBlocks()
        self._is_first = True

    def feed(self, text: str) -> None:
        for block in self._blocks.feed(text):
            self._print(block)

    def end(self) -> None:
        for block in self._blocks.end():
            self._print(block)
        self._is_first = True  # what follows, if anything does, is set apart by whoever came between

    def open_rows(self) -> list[str]:
        """The block that is being written."""
        block = self._blocks.open_block
        if not block.text.strip():
            return []
        if len(block.text) > MAX_OPEN_CHARS:
            return fenced(plain(block.text[-MAX_OPEN_CHARS:]), self._columns(), mark="", goes_on="")
        return rendered(block, self._columns()).splitlines()

    def _print(self, block: Block) -> None:
        gap = "" if self._is_first or block.goes_on else "\n"
        self._is_first = False
        self._write(gap + rendered(block, self._columns()))


class StreamedPlain:
    """Writes text as it comes: unchanged for a pipe, with visible controls for a terminal."""

    def __init__(self, write: Callable[[str], None], *, is_terminal: bool = False) -> None:
        self._write = write
        self._visible = PlainStream() if is_terminal else None
        self._is_mid_line = False

    def feed(self, text: str) -> None:
        self._show(text if self._visible is None else self._visible.feed(text))

    def end(self) -> None:
        if self._visible is not None:
            self._show(self._visible.flush())
        if self._is_mid_line:
            self._show("\n")

    def _show(self, text: str) -> None:
        if text:
            self._write(text)
            self._is_mid_line = not text.endswith("\n")

    def open_rows(self) -> list[str]:
        return []


Writer = StreamedMarkdown | StreamedPlain


class StreamedText:
    """One text of a lane by its pieces."""

    def __init__(self, lane: str, writer: Writer) -> None:
        self.lane = lane
        self.writer = writer
        self.length = 0
        """Characters that have come."""
        self._is_whole = True

    def add(self, offset: int, text: str) -> None:
        """A piece. One that was seen before is left out; after a gap the rest waits for the complete text."""
        new = text[max(self.length - offset, 0) :]
        if offset > self.length:
            self._is_whole = False
        if self._is_whole and new:
            self.writer.feed(new)
            self.length += len(new)

    def finish(self, text: str) -> None:
        """The complete text: what of it was not written yet is written now."""
        self.writer.feed(text[self.length :])
        self.length = len(text)
        self.writer.end()
