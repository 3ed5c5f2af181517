"""Marks mail as read that Codex has recorded, and tries again where the inbox cannot be written.

Mail that could not be marked is not delivered again by this process: found unread, it is added here
again. An inbox whose name another program has registered is no longer written.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from laneway.base.errors import MemberForeign, StoreError, TeamGone
from laneway.core.ports import Clock
from laneway.mail.entries import Message
from laneway.mail.inbox import Inbox
from laneway.mail.pace import Pace
from laneway.mail.places import Places
from laneway.mail.roster import check_may_act_as

log = logging.getLogger(__name__)


class Marking:
    """The queue of messages to mark, of one session."""

    def __init__(self, places: Places, clock: Clock, look_again: Callable[[], None]) -> None:
        self._places = places
        self._clock = clock
        self._look_again = look_again
        self._pace = Pace()
        self._is_failing = False
        self._waiting: deque[tuple[Inbox, tuple[Message, ...]]] = deque()
        self._stop_alarm: Callable[[], None] = lambda: None

    def add(self, inbox: Inbox, messages: tuple[Message, ...]) -> None:
        self._waiting.append((inbox, messages))

    async def again(self, inbox: Inbox, messages: tuple[Message, ...]) -> None:
        """Mark what was found unread although it was delivered, unless marking has just failed."""
        if messages and self._clock.now() >= self._pace.not_before:
            self.add(inbox, messages)
            await self.run()

    async def run(self) -> None:
        """Mark all that waits; after a failure `look_again` is called when it is time to retry."""
        while self._waiting:
            inbox, messages = self._waiting.popleft()
            try:
                await asyncio.to_thread(self._mark, inbox, messages)
                self._is_failing = False
                self._pace.succeed()
            except TeamGone:
                pass  # its inboxes went with it
            except MemberForeign as foreign:
                log.info("Mail of %s stays unread: %s", inbox.agent, foreign)
            except StoreError as problem:
                if not self._is_failing:
                    log.warning("Mail of %s is not marked as read yet: %s", inbox.agent, problem)
                self._is_failing = True
                self._set_alarm()

    def _mark(self, inbox: Inbox, messages: tuple[Message, ...]) -> None:
        check_may_act_as(self._places, inbox.team, inbox.agent)
        inbox.mark_read(messages)

    def stop(self) -> None:
        self._stop_alarm()

    def _set_alarm(self) -> None:
        self._stop_alarm()
        now = self._clock.now()
        self._stop_alarm = self._clock.after(self._pace.fail(now) - now, self._look_again)
