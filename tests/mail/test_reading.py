"""Reading mail by the tool: what is returned, in which order, what is marked, and what is left (FR-4.3)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.mail.entries import Mail, Message, read
from laneway.mail.reading import MAX_TEXT_CHARS, MailQuery, page, shortened
from laneway.mail.tools import THREAD
from tests.mail.tools_support import TEAM, MailUser, TeamFiles, entry


@pytest.fixture
def team_files(tmp_path: Path) -> TeamFiles:
    team_files = TeamFiles(tmp_path)
    team_files.create_team(TEAM, "team-lead", "ann", "bob")
    return team_files


@pytest.mark.covers("FR-4.3")
async def test_reading_returns_what_is_unread_under_both_names_and_marks_it(team_files: TeamFiles) -> None:
    """Then it is gone from the unread and still there for `all`."""
    team_files.drop("ann", entry("bob", "one", summary="s"), entry("bob", "old", read=True))
    user = MailUser(team_files)
    result = await user.call("ann", "atm_read")
    rows = json.loads(result.text)
    assert [(row["from"], row["message"], row["text"], row["summary"]) for row in rows] == [
        ("bob", "one", "one", "s")
    ]
    assert rows[0]["timestamp"] == "2026-11-16T05:00:00.000Z"
    assert rows[0]["message_id"] == team_files.entries("ann")[0]["msg_id"]
    assert await user.texts("ann") == []
    assert await user.texts("ann", all=True) == ["one", "old"]
    assert [line["outcome"] for line in user.noted] == ["1 read, 0 left", "0 read, 0 left", "2 read, 0 left"]


@pytest.mark.covers("FR-4.3")
async def test_only_what_was_returned_is_marked(team_files: TeamFiles) -> None:
    """Limited by number and by sender; what is left is counted, never left out in silence."""
    team_files.drop(
        "ann", entry("bob", "one"), entry("zoe", "two"), entry("bob", "three"), entry("bob", "four")
    )
    user = MailUser(team_files)
    result = await user.call("ann", "atm_read", limit=1, **{"from": "bob"})
    assert result.data is not None
    assert ([row["text"] for row in result.data["messages"]], result.data["remaining"]) == (["one"], 2)
    assert result.notes == ("2 more are unread: read again to get the next ones.",)
    assert [found["text"] for found in team_files.entries("ann") if found["read"]] == ["one"]
    assert await user.texts("ann", mark_read=False) == ["two", "three", "four"]
    assert await user.texts("ann") == ["two", "three", "four"]


@pytest.mark.covers("FR-4.3")
async def test_messages_without_an_id_are_returned_and_marked_like_any_other(team_files: TeamFiles) -> None:
    """Nobody is obliged to give one; two that say the same at different times are two."""
    first, second = (entry("bob", "same", f"2026-11-16T05:00:0{n}.000Z", msg_id=None) for n in (1, 2))
    team_files.drop("ann", first, second)
    user = MailUser(team_files)
    data = await user.good("ann", "atm_read", limit=1)
    assert data["messages"][0]["message_id"] == ""
    assert [found["read"] for found in team_files.entries("ann")] == [True, False]
    await user.good("ann", "atm_read")
    assert [found["read"] for found in team_files.entries("ann")] == [True, True]


@pytest.mark.covers("FR-4.3")
@pytest.mark.parametrize(
    "since", ["2026-11-16T05:00:01Z", "2026-11-16T05:00:01.000+00:00", "2026-11-16T07:00:01+02:00"]
)
async def test_since_compares_moments_and_not_their_spelling(team_files: TeamFiles, since: str) -> None:
    """Strictly later, whatever the offsets; a message whose time cannot be read is not hidden."""
    team_files.drop(
        "ann",
        entry("bob", "before", "2026-11-16T05:00:00.999Z"),
        entry("bob", "at", "2026-11-16T05:00:01Z"),
        entry("bob", "after", "2026-11-16T04:00:01.001-01:00"),
        entry("bob", "whenever", "yesterday"),
    )
    assert await MailUser(team_files).texts("ann", since=since, mark_read=False) == ["after", "whenever"]


async def test_a_time_that_is_none_is_refused(team_files: TeamFiles) -> None:
    """With an example of one."""
    assert "such as 2026-01-31T12:00:00Z" in await MailUser(team_files).refused(
        "ann", "atm_read", since="yesterday"
    )


@pytest.mark.covers("FR-4.3")
async def test_a_long_message_is_cut_in_sight_and_whole_by_its_id(team_files: TeamFiles) -> None:
    """Also after it was read, in pieces if its reader is shown little, and by any of its ids."""
    text = "".join(chr(0x4E00 + number % 5000) for number in range(20_000))
    long = entry("bob", text, metadata={"atm": {"messageId": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}})
    team_files.drop("ann", long, entry("bob", text, msg_id=None))
    user = MailUser(team_files)
    (cut,) = (await user.good("ann", "atm_read", limit=1))["messages"]
    assert cut["text"].startswith(text[:MAX_TEXT_CHARS])
    assert cut["text"].endswith(f"atm_read with message_id {long['msg_id']} gives all.]")
    assert cut["length"] == 20_000
    for message_id in (long["msg_id"], "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        assert await user.texts("ann", message_id=message_id) == [text]
    pieces = [
        (await user.texts("ann", message_id=long["msg_id"], offset=at))[0] for at in range(0, 20_000, 8000)
    ]
    assert "".join(pieces) == text
    assert await user.texts("ann") == [text]  # it has no id: nobody could ask for the rest


async def test_an_id_that_is_not_there_is_an_error(team_files: TeamFiles) -> None:
    """Also one of somebody else's inbox."""
    team_files.drop("bob", entry("ann", "secret", msg_id="the-id"))
    assert "no message the-id in the inbox of ann" in await MailUser(team_files).refused(
        "ann", "atm_read", message_id="the-id"
    )


