"""The outbox at work: calls are made, their ends noted, a closing waits for what is under way."""

from __future__ import annotations

import asyncio

from laneway.base.clock import LoopClock
from laneway.base.errors import StoreError
from laneway.doors.chat.outbox import (
    ChatPace,
    PostDropped,
    PostJob,
    PostOutcome,
    PostRefused,
    PostSent,
    ServiceOffline,
)
from laneway.doors.chat.outbox_runner import MessageOutbox
from laneway.testing.clock import HandClock

PACE = ChatPace(edit_s=1.0, call_s=1.0, burst=3)
DEADLINE_S = 20.0


class Service:
    """Takes calls, with outcomes as they are scripted; then accepts everything."""

    def __init__(self, *outcomes: PostOutcome) -> None:
        self.outcomes = list(outcomes)
        self.calls: list[tuple[str, str, str]] = []
        self.noted: list[tuple[str, str]] = []
        self.dropped: list[str] = []
        self.note_fails = False

    async def deliver(self, chat: str, job: PostJob) -> PostOutcome:
        self.calls.append((chat, job.post, job.ref))
        return self.outcomes.pop(0) if self.outcomes else PostSent(f"m{len(self.calls)}")

    async def on_sent(self, chat: str, job: PostJob, ref: str) -> None:
        self.noted.append((job.post, ref))
        if self.note_fails:
            raise StoreError("the disk is full")

    def on_dropped(self, dropped: PostDropped) -> None:
        self.dropped.append(f"{dropped.job.post}: {dropped.why}")

    def outbox(self, clock: HandClock | LoopClock) -> MessageOutbox:
        return MessageOutbox(clock, self.deliver, on_sent=self.on_sent, on_dropped=self.on_dropped)


async def test_what_was_sent_is_noted_and_what_failed_is_sent_again() -> None:
    service, clock = Service(ServiceOffline()), HandClock()
    async with asyncio.timeout(DEADLINE_S), service.outbox(clock) as outbox:
        outbox.put("a", PACE, "text", "hello")
        while outbox.waiting:
            await asyncio.sleep(0)
            clock.advance(0.1)
    assert service.calls == [("a", "hello", ""), ("a", "hello", "")]
    assert service.noted == [("hello", "m2")]


async def test_a_message_that_cannot_be_noted_holds_nothing_up() -> None:
    service = Service()
    service.note_fails = True
    async with asyncio.timeout(DEADLINE_S), service.outbox(LoopClock()) as outbox:
        outbox.put("a", PACE, "one", "one")
        outbox.put("a", PACE, "two", "two")
        await outbox.wait_idle()
    assert [post for post, _ in service.noted] == ["one", "two"]


async def test_what_the_service_refuses_is_told() -> None:
    service = Service(PostRefused("blocked", is_chat_gone=True))
    async with asyncio.timeout(DEADLINE_S), service.outbox(LoopClock()) as outbox:
        outbox.put("a", PACE, "one", "one")
        await outbox.wait_idle()
    assert service.dropped == ["one: blocked"]


async def test_closing_waits_for_the_call_under_way_and_starts_no_other() -> None:
    """A call that is cut off may have arrived: its message would come twice."""
    service = Service()
    async with asyncio.timeout(DEADLINE_S), service.outbox(LoopClock()) as outbox:
        outbox.put("a", PACE, "one", "one")
        outbox.put("a", PACE, "two", "two")
    assert service.noted == [("one", "m1")]
