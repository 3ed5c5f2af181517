"""The host of one lane of a conversation: passes on what the lane tells, and what it delegates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from laneway.core.model import Event


class ConversationHost:
    """Implements `laneway.doors.chat.ports.DelegatingHost`."""

    def __init__(
        self,
        lane: str,
        hear: Callable[[str, Event], None],
        delegates: Callable[[str], Mapping[str, str]],
        delegate: Callable[[str, str, str], Awaitable[str]],
    ) -> None:
        self._lane = lane
        self._hear = hear
        self._delegates = delegates
        self._delegate = delegate
        self._is_deaf = False

    def on_event(self, event: Event) -> None:
        if not self._is_deaf:
            self._hear(self._lane, event)

    def cut_off(self) -> None:
        """The lane was given up: what it tells counts no more."""
        self._is_deaf = True

    @property
    def delegates(self) -> Mapping[str, str]:
        return self._delegates(self._lane)

    async def delegate(self, lane: str, task: str) -> str:
        return await self._delegate(self._lane, lane, task)
