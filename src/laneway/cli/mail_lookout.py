"""Looks into inboxes that a client subscribed to and that no session of ours has.

Mail for a session is heard of by its postman. Somebody who waits for mail before there is a session
is told, too, within a few seconds. While nobody waits, nothing is looked at.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING

from laneway.base.errors import StoreError
from laneway.core.background import Chores, Drain
from laneway.core.ports import Clock
from laneway.doors.mcp.subscriptions import Subscriptions

if TYPE_CHECKING:
    from laneway.mail.inbox import Inbox

log = logging.getLogger(__name__)


class Lookout:
    """`async with Lookout(…):`. What is unread at the first look is news: better twice than never."""

    def __init__(
        self,
        news: Subscriptions,
        wanted: Callable[[], frozenset[str]],
        inbox: Callable[[str], Awaitable[Inbox]],
        clock: Clock,
        poll_s: float,
    ) -> None:
        self._news = news
        self._wanted = wanted
        self._inbox = inbox
        self._clock = clock
        self._poll_s = poll_s
        self._counts: dict[str, int] = {}
        self._chores = Chores()
        self._round = Drain(self._look, self._chores, "mail lookout")
        self._stop: Callable[[], None] = lambda: None

    async def __aenter__(self) -> Lookout:
        self._poll()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        await self._chores.wait()

    def _poll(self) -> None:
        if self._wanted() or self._counts:
            self._round.stir()
        self._stop = self._clock.after(self._poll_s, self._poll)

    async def _look(self) -> None:
        wanted = self._wanted()
        self._counts = {identity: count for identity, count in self._counts.items() if identity in wanted}
        for identity in sorted(wanted):
            try:
                inbox = await self._inbox(identity)
                count = await asyncio.to_thread(inbox.pending_count)
            except StoreError as problem:
                log.debug("the inbox of %s cannot be looked into: %s", identity, problem)
                continue
            if count > self._counts.get(identity, 0):
                self._news.notify(identity)
            self._counts[identity] = count
