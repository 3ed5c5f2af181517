"""What leaves together: one write per iteration of the loop, with what was gathered until then."""

from __future__ import annotations

import asyncio

import pytest

from laneway.wire.outbox import Outbox


async def iteration() -> None:
    """Everything that was scheduled so far runs."""
    await asyncio.sleep(0)


async def test_what_was_gathered_leaves_with_the_next_write_and_behind_what_was_posted() -> None:
    """Whether anything else was posted or not; each gatherer is called once."""
    writes: list[bytes] = []
    outbox = Outbox(writes.append)
    pieces = [b"a", b"b"]

    def gather() -> None:
        outbox.post(b"".join(pieces))
        pieces.clear()

    outbox.before_write(gather)
    pieces.append(b"c")
    outbox.post(b"first,")
    assert writes == []
    await iteration()
    assert writes == [b"first,abc"]
    await iteration()
    assert writes == [b"first,abc"]
    pieces.append(b"d")
    outbox.before_write(gather)
    await iteration()
    assert writes == [b"first,abc", b"d"]


async def test_a_flush_at_the_end_takes_along_what_was_gathered() -> None:
    writes: list[bytes] = []
    outbox = Outbox(writes.append)
    outbox.before_write(lambda: outbox.post(b"gathered"))
    outbox.flush()
    assert writes == [b"gathered"]
    await iteration()
    assert writes == [b"gathered"]


async def test_a_gatherer_that_gathers_again_is_called_in_time() -> None:
    """By another one, too: nobody is forgotten, and nothing is written twice."""
    writes: list[bytes] = []
    outbox = Outbox(writes.append)
    outbox.before_write(lambda: outbox.before_write(lambda: outbox.post(b"late")))
    outbox.before_write(lambda: outbox.post(b"early,"))
    await iteration()
    assert writes == [b"early,late"]


async def test_a_gatherer_that_fails_keeps_no_message_from_leaving() -> None:
    """Neither those before it nor those after it, now or later; the loop is told."""
    writes: list[bytes] = []
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["exception"]))
    outbox = Outbox(writes.append)
    problem = ValueError()

    def fail() -> None:
        raise problem

    outbox.post(b"one,")
    outbox.before_write(fail)
    outbox.before_write(lambda: outbox.post(b"two,"))
    await iteration()
    assert writes == [b"one,two,"]
    outbox.post(b"three")
    await iteration()
    assert writes == [b"one,two,", b"three"]
    assert problems == [problem]


async def test_a_flush_says_that_a_gatherer_failed_and_sends_what_there_is() -> None:
    writes: list[bytes] = []
    outbox = Outbox(writes.append)
    outbox.post(b"one")
    outbox.before_write(lambda: [].pop())
    with pytest.raises(IndexError):
        outbox.flush()
    assert writes == [b"one"]
