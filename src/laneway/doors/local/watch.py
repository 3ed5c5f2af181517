"""Sends one session's events to one watcher on the local socket, which may be slow and must slow nobody.

Events wait in the session's own bounded buffer, where text is merged and what does not fit is counted;
they are encoded only as fast as the watcher reads.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, Protocol

from laneway.core.model import Event, public
from laneway.doors.local.live import LocalSession
from laneway.doors.local.shapes import EVENT, SNAPSHOT, SessionSnapshot, Watched, WatchedEvent, session_info
from laneway.wire.messages import Raw, encode

MAX_AT_ONCE_BYTES = 256 * 1024
"""Encoded before other tasks get their turn and the watcher's pace is checked again."""


class WatcherChannel(Protocol):
    """How one watcher is reached, and what is known of it."""

    def tell(self, method: str, params: Any) -> None: ...

    async def wait_drained(self) -> None:
        """Wait until it has read most of what was sent."""
        ...

    async def is_person(self) -> bool:
        """Whether a person at a terminal is at its other end."""
        ...


class SessionWatch:
    """One watcher of one session."""

    def __init__(self, named: LocalSession, channel: WatcherChannel, door: str = "") -> None:
        self.done = asyncio.Event()
        """Set when nothing more will be sent."""
        self._named = named
        self._channel = channel
        self._door = door

    @property
    def is_over(self) -> bool:
        """Whether no more events will come."""
        return self._named.state == "closed"

    async def run(self) -> Watched:
        """Send a snapshot, then all events until the session is closed; cancelled when the watcher leaves."""
        session = self._named.session
        events = session.subscribe()
        # With no pause after the subscription: what is not in the snapshot comes as an event.
        self._channel.tell(
            SNAPSHOT,
            SessionSnapshot(
                session=session_info(self._named, os.getpid(), self._door),
                questions=tuple(session.questions),
            ),
        )
        unread = 0
        try:
            async for event in events:
                unread += self._tell(event, events.lost)
                if unread > MAX_AT_ONCE_BYTES:
                    await self._channel.wait_drained()
                    unread = 0
            return Watched(agent_id=session.agent_id, lost=events.lost)
        finally:
            session.unsubscribe(events)
            self.done.set()

    def _tell(self, event: Event, lost: int) -> int:
        encoded = encode(WatchedEvent(agent_id=self._named.agent_id, event=public(event), lost=lost))
        self._channel.tell(EVENT, Raw(encoded))
        return len(encoded)
