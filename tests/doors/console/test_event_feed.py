"""The page's events: numbered, resumed by number, and never slowed by a browser that does not read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from laneway.base.errors import UsageError
from laneway.doors.console import event_feed
from laneway.doors.console.event_feed import EventFeed
from tests.doors.console.support import (
    DEADLINE_S,
    TOKEN,
    NotesPart,
    PageWithoutSocket,
    StreamOfEvents,
    served_page,
)


async def test_events_are_numbered_and_a_lost_connection_goes_on_after_the_last_number() -> None:
    page = PageWithoutSocket()
    async with page.reading() as stream:
        assert await stream.next() == {"retry": "1000", "event": "hello", "id": "run.0", "data": "{}"}
        page.feed.publish("notes", "noted", "a")
        event = await stream.next()
        assert event == {"id": "run.1", "data": '{"part":"notes","topic":"noted","data":"a"}'}
    page.feed.publish("notes", "noted", "b")
    page.feed.publish("notes", "noted", "c")
    async with page.reading(after="run.1") as stream:
        assert [await stream.news(), await stream.news()] == ["b", "c"]
    assert not page.feed.is_watched


@pytest.mark.parametrize("after", ["other.1", "run.99", "nonsense", "run.-1", ""])
async def test_a_position_that_is_not_known_is_answered_with_a_reset(after: str) -> None:
    """Of another process, of the future, of nobody."""
    page = PageWithoutSocket()
    page.feed.publish("notes", "noted", "before")
    async with page.reading(after=after) as stream:
        reset = await stream.next()
        assert (reset["event"], reset["id"]) == ("reset", "run.1")
        page.feed.publish("notes", "noted", "after")
        assert await stream.news() == "after"


async def test_what_is_kept_is_bounded_and_who_was_away_too_long_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_feed, "MAX_KEPT_BYTES", 10_000)
    page = PageWithoutSocket()
    for number in range(1000):
        page.feed.publish("notes", "noted", f"{number:05}")
    kept, last = page.feed.events_after(page.feed.first_kept - 1, max_bytes=100_000)
    assert sum(map(len, kept)) <= 10_000
    assert last == 1000
    async with page.reading(after="run.1") as stream:
        assert (await stream.next())["event"] == "reset"
    async with page.reading(after="run.998") as stream:
        assert [await stream.news(), await stream.news()] == ["00998", "00999"]


async def test_a_hundred_stalled_readers_slow_nobody_and_cost_nothing() -> None:
    """They are told to read anew when they come back; who reads gets everything."""
    page = PageWithoutSocket()
    async with asyncio.TaskGroup() as group:
        leaving: list[asyncio.Event] = []
        stalled: list[StreamOfEvents] = []

        async def stall() -> None:
            gone = asyncio.Event()
            async with page.reading() as stream:
                await stream.next()
                stream.may_read.clear()
                leaving.append(gone)
                stalled.append(stream)
                await gone.wait()

        for _ in range(100):
            group.create_task(stall())
        async with page.reading() as reader:
            await reader.next()
            while len(stalled) < 100:
                await asyncio.sleep(0)
            big = "x" * 100_000
            for number in range(100):
                page.feed.publish("notes", "noted", f"{number} {big}")
                assert (await reader.news()).startswith(f"{number} ")
        kept, _ = page.feed.events_after(page.feed.first_kept - 1, max_bytes=10**9)
        assert sum(map(len, kept)) <= event_feed.MAX_KEPT_BYTES
        stalled[0].may_read.set()
        while (await stalled[0].next()).get("event") != "reset":
            pass
        for gone in leaving:
            gone.set()


async def test_a_part_learns_whether_anybody_looks() -> None:
    page = PageWithoutSocket()
    feed = page.feed.of("notes")
    assert not feed.is_watched
    waiting = asyncio.create_task(feed.wait_watched())
    async with page.reading() as stream:
        await stream.next()
        async with asyncio.timeout(DEADLINE_S):
            await waiting
        assert feed.is_watched
    assert not feed.is_watched


async def test_streams_end_when_the_server_closes() -> None:
    page = PageWithoutSocket()
    async with page.reading() as stream:
        await stream.next()
        page.feed.end()


async def test_the_page_is_served_on_a_socket_with_its_token_in_the_address(tmp_path: Path) -> None:
    """Behind the number sign, which browsers send to nobody. The parts run for as long as the server does."""
    notes = NotesPart(tmp_path)
    async with served_page(notes) as address, httpx2.AsyncClient(timeout=DEADLINE_S) as web:
        url = urlsplit(address)
        assert (url.hostname, url.path, url.fragment) == ("127.0.0.1", "/", f"token={TOKEN}")
        origin = f"http://{url.netloc}"
        headers = {"authorization": f"Bearer {TOKEN}", "origin": origin, "idempotency-key": "key-00000001"}
        assert (await web.get(origin)).status_code == 200
        assert (await web.get(f"{origin}/api/page")).status_code == 401
        async with web.stream("GET", f"{origin}/api/events", headers=headers) as stream:
            lines = stream.aiter_lines()
            while not (await anext(lines)).startswith("id: "):
                pass
            posted = await web.post(f"{origin}/api/notes/new", json={"text": "here"}, headers=headers)
            assert posted.json() == {"count": 1}
            while '"here"' not in (line := await anext(lines)):
                assert "noted" not in line
        assert notes.is_running
    assert not notes.is_running


async def test_an_address_that_others_can_reach_has_to_be_meant(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can be reached from other machines"):
        async with served_page(NotesPart(tmp_path), host="0.0.0.0"):
            pass


async def test_a_feed_of_another_process_has_other_numbers() -> None:
    assert EventFeed().run != EventFeed().run
