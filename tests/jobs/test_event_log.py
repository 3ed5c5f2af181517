"""The file of a job's events: what was written is read once, in order, from any cursor."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import BadCursor, StoreError
from laneway.jobs.event_log import (
    MAX_CONTENT_BYTES,
    READ_BYTES,
    TAIL_BYTES,
    EventWriter,
    last_event,
    read,
)

JOB = "job-0000000000000000"


def written(path: Path, *events: tuple[str, Any]) -> Path:
    with EventWriter(path) as writer:
        for kind, content in events:
            writer.append(kind, content)
    return path


def contents(events: tuple[dict[str, Any], ...]) -> list[Any]:
    return [event["content"] for event in events]


def test_events_are_read_in_order_and_from_where_the_last_page_ended(tmp_path: Path) -> None:
    """Each has a type, a content and a time; nothing is read twice."""
    path = written(tmp_path / "e", ("progress", "one"), ("message", "two"))
    first = read(path, JOB)
    assert contents(first.events) == ["one", "two"]
    assert set(first.events[0]) == {"type", "content", "timestamp"}
    assert (first.is_at_end, first.has_final) == (True, False)
    written(path, ("message", "three"), ("final", {"status": "succeeded"}))
    second = read(path, JOB, first.next_cursor)
    assert contents(second.events) == ["three", {"status": "succeeded"}]
    assert second.has_final
    assert read(path, JOB, second.next_cursor) == read(path, JOB, second.next_cursor)
    assert read(path, JOB, second.next_cursor).events == ()
    assert read(path, JOB, second.next_cursor).has_final


def test_nothing_follows_final_and_there_is_one_of_it(tmp_path: Path) -> None:
    path = written(tmp_path / "e", ("final", 1), ("message", "late"), ("final", 2))
    written(path, ("final", 3))
    assert contents(read(path, JOB).events) == [1]


def test_a_record_that_was_left_half_written_is_cut_off_by_the_next_writer(tmp_path: Path) -> None:
    """No reader has seen it, and the next record is whole."""
    path = written(tmp_path / "e", ("message", "one"))
    with path.open("ab") as file:
        file.write(b'{"type":"message","content":"ha')
    assert contents(read(path, JOB).events) == ["one"]
    cursor = read(path, JOB).next_cursor
    written(path, ("final", "end"))
    assert contents(read(path, JOB, cursor).events) == ["end"]
    last = last_event(path)
    assert last is not None
    assert last.content == "end"


def test_a_page_is_bounded_and_the_rest_comes_with_the_next_one(tmp_path: Path) -> None:
    """`done` cannot be said while something is left."""
    path = written(
        tmp_path / "e", *(("message", f"{n:04}" + "x" * 500) for n in range(300)), ("final", "end")
    )
    pages, cursor = [], None
    while True:
        page = read(path, JOB, cursor)
        assert len(json.dumps(page.events)) < 70_000
        pages.append(page)
        cursor = page.next_cursor
        if page.has_final:
            break
        assert not page.is_at_end
    everything = [content for page in pages for content in contents(page.events)]
    assert [content[:4] for content in everything] == [f"{n:04}" for n in range(300)] + ["end"]
    assert len(pages) > 2


def test_a_large_content_is_cut_and_its_size_is_told(tmp_path: Path) -> None:
    """All of it on request, also if that is more than one answer takes."""
    output = "ä" * 100_000
    path = written(tmp_path / "e", ("tool_result", {"exitCode": 0, "output": output}))
    (event,) = read(path, JOB).events
    assert event["content"]["exitCode"] == 0
    assert 0 < len(event["content"]["output"].encode()) <= MAX_CONTENT_BYTES
    assert event["contentBytes"] > 200_000
    (whole,) = read(path, JOB, is_full=True).events
    assert whole["content"]["output"] == output
    assert "contentBytes" not in whole


def test_only_the_asked_types_are_shown_and_the_cursor_passes_the_others(tmp_path: Path) -> None:
    path = written(tmp_path / "e", ("progress", 1), ("message", 2), ("progress", 3), ("final", 4))
    page = read(path, JOB, kinds=("message",))
    assert contents(page.events) == [2]
    assert page.has_final
    assert read(path, JOB, page.next_cursor).events == ()


@pytest.mark.parametrize("cursor", ["", "x", "§", "e30", "A" * 5000])
def test_a_broken_cursor_is_refused(tmp_path: Path, cursor: str) -> None:
    path = written(tmp_path / "e", ("message", 1))
    with pytest.raises(BadCursor):
        read(path, JOB, cursor)


def test_a_cursor_of_another_job_another_file_or_the_middle_of_a_record_is_refused(tmp_path: Path) -> None:
    """An offset is used only where a record begins."""
    path = written(tmp_path / "e", ("message", "one"), ("message", "two"))
    cursor = read(path, JOB, max_events=1).next_cursor
    with pytest.raises(BadCursor):
        read(path, "job-1111111111111111", cursor)
    other = written(tmp_path / "f", ("message", "one"), ("message", "two"))
    with pytest.raises(BadCursor):
        read(other, JOB, cursor)
    os.truncate(path, path.stat().st_size - 3)
    assert contents(read(path, JOB, cursor).events) == []
    data = path.read_bytes()
    path.write_bytes(data[:30] + b"x" + data[30:])
    with pytest.raises(BadCursor):
        read(path, JOB, cursor)


def test_a_job_that_has_not_begun_has_no_events_and_a_cursor_to_begin_with(tmp_path: Path) -> None:
    page = read(tmp_path / "e", JOB)
    assert (page.events, page.is_at_end, page.has_final) == ((), True, False)
    written(tmp_path / "e", ("message", 1))
    assert contents(read(tmp_path / "e", JOB, page.next_cursor).events) == [1]


def test_a_pipe_in_the_place_of_the_file_is_an_error_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "e")
    with pytest.raises(StoreError):
        read(tmp_path / "e", JOB)


@given(st.lists(st.text(max_size=300), max_size=30), st.integers(1, 7))
def test_every_event_is_read_exactly_once_whatever_the_pages(texts: list[str], size: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder, "e"), *(("message", text) for text in texts), ("final", None))
        got: list[Any] = []
        cursor = None
        while True:
            page = read(path, JOB, cursor, max_events=size, max_bytes=500)
            got += contents(page.events)
            cursor = page.next_cursor
            if page.has_final:
                break
        assert got == [*texts, None]


@pytest.mark.parametrize("around", [TAIL_BYTES, 2 * TAIL_BYTES, READ_BYTES, 2 * READ_BYTES, 5 * READ_BYTES])
def test_records_of_any_size_are_read_whole_from_both_ends(tmp_path: Path, around: int) -> None:
    """A file is read in pieces; where a record ends has nothing to do with where a piece does."""
    overhead = len(json.dumps({"type": "message", "content": "", "timestamp": "2026-11-17T00:00:00.000Z"}))
    texts = ["x" * (around - overhead + number) for number in range(-3, 4)]
    path = tmp_path / "e"
    for text in texts:
        written(path, ("message", text))
        last = last_event(path)
        assert last is not None
        assert last.content == text
    written(path, ("final", None))
    got: list[Any] = []
    cursor = None
    while not (page := read(path, JOB, cursor, is_full=True, max_bytes=3 * around)).has_final:
        got += contents(page.events)
        cursor = page.next_cursor
    assert [*got, *contents(page.events)] == [*texts, None]
    assert read(path, JOB, page.next_cursor).has_final
