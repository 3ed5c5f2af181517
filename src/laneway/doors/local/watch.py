"""One session's events on their way to one watcher, who may be slow and must slow nobody.

What waits, waits in the session's own bounded buffer, where text is merged and what does not fit
is counted; it is put into words only as fast as the watcher reads.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Protocol

from laneway.core.colleague import Colleague
from laneway.core.model import Event, public
from laneway.doors.local.shapes import EVENT, SNAPSHOT, Snapshot, Told, Watched, seen
from laneway.wire.messages import Raw, encode

MAX_AT_ONCE_BYTES = 256 * 1024
"""Put into words before others have their turn and the watcher's pace is looked at again."""


class Line(Protocol):
    """The way to one watcher."""

    def tell(self, method: str, params: Any) -> None: ...

    async def wait_room(self) -> None:
        """Until it has read most of what it was told."""
        ...

    async def is_person(self) -> bool:
        """Whether somebody at a terminal is at its other end."""
        ...


class Watch:
    def __init__(self, colleague: Colleague, line: Line) -> None:
        self.told = asyncio.Event()
        """Set when nothing more will be told."""
        self._colleague = colleague
        self._line = line

    @property
    def is_over(self) -> bool:
        """Whether no event will come any more."""
        return self._colleague.state == "closed"

    async def run(self) -> Watched:
        """Until the session is closed; cancelled when the watcher leaves."""
        session = self._colleague.session
        events = session.subscribe()
        # In one breath with the subscription: what is not in the snapshot comes as an event.
        self._line.tell(
            SNAPSHOT,
            Snapshot(session=seen(self._colleague, os.getpid()), questions=tuple(session.questions)),
        )
        unread = 0
        try:
            async for event in events:
                unread += self._tell(event, events.lost)
                if unread > MAX_AT_ONCE_BYTES:
                    await self._line.wait_room()
                    unread = 0
            return Watched(agent_id=session.agent_id, lost=events.lost)
        finally:
            session.unsubscribe(events)
            self.told.set()

    def _tell(self, event: Event, lost: int) -> int:
        words = encode(Told(agent_id=self._colleague.agent_id, event=public(event), lost=lost))
        self._line.tell(EVENT, Raw(words))
        return len(words)
