"""Prompts wait in order; cancel cancels what waits."""

from __future__ import annotations

import asyncio

import pytest

from laneway.base.errors import LimitReached
from laneway.core.prompt_queue import MAX_WAITING
from laneway.core.prompt_queue import PromptQueue as Queue


async def test_prompts_are_served_one_at_a_time_in_the_order_in_which_they_came() -> None:
    """The second is called when the first has left, the third after the second."""
    queue, order = Queue(), list[int]()

    async def prompt(number: int) -> None:
        place = queue.join()
        try:
            assert await place.wait_served()
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
    assert not await waiting.wait_served()
    later = queue.join()
    queue.leave(waiting)
    queue.leave(running)
    assert await later.wait_served()


async def test_a_prompt_that_gives_up_its_place_lets_the_others_move_on() -> None:
    """A request that was cancelled while it waited must not block those behind it."""
    queue = Queue()
    first, second, third = queue.join(), queue.join(), queue.join()
    queue.leave(second)
    queue.leave(first)
    assert await third.wait_served()


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
    assert await loading.wait_served()


async def test_who_came_before_a_question_waits_until_it_is_settled_and_who_came_after_goes_ahead() -> None:
    """Words that were said before it are no answer to it."""
    queue = Queue()
    asking, before = queue.join(), queue.join()
    queue.hold()
    queue.leave(asking)
    assert queue.current is None
    loading, after = queue.join(is_prompt=False), queue.join()
    assert queue.current is loading, "which is no prompt, and no answer"
    queue.leave(loading)
    assert await after.wait_served()
    queue.hold()  # the answer was none, and the question is said again
    later = queue.join()
    queue.leave(after)
    assert queue.current is later
    queue.release()
    queue.leave(later)
    assert await before.wait_served()


async def test_one_that_was_called_too_early_steps_back_for_those_who_may_go() -> None:
    """A question came while it waited for something else."""
    queue = Queue()
    early = queue.join()
    queue.hold()
    answer = queue.join()
    assert not queue.may_serve(early)
    queue.requeue(early)
    assert queue.current is answer
    queue.release()
    queue.leave(answer)
    assert await early.wait_served()


async def test_a_cancel_calls_those_whom_a_question_holds() -> None:
    """They leave, and whoever comes next finds nobody in front."""
    queue = Queue()
    first, held = queue.join(), queue.join()
    queue.hold()
    queue.leave(first)
    queue.cancel()
    assert not await held.wait_served()
    queue.requeue(held)
    assert not await held.wait_served(), "a cancel is not forgotten"
    queue.leave(held)
    queue.release()
    assert await queue.join().wait_served()
