"""Runs one outbox (`outbox.step`): makes its calls, keeps its timer, notes in the store what was sent.

A platform hands in `deliver`, which makes one call and returns its outcome; it raises nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from laneway.base.errors import StoreError
from laneway.core.ports import Clock
from laneway.doors.chat.outbox import (
    ChatPace,
    OutboxEffect,
    OutboxLetter,
    OutboxState,
    OutboxTick,
    OutboxWake,
    PostCall,
    PostCallDone,
    PostDropped,
    PostJob,
    PostOutcome,
    PostSent,
    PutPost,
    ServiceOffline,
    has_room,
    step,
)

log = logging.getLogger(__name__)

LAST_CALLS_S = 5.0
"""For calls that are under way when the outbox is closed: cut off, they might be sent twice."""

Deliver = Callable[[str, PostJob], Awaitable[PostOutcome]]
"""Makes the call for a chat and a job; `PostJob.ref` is the id of the message to edit, if it is an edit."""


class MessageOutbox:
    """`async with MessageOutbox(…) as outbox: outbox.put(…)`."""

    def __init__(
        self,
        clock: Clock,
        deliver: Deliver,
        *,
        on_sent: Callable[[str, PostJob, str], Awaitable[None]],
        on_dropped: Callable[[PostDropped], None],
        any_call_s: float = 0.0,
    ) -> None:
        """`on_sent` notes the chat, the job and its new id, before anything else is sent there."""
        self._clock = clock
        self._deliver = deliver
        self._on_sent = on_sent
        self._on_dropped = on_dropped
        self._state = OutboxState(any_call_s=any_call_s)
        self._calls: set[asyncio.Task[None]] = set()
        self._cancel_timer: Callable[[], None] | None = None
        self._is_closing = False
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing = True
        if self._cancel_timer is not None:
            self._cancel_timer()
        calls = set(self._calls)
        if calls:
            _, late = await asyncio.wait(calls, timeout=LAST_CALLS_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def put(
        self,
        chat: str,
        pace: ChatPace,
        key: str,
        post: Any,
        *,
        is_question: bool = False,
        delivery_id: int = 0,
        ref: str = "",
        is_partial: bool = False,
    ) -> None:
        """Show a message with this content, from now on."""
        self._handle(
            PutPost(
                now=self._clock.now(),
                chat=chat,
                pace=pace,
                key=key,
                post=post,
                is_question=is_question,
                delivery_id=delivery_id,
                ref=ref,
                is_partial=is_partial,
            )
        )

    @property
    def held_s(self) -> float:
        """Seconds for which nothing at all is sent."""
        return max(0.0, self._state.all_held_until - self._clock.now())

    @property
    def waiting(self) -> int:
        return sum(len(queue.waiting) + (queue.in_flight is not None) for queue in self._state.chats.values())

    async def wait_room(self, chat: str) -> None:
        """Wait until not too much is waiting in that chat."""
        while not has_room(self._state, chat):
            await self._wait_change()

    async def wait_idle(self) -> None:
        """Wait until nothing waits and no call is under way."""
        while self.waiting:
            await self._wait_change()

    async def _wait_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _handle(self, letter: OutboxLetter) -> None:
        if self._is_closing and not isinstance(letter, PostCallDone):
            return
        self._state, effects = step(self._state, letter)
        for effect in effects:
            self._act(effect)
        self._changed.set()

    def _act(self, effect: OutboxEffect) -> None:
        match effect:
            case PostCall(chat=chat, job=job):
                if self._is_closing:
                    return
                task = asyncio.create_task(self._run(chat, job))
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)
            case OutboxWake(at):
                if self._cancel_timer is not None:
                    self._cancel_timer()
                delay_s = max(0.0, at - self._clock.now())
                self._cancel_timer = self._clock.after(delay_s, self._tick)
            case PostDropped():
                self._on_dropped(effect)

    def _tick(self) -> None:
        self._cancel_timer = None
        self._handle(OutboxTick(now=self._clock.now()))

    async def _run(self, chat: str, job: PostJob) -> None:
        outcome: PostOutcome = ServiceOffline()
        try:
            outcome = await self._deliver(chat, job)
            if isinstance(outcome, PostSent):
                await self._on_sent(chat, job, outcome.ref)
        except StoreError as problem:
            # Sent, but not noted: after a restart it may come twice, which is better than never.
            log.warning("a sent message could not be noted: %s", problem)
        finally:
            self._handle(PostCallDone(now=self._clock.now(), chat=chat, outcome=outcome))
