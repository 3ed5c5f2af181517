"""Which prompts wait for Codex to record them, in the order in which they were handed over."""

from __future__ import annotations

import asyncio
from collections import deque

from laneway.base.errors import RemoteError


class Inserts:
    def __init__(self) -> None:
        self.is_serving = False
        """Whether a prompt is being served: it tells when all of it is done."""
        self._is_own = False
        self._waiting: deque[asyncio.Future[str]] = deque()
        self._last_id = ""

    def begin(self, inserted: asyncio.Future[str] | None) -> None:
        """A prompt is served. None: it is no message to Codex, whatever Codex is told because of it."""
        self.is_serving = True
        self._is_own = inserted is None
        if inserted is not None:
            self._waiting.append(inserted)

    def join(self, inserted: asyncio.Future[str]) -> None:
        """A prompt that goes into the running turn."""
        self._waiting.append(inserted)

    def leave(self, inserted: asyncio.Future[str]) -> None:
        if inserted in self._waiting:
            self._waiting.remove(inserted)

    def said(self, message_id: str) -> bool:
        """Codex has a message; whether the client should see it."""
        self._last_id = message_id
        return not self._is_own

    def recorded(self) -> None:
        """Codex will not lose it: the first who waits is told its id."""
        if self._waiting and not self._is_own:
            inserted = self._waiting.popleft()
            if not inserted.done():
                inserted.set_result(self._last_id)

    def end(self, why: RemoteError) -> None:
        """The prompt has been served; whoever still waits was not taken."""
        self.is_serving = self._is_own = False
        while self._waiting:
            inserted = self._waiting.popleft()
            if not inserted.done():
                inserted.set_exception(why)