async def test_a_thread_gets_no_more_than_it_is_shown_and_every_text_once(team_files: TeamFiles) -> None:
    """Codex cuts long results; what would be cut stays unread and comes next time."""
    team_files.drop("ann", *(entry("bob", f"{number} " + "x" * 3000) for number in range(5)))
    user = MailUser(team_files, mail_format=THREAD)
    first = await user.call("ann", "atm_read")
    assert [row["message"][0] for row in json.loads(first.text)] == ["0", "1"]
    assert all("text" not in row for row in json.loads(first.text))
    assert first.notes == ("3 more are unread: read again to get the next ones.",)
    rest = [json.loads((await user.call("ann", "atm_read")).text) for _ in range(2)]
    assert [[row["message"][0] for row in rows] for rows in rest] == [["2", "3"], ["4"]]


async def test_urgent_mail_comes_first_and_says_so(team_files: TeamFiles) -> None:
    """Then by age, not by place."""
    team_files.drop(
        "ann",
        entry("bob", "low", metadata={"laneway": {"priority": "low"}}),
        entry("bob", "second", "2026-11-16T05:00:02Z"),
        entry("bob", "first", "2026-11-16T05:00:01Z"),
        entry("bob", "urgent", "2026-11-16T06:00:00Z", priority="high"),
    )
    data = await MailUser(team_files).good("ann", "atm_read", mark_read=False)
    assert [row["text"] for row in data["messages"]] == ["urgent", "first", "second", "low"]
    assert [row.get("priority") for row in data["messages"]] == ["urgent", None, None, "low"]


async def test_what_cannot_be_marked_is_returned_all_the_same_and_said(team_files: TeamFiles) -> None:
    """Somebody holds the lock, or the folder is read-only: it comes again, and is not lost."""
    team_files.drop("ann", entry("bob", "one"))
    lock = team_files.places.inboxes(TEAM) / "ann.json.lock"
    lock.mkdir()
    user = MailUser(team_files, budget_s=0.05)
    data = await user.good("ann", "atm_read")
    assert [row["text"] for row in data["messages"]] == ["one"]
    assert "could not be marked as read and will come again" in data["notes"][0]
    lock.rmdir()
    assert await user.texts("ann") == ["one"]


async def test_a_damaged_inbox_is_told_and_what_is_no_message_stays(team_files: TeamFiles) -> None:
    """Mail goes on."""
    team_files.places.inbox(TEAM, "ann").write_text("{nonsense")
    user = MailUser(team_files)
    data = await user.good("ann", "atm_read")
    assert data["messages"] == []
    assert "cannot be read" in data["notes"][0]
    await user.good("bob", "atm_send", to="ann", message="still here")
    assert await user.texts("ann") == ["still here"]


async def test_in_a_team_that_is_not_there_nothing_is_unread_and_that_is_said(tmp_path: Path) -> None:
    """Whoever only looks makes no team."""
    team_files = TeamFiles(tmp_path)
    user = MailUser(team_files)
    for tool in ("atm_read", "atm_pending_count"):
        result = await user.call("ann", tool)
        assert not result.is_error
        assert "no team crew" in result.notes[0]
    assert not team_files.places.teams_root.exists()


# ── the choice of messages, as a rule ──────────────────────────────────────

_moments = st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 2)).map(lambda when: when.replace(tzinfo=UTC))
_entries = st.builds(
    lambda number, sender, when, is_read, urgency, length: entry(
        sender, f"{number} " + "x" * length, when.isoformat(), read=is_read, priority=urgency
    ),
    st.integers(0, 10**9),
    st.sampled_from(["ann", "bob"]),
    _moments,
    st.booleans(),
    st.sampled_from(["high", "normal", "low"]),
    st.integers(0, 6000),
)


@given(st.lists(_entries, max_size=12), st.booleans(), st.integers(1, 5), st.integers(1, 9000), _moments)
def test_whatever_is_asked_for_is_returned_or_counted_and_never_too_much(
    given_entries: list[dict[str, Any]], include_read: bool, limit: int, room: int, since: datetime
) -> None:
    """Nothing that was not asked for, no more than the limit, within the room but for the first."""
    mail = read(json.dumps(each).encode() for each in given_entries)
    wanted = MailQuery(include_read=include_read, limit=limit, since=since, sender="ann")
    found = page(mail, wanted, room)
    asked = [m for m in mail.messages if is_asked_for(m, include_read, since)]
    assert len(found.messages) + found.left == len(asked)
    assert set(found.messages) <= set(asked)
    assert len(found.messages) <= limit
    assert bool(found.messages) == bool(asked)
    assert len(found.messages) == 1 or sum(len(shortened(m)) for m in found.messages) <= room
    if include_read:
        times = [m.when or datetime.min.replace(tzinfo=UTC) for m in found.messages]
        assert times == sorted(times)


def is_asked_for(message: Message, include_read: bool, since: datetime) -> bool:
    is_later = message.when is not None and message.when - since > timedelta(0)
    return message.sender == "ann" and is_later and (include_read or not message.is_read)


def test_an_empty_inbox_is_an_empty_page() -> None:
    """Not an error."""
    assert page(Mail(), MailQuery()).messages == ()
