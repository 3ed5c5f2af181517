"""What a plugin shows, as events of its turn: the `PlatformClient` and the formatter that it is given.

A message is one `Text` of its own, complete; between turns it is a `Notice`. `laneway.lanes.adapter`
begins and ends the turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from laneway.base.plain import fenced, plain, quoted
from laneway.core.model import Event, Notice, Text, Thought

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~])")


class TurnPlatform:
    """Platform of one plugin. `on_shown` is called after each message."""

    def __init__(self, emit: Callable[[Event], None], on_shown: Callable[[], None]) -> None:
        self._emit = emit
        self._on_shown = on_shown
        self._turn_id: str | None = None
        self._count = 0
        self.last_message = ""
        """Of this turn."""

    def begin(self, turn_id: str) -> None:
        self._turn_id = turn_id
        self._count = 0
        self.last_message = ""

    def end(self) -> None:
        self._turn_id = None

    async def send_message(self, text: str) -> None:
        text = str(text)
        if self._turn_id is None:
            self._emit(Notice(level="info", message=text))
            return
        self.last_message = text
        self._emit(Text(turn_id=self._turn_id, item_id=self._item_id(), text=text))
        self._on_shown()

    async def send_thinking(self, text: str) -> None:
        if self._turn_id is None:
            return
        self._emit(Thought(turn_id=self._turn_id, item_id=self._item_id(), text=str(text)))
        self._on_shown()

    def _item_id(self) -> str:
        self._count += 1
        return f"{self._turn_id}:{self._count}"


class MarkdownFormatter:
    """`MessageFormatter` of Markdown, which every front end renders."""

    def escape(self, text: str) -> str:
        return _MARKUP.sub(r"\\\1", plain(text))

    def bold(self, text: str) -> str:
        return f"**{self.escape(text)}**"

    def code(self, text: str) -> str:
        return quoted(text)

    def code_block(self, text: str, language: str = "") -> str:
        return fenced(plain(text), language)
