"""A reader's buffer: merged while it waits, bounded, and never without the end."""

from __future__ import annotations

import asyncio

import pytest

from laneway.core import subscription as module
from laneway.core.model import Event, Notice, Output, Text, Thought, TurnDone, TurnStarted
from laneway.core.subscription import MAX_EVENTS, Subscription


def text(words: str, item: str = "i", frame: bytes = b"") -> Text:
    return Text(turn_id="t", item_id=item, text=words, frame=frame)


async def test_text_of_one_item_that_waits_together_arrives_as_one() -> None:
    """And text of another item, or of another kind, stays apart."""
    subscription = Subscription()
    thought = Thought(turn_id="t", item_id="i", text="hm")
    for event in (text("a"), text("b"), thought, text("c"), text("d", "j"), text("e", "j")):
        subscription.push(event)
    assert subscription.take() == [text("ab"), thought, text("c"), text("de", "j")]


async def test_text_that_is_taken_at_once_is_never_held_back() -> None:
    """Nothing is delayed in order to be merged; a lone delta keeps its frame."""
    subscription = Subscription()
    for word in "abc":
        subscription.push(text(word, frame=b"frame"))
        assert subscription.take() == [text(word, frame=b"frame")]


async def test_a_reader_that_forwards_frames_gets_every_single_one() -> None:
    """Merging can be switched off."""
    subscription = Subscription(merge=False)
    events: list[Event] = [text(word, frame=word.encode()) for word in "abc"]
    for event in events:
        subscription.push(event)
    assert subscription.take() == events


async def test_a_reader_that_stops_reading_loses_details_counted_but_not_the_end() -> None:
    """The events that it must act upon always arrive."""
    subscription = Subscription()
    subscription.push(TurnStarted(turn_id="t"))
    for _ in range(MAX_EVENTS + 10):
        subscription.push(Notice(level="info", message="x"))
    done = TurnDone(turn_id="t", status="completed")
    subscription.push(done)
    events = subscription.take()
    assert (len(events), subscription.lost) == (MAX_EVENTS + 1, 11)
    assert events[-1] == done


async def test_waiting_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Merged deltas cannot eat the memory."""
    monkeypatch.setattr(module, "MAX_TEXT_CHARS", 10)
    subscription = Subscription()
    for _ in range(4):
        subscription.push(Output(turn_id="t", item_id="i", text="xxxx"))
    assert subscription.take() == [Output(turn_id="t", item_id="i", text="xxxxxxxx")]
    assert subscription.lost == 2
    subscription.push(Output(turn_id="t", item_id="i", text="xxxx"))
    assert len(subscription.take()) == 1, "who reads again loses nothing more"


async def test_a_closed_subscription_gives_what_waits_and_then_ends() -> None:
    """Nothing that came before the close is lost."""
    subscription = Subscription()
    subscription.push(text("a"))
    subscription.close()
    subscription.push(text("b"))
    assert [event async for event in subscription] == [text("a")]


async def test_a_reader_that_waits_is_woken_and_a_second_one_is_refused() -> None:
    """One reader per subscription: two would take each other's events."""
    subscription = Subscription()
    reading = asyncio.ensure_future(anext(subscription))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="one reader"):
        await anext(subscription)
    subscription.push(text("a"))
    subscription.push(text("b"))
    async with asyncio.timeout(10):
        assert await reading == text("ab")
    reading = asyncio.ensure_future(anext(subscription))
    await asyncio.sleep(0)
    subscription.close()
    with pytest.raises(StopAsyncIteration):
        await reading
