"""Pages of sessions: bounded, in order, each session once, and no cursor but our own."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import BadCursor
from laneway.core.named import listing
from laneway.core.named.listing import MAX_PAGE_BYTES, MAX_PROBLEMS, Filters
from laneway.core.named.paging import PagePosition, cursor_after, position_of
from laneway.core.named.records import Record

EVERYTHING = Filters()


def record(number: int, **fields: Any) -> Record:
    about = {
        "last_active": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
        "status": "closed",
        **fields,
    }
    return Record(agent_id=f"agent-{number}", identity="codex", team="crew", **about)


def page(
    kept: list[Record], limit: int = 20, cursor: str | None = None, **filters: Any
) -> listing.SessionPage:
    return listing.page(kept, {}, "me", Filters(**filters), limit=limit, cursor=cursor)


def walk(kept: list[Record], limit: int, **filters: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        shown = page(kept, limit, cursor, **filters)
        assert len(shown.rows) <= limit
        found += [row.agent_id for row in shown.rows]
        cursor = shown.cursor
        if cursor is None:
            return found


def test_live_sessions_come_first_then_those_that_were_active_last() -> None:
    kept = [record(number) for number in range(30)]
    kept[3] = record(3, status="active")
    shown = page(kept, limit=3)
    assert [row.agent_id for row in shown.rows] == ["agent-3", "agent-29", "agent-28"]
    assert shown.total == 30
    assert page(kept, 3, shown.cursor).rows[0].agent_id == "agent-27"


def test_without_a_limit_it_is_all() -> None:
    kept = [record(number) for number in range(150)]
    shown = listing.page(kept, {}, "me", EVERYTHING)
    assert (len(shown.rows), shown.total, shown.cursor) == (150, 150, None)


@given(
    st.lists(st.tuples(st.sampled_from(["active", "closed", "stale"]), st.sampled_from("abc")), max_size=25),
    st.integers(1, 7),
)
def test_a_walk_over_all_pages_shows_every_session_once(sessions: list[tuple[str, str]], limit: int) -> None:
    """Also those that were active in the same instant."""
    kept = [record(at, status=status, last_active=when) for at, (status, when) in enumerate(sessions)]
    found = walk(kept, limit)
    assert found == [row.agent_id for row in listing.page(kept, {}, "me", EVERYTHING).rows]
    assert sorted(found) == sorted(each.agent_id for each in kept)
    closed = [each.agent_id for each in kept if each.status == "active"]
    assert sorted(walk(kept, limit, include_closed=False)) == sorted(closed)


@given(st.data())
def test_what_stays_as_it_is_is_shown_once_whatever_comes_and_goes(data: st.DataObject) -> None:
    kept = {number: record(number) for number in range(0, 40, 2)}
    steady = set(kept) - set(data.draw(st.lists(st.sampled_from(sorted(kept)), max_size=10)))
    found: list[str] = []
    cursor = None
    while True:
        shown = page(list(kept.values()), 3, cursor)
        found += [row.agent_id for row in shown.rows]
        cursor = shown.cursor
        if cursor is None:
            break
        for number in data.draw(st.lists(st.integers(0, 40), max_size=3)):
            if number in steady:
                continue
            if number in kept:
                del kept[number]
            else:
                kept[number] = record(number)
    assert all(found.count(f"agent-{number}") == 1 for number in steady)


def test_a_page_is_bounded_in_bytes_and_shows_one_row_at_least() -> None:
    """Fields that callers and other programs fill may hold anything."""
    kept = [record(number, tag="x" * (MAX_PAGE_BYTES // 3)) for number in range(10)]
    assert len(page(kept, limit=10).rows) == 2
    huge = [record(number, tag="x" * 2 * MAX_PAGE_BYTES) for number in range(3)]
    assert len(page(huge, limit=10).rows) == 1
    assert walk(huge, 10) == ["agent-2", "agent-1", "agent-0"]


def test_problems_are_named_to_a_bound() -> None:
    problems = tuple(f"File {number} is damaged." for number in range(500))
    shown = listing.page([], {}, "me", EVERYTHING, limit=20, problems=problems)
    assert shown.problems[:-1] == problems[:MAX_PROBLEMS]
    assert shown.problems[-1].startswith("480 more files could not be read")


# ── cursors ────────────────────────────────────────────────────────────────


@given(st.booleans(), st.text(), st.text())
def test_a_cursor_leads_back_to_its_place(is_live: bool, when: str, agent_id: str) -> None:
    place = PagePosition(is_live, when, agent_id)
    cursor = cursor_after(place, EVERYTHING)
    assert position_of(cursor, EVERYTHING) == place
    assert cursor.isascii()


def forged(*parts: Any) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(parts)).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "é",
        "AAAA",
        "!!!!",
        "[" * 100_000,
        forged(1),
        forged(1, 2, [True, "", ""], 4),
        forged(1, 0, [True, "", ""]),
        forged(2, 0, [True, "", ""]),
        forged(1, 0, ["true", "", ""]),
        forged(*[[]] * 3),
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        base64.urlsafe_b64encode(b"[" * 5000).decode(),
    ],
)
def test_what_is_no_cursor_of_ours_is_refused_in_one_sentence(cursor: str) -> None:
    with pytest.raises(BadCursor, match=r"^This cursor is not valid for this list"):
        page([record(1)], cursor=cursor)


def test_a_cursor_belongs_to_its_filters() -> None:
    kept = [record(number) for number in range(5)]
    cursor = page(kept, 2).cursor
    assert cursor is not None
    assert len(page(kept, 2, cursor).rows) == 2
    with pytest.raises(BadCursor):
        page(kept, 2, cursor, identity="codex")


@given(st.text(max_size=40))
def test_no_text_makes_a_cursor_do_anything_but_be_refused(cursor: str) -> None:
    with pytest.raises(BadCursor):
        page([record(1)], cursor=cursor)
