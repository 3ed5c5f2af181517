"""Polls inboxes that a client has subscribed to and that no session of ours has.

The postman watches the inboxes of sessions. A client that waits for mail before there is a session
is told within a few seconds. Without such subscriptions nothing is polled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING

from laneway.base.errors import StoreError
from laneway.core.background import Coalescer, TaskSet
from laneway.core.ports import Clock
from laneway.doors.mcp.subscriptions import Subscriptions

if TYPE_CHECKING:
    from laneway.mail.inbox import Inbox

log = logging.getLogger(__name__)


class InboxPoller:
    """`async with InboxPoller(…):`. Mail that is unread at first is reported too: better twice than never."""

    def __init__(
        self,
        subscriptions: Subscriptions,
        identities: Callable[[], frozenset[str]],
        inbox: Callable[[str], Awaitable[Inbox]],
        clock: Clock,
        poll_s: float,
    ) -> None:
        self._subscriptions = subscriptions
        self._identities = identities
        self._inbox = inbox
        self._clock = clock
        self._poll_s = poll_s
        self._counts: dict[str, int] = {}
        self._tasks = TaskSet()
        self._coalescer = Coalescer(self._look_into_inboxes, self._tasks, "poll of inboxes")
        self._stop: Callable[[], None] = lambda: None

    async def __aenter__(self) -> InboxPoller:
        self._poll()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        await self._tasks.wait()

    def _poll(self) -> None:
        if self._identities() or self._counts:
            self._coalescer.stir()
        self._stop = self._clock.after(self._poll_s, self._poll)

    async def _look_into_inboxes(self) -> None:
        identities = self._identities()
        self._counts = {identity: count for identity, count in self._counts.items() if identity in identities}
        for identity in sorted(identities):
            try:
                inbox = await self._inbox(identity)
                count = await asyncio.to_thread(inbox.pending_count)
            except StoreError as problem:
                log.debug("the inbox of %s cannot be looked into: %s", identity, problem)
                continue
            if count > self._counts.get(identity, 0):
                self._subscriptions.notify(identity)
            self._counts[identity] = count
