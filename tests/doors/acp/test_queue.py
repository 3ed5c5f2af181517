"""Ruling 20: prompts wait in order; cancel cancels what waits."""

from __future__ import annotations

import asyncio

import pytest

from laneway.base.errors import LimitReached
from laneway.doors.acp.sessions.queue import MAX_WAITING, Queue


async def test_prompts_are_served_one_at_a_time_in_the_order_in_which_they_came() -> None:
    """The second is called when the first has left, the third after the second."""
    queue, order = Queue(), list[int]()

    async def prompt(number: int) -> None:
        place = queue.join()
        try:
            assert await place.reached()
            order.append(number)
            await asyncio.sleep(0)
            assert queue.current is place
        finally:
            queue.leave(place)

    await asyncio.gather(*(prompt(number) for number in range(5)))
    assert order == [0, 1, 2, 3, 4]
    assert queue.current is None


async def test_a_cancel_reaches_the_running_prompt_and_all_that_wait_but_none_that_comes_later() -> None:
    """Those who wait are called at once and told; a later one is served."""
    queue = Queue()
    running, waiting = queue.join(), queue.join()
    queue.cancel()
    assert running.is_cancelled
    assert not await waiting.reached()
    later = queue.join()
    queue.leave(waiting)
    queue.leave(running)
    assert await later.reached()


async def test_a_prompt_that_gives_up_its_place_lets_the_others_move_on() -> None:
    """A request that was cancelled while it waited must not block those behind it."""
    queue = Queue()
    first, second, third = queue.join(), queue.join(), queue.join()
    queue.leave(second)
    queue.leave(first)
    assert await third.reached()


async def test_the_queue_is_bounded() -> None:
    """A client that never waits for an answer is told so."""
    queue = Queue()
    for _ in range(MAX_WAITING + 1):
        queue.join()
    with pytest.raises(LimitReached, match="waiting prompts"):
        queue.join()


async def test_a_cancel_is_not_for_what_is_no_prompt() -> None:
    """A history that is to be told waits for its turn, and is told."""
    queue = Queue()
    running, loading = queue.join(), queue.join(is_prompt=False)
    queue.cancel()
    assert running.is_cancelled
    queue.leave(running)
    assert await loading.reached()
