"""A session's history, told page by page to a client that loads it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from laneway.base.errors import EngineLost
from laneway.codex import binary
from laneway.codex.engine import CodexEngine
from laneway.core.model import Event, Failure, Text, TurnDone, TurnStarted
from laneway.core.ports import ImagePart, Page, TextPart, TurnSpec
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.history.past_updates import CALL_BYTES
from laneway.doors.acp.history.replay import Replayed, replay
from laneway.doors.acp.ids import session_id
from tests.codex.support import play, real
from tests.doors.acp.reader import PNG, THREAD, Reader, command


class Records:
    """An engine's history in a test's hand: pages of turns, oldest first."""

    def __init__(self, *pages: list[list[Event]]) -> None:
        self.pages = pages
        self.asked: list[str | None] = []
        self.fails_at: str | None = None

    async def history(
        self, thread_id: str, older: str | None = None, limit: int = 50, *, oldest_first: bool = False
    ) -> Page:
        assert (thread_id, oldest_first) == (THREAD, True)
        self.asked.append(older)
        if older is not None and older == self.fails_at:
            raise EngineLost("exit code 1")
        at = int(older or 0)
        events = tuple(event for turn in self.pages[at] for event in turn)
        return Page(events, str(at + 1) if at + 1 < len(self.pages) else None)


def turn(name: str, *events: Event, failure: Failure | None = None) -> list[Event]:
    status: Any = "failed" if failure else "completed"
    return [TurnStarted(turn_id=name), *events, TurnDone(turn_id=name, status=status, failure=failure)]


# ── page by page ───────────────────────────────────────────────────────────


def said(text: str, turn_id: str) -> Event:
    return Text(turn_id=turn_id, item_id=f"m-{turn_id}", text=text)


async def test_pages_are_told_in_order_and_only_the_newest_turn_is_whole() -> None:
    """Even where the last page turns out to be empty."""
    long = "x" * (2 * CALL_BYTES)
    records = Records(
        [turn("a", command(long, "a"), said("A", "a"))],
        [turn("b", said("B", "b")), turn("c", command(long, "c"), said("C", "c"))],
        [],
    )
    reader = Reader()
    assert await replay(records, session_id(THREAD), THREAD, EditorClient(), reader) == Replayed(
        turns=3, updates=5
    )
    assert records.asked == [None, "1", "2"]
    assert [update["content"]["text"] for update in reader.of("agent_message_chunk")] == ["A", "B", "C"]
    assert [long in str(call["content"]) for call in reader.of("tool_call")] == [False, True]
    reader.lint.assert_clean()


async def test_a_session_without_a_past_is_told_by_nothing() -> None:
    """A thread in which nobody said anything yet."""
    reader = Reader()
    assert await replay(Records([]), session_id(THREAD), THREAD, EditorClient(), reader) == Replayed(
        turns=0, updates=0
    )
    assert reader.updates == []


async def test_a_client_that_does_not_read_is_not_buried() -> None:
    """One turn is told, one page is fetched ahead, and then it is its turn to read."""
    records = Records(*([turn(name, said(name, name))] for name in "abcdef"))
    reader = Reader()
    reader.may_read.clear()
    telling = asyncio.ensure_future(replay(records, session_id(THREAD), THREAD, EditorClient(), reader))
    async with asyncio.timeout(30):
        while not reader.waits:
            await asyncio.sleep(0)
        for _ in range(100):  # as far as it gets
            await asyncio.sleep(0)
        assert (len(reader.updates), records.asked) == (1, [None, "1", "2"])
        reader.may_read.set()
        assert (await telling).turns == 6


async def test_a_codex_that_dies_half_way_is_an_error_and_nothing_is_left_running() -> None:
    """What was told by then stays told."""
    records = Records([turn("a", said("A", "a"))], [turn("b", said("B", "b"))], [])
    records.fails_at = "2"
    reader = Reader()
    with pytest.raises(EngineLost):
        await replay(records, session_id(THREAD), THREAD, EditorClient(), reader)
    assert len(asyncio.all_tasks()) == 1


async def test_a_load_that_is_cancelled_leaves_nothing_running() -> None:
    """The page that was being fetched is given up, too."""
    reader = Reader()
    reader.may_read.clear()
    records = Records(*([turn(name, said(name, name))] for name in "abcd"))
    telling = asyncio.ensure_future(replay(records, session_id(THREAD), THREAD, EditorClient(), reader))
    async with asyncio.timeout(30):
        while not reader.waits:
            await asyncio.sleep(0)
    telling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await telling
    assert len(asyncio.all_tasks()) == 1


# ── the real Codex ─────────────────────────────────────────────────────────

BIG = "python3 -c 'print(\"0123456789\" * 2000)'"
OUTPUT = "0123456789" * 2000
"""More than the budget; Codex's own records shorten what is very long."""
FULL_RECORDS = (0, 153)
"""The version from which on Codex keeps commands and failures: seen in 0.153.4, not in 0.133.0."""


async def check_records(engine: CodexEngine) -> None:
    if (binary.parse_version((await engine.abilities()).version) or ()) < FULL_RECORDS:
        pytest.skip("this Codex keeps neither commands nor failures in its records")


async def test_a_long_session_of_the_real_codex_comes_back_in_order_within_its_budget() -> None:
    """Several hundred items in more than one page."""
    async with real() as here:
        await check_records(here.rehearsal.engine)
        session = await here.session()
        for number in range(21):
            words = [line for step in range(8) for line in (f"%think {step}?", f"%say {number}.{step}")]
            await play(session, *words)
        await play(session, f"%run {BIG}", "%patch new.txt one\\ntwo", "%say older")
        prompt = (TextPart(f"%run {BIG}\n%say newest"), ImagePart(url=f"data:image/png;base64,{PNG}"))
        await session.say(TurnSpec(parts=prompt)).result()

        reader, thread_id = Reader(), session.thread_id
        reader.loads(session_id(thread_id))
        told = await replay(
            here.rehearsal.engine,
            session_id(thread_id),
            thread_id,
            EditorClient(),
            reader,
            cwd=str(here.rehearsal.work),
        )
    reader.lint.assert_clean()
    assert (told.turns, told.updates) == (23, len(reader.updates))
    assert told.updates > 300
    texts = [update["content"]["text"] for update in reader.of("agent_message_chunk")]
    assert texts[:168] == [f"{number}.{step}" for number in range(21) for step in range(8)]
    assert texts[168:] == ["older", "newest"]
    older, edit, newest = reader.of("tool_call")
    assert OUTPUT not in str(older["content"])
    assert "characters are left out here" in str(older["content"])
    assert edit["content"][0]["newText"] == "one\ntwo\n"
    assert OUTPUT in str(newest["content"])
    assert [update["content"]["type"] for update in reader.of("user_message_chunk")][-2:] == ["text", "image"]
    assert {update["messageId"] for update in reader.of("user_message_chunk")[-2:]} == {
        reader.of("user_message_chunk")[-1]["messageId"]
    }


async def test_a_turn_that_failed_is_shown_as_failed() -> None:
    """With Codex's own words, as far as its records keep them."""
    async with real() as here:
        await check_records(here.rehearsal.engine)
        session = await here.session()
        await play(session, "%fail 400 no such luck")
        engine, thread_id = here.rehearsal.engine, session.thread_id
        reader = Reader()
        reader.loads(session_id(thread_id))
        await replay(engine, session_id(thread_id), thread_id, EditorClient(), reader)
    (told,) = reader.of("agent_message_chunk")
    assert told["content"]["text"].startswith("The turn failed: ")
    assert "no such luck" in told["content"]["text"]
