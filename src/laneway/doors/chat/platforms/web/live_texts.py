"""Texts and outputs that lanes are writing in one conversation, paced for browsers.

Finished blocks of Markdown are told once, as trees; the open end is told again each time. Whoever joins
later gets all of it by `snapshot`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laneway.base.plain import plain
from laneway.core.ports import Clock
from laneway.doors.chat.outputs import OutputDelta, TextDelta
from laneway.doors.chat.platforms.web.markdown_tree import Node, markdown_tree
from laneway.doors.chat.ports import PartialText
from laneway.rendering.outputs import PacedOutputs
from laneway.terminal.blocks import MarkdownBlocks

PACE_S = 0.06
"""Between two events of one conversation: as fast as an eye follows."""
MAX_TAIL_CHARS = 16_000
"""Of the open end: a block that is longer shows its last part until it is finished."""

Tell = Callable[[str, dict[str, Any]], None]


class LivePart:
    """One text that is being written."""

    def __init__(self, lane: str, ticket: str, part: str, kind: str) -> None:
        self.lane, self.ticket, self.part, self.kind = lane, ticket, part, kind
        self.length = 0
        self._blocks = MarkdownBlocks()
        self._trees: list[list[Node]] = []
        self._told = 0

    def add(self, text: str) -> None:
        self.length += len(text)
        self._trees += [markdown_tree(block.text) for block in self._blocks.feed(text)]

    def news(self) -> dict[str, Any]:
        """What was not told yet."""
        first, self._told = self._told, len(self._trees)
        return self._json(first)

    def whole(self) -> dict[str, Any]:
        return self._json(0)

    def _json(self, first: int) -> dict[str, Any]:
        return {
            "lane": self.lane,
            "ticket": self.ticket,
            "part": self.part,
            "kind": self.kind,
            "first": first,
            "trees": self._trees[first:],
            "tail": plain(self._blocks.open_text[-MAX_TAIL_CHARS:]),
        }


class LiveTexts:
    """`tell` gets a topic and its data; `on_gap` is called when a piece is missing, and `restore` is due."""

    def __init__(self, clock: Clock, tell: Tell, on_gap: Callable[[], None]) -> None:
        self._clock = clock
        self._tell = tell
        self._on_gap = on_gap
        self._parts: dict[str, LivePart] = {}
        self._dirty: dict[str, None] = {}
        self._stop_timer: Callable[[], None] | None = None
        self._outputs = PacedOutputs(clock, self._tell_output, sends_all=True)
        self._tickets: dict[str, str] = {}

    def add(self, delta: TextDelta) -> None:
        live = self._parts.get(delta.part)
        if live is None:
            live = self._parts[delta.part] = LivePart(delta.lane, delta.ticket, delta.part, delta.kind)
        if delta.offset > live.length:
            self._on_gap()
            return
        live.add(delta.text[live.length - delta.offset :])
        self._dirty[delta.part] = None
        if self._stop_timer is None:
            self._flush_texts()  # the first piece at once
            self._stop_timer = self._clock.after(PACE_S, self._on_timer)

    def restore(self, texts: tuple[PartialText, ...]) -> None:
        """What lanes are writing, from the conversation itself."""
        for text in texts:
            live = self._parts.get(text.part)
            if live is None or live.length < len(text.text):
                live = self._parts[text.part] = LivePart(text.lane, text.ticket, text.part, text.kind)
                live.add(text.text)
                self._dirty[text.part] = None

    def add_output(self, delta: OutputDelta) -> None:
        self._tickets[delta.item_id] = delta.ticket
        self._outputs.add(delta.item_id, delta.lane, delta.text)

    def finish(self, part: str) -> None:
        """The whole text is told otherwise."""
        self._parts.pop(part, None)
        self._dirty.pop(part, None)

    def finish_output(self, item_id: str) -> None:
        self._outputs.drop(item_id)
        self._tickets.pop(item_id, None)

    def end_turn(self, ticket: str) -> None:
        for part in [part for part, live in self._parts.items() if live.ticket == ticket]:
            self.finish(part)
        for item_id in [item_id for item_id, of in self._tickets.items() if of == ticket]:
            self.finish_output(item_id)

    def flush(self) -> None:
        """Tell all that waits, because something comes after it."""
        self._flush_texts()
        for item_id in list(self._tickets):
            self._outputs.flush(item_id)

    def snapshot(self) -> list[dict[str, Any]]:
        return [live.whole() for live in self._parts.values()]

    def close(self) -> None:
        self._outputs.clear()
        if self._stop_timer is not None:
            self._stop_timer()
            self._stop_timer = None

    def _on_timer(self) -> None:
        self._stop_timer = None
        if self._dirty:
            self._flush_texts()
            self._stop_timer = self._clock.after(PACE_S, self._on_timer)

    def _flush_texts(self) -> None:
        for part in list(self._dirty):
            self._tell("live", self._parts[part].news())
        self._dirty.clear()

    def _tell_output(self, item_id: str, lane: str, text: str) -> None:
        ticket = self._tickets.get(item_id, "")
        self._tell("output", {"item": item_id, "lane": lane, "ticket": ticket, "text": plain(text)})
