"""Entries of three programs, read with tolerance; ours, read by all three."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import BadMail, BadName
from laneway.mail import entries, raw_json
from laneway.mail.draft import MAX_TEXT_BYTES, draft
from laneway.mail.entries import Mail, message
from laneway.testing.mail_rules import inbox_faults, our_entry_faults
from tests.mail.box import NOON, letter

CLAUDES = {
    "from": "team-lead",
    "text": "hello codex from lead",
    "summary": "hello",
    "timestamp": "2026-11-16T05:25:43.776Z",
    "msgV": 1,
    "msg_id": "0cfd852e-1286-4b04-8538-8f475d9fb593",
    "type": "message",
    "read": False,
}
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
SAYABLE = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1).filter(str.strip)


def spelt(entry: object) -> bytes:
    return json.dumps(entry).encode()


def read(*found: object) -> Mail:
    return entries.read(spelt(entry) for entry in found)


@given(SAYABLE, TIMES, st.sampled_from(["urgent", "normal", "low"]), st.text(max_size=300))
def test_what_we_write_passes_the_rules_of_all_three(
    text: str, when: datetime, urgency: Any, summary: str
) -> None:
    """And means what was said."""
    made = draft("bob", text, team="crew", summary=summary, urgency=urgency, when=when)
    moment = when.replace(microsecond=when.microsecond // 1000 * 1000)
    data = raw_json.array([made.entry(moment)])
    assert inbox_faults(data) == []
    assert our_entry_faults(json.loads(data)[0]) == []
    [found] = entries.read(raw_json.items(data)).messages
    assert (found.sender, found.text, found.when, found.urgency) == ("bob", text, moment, urgency)
    assert (found.message_id, found.source_team, found.kind) == (made.message_id, "crew", "message")
    assert not found.is_read


def test_an_entry_of_ours_looks_like_one_of_claudes() -> None:
    """Two spaces a level, one key a line; golden, because three programs read it."""
    made = letter("hi\nthere", when=NOON)
    lines = raw_json.array([made.entry(NOON)]).decode().replace(made.message_id, "ID").splitlines()
    assert lines[:4] == ["[", "  {", '    "from": "bob",', '    "text": "hi\\nthere",']
    assert lines[4:10] == [
        '    "timestamp": "2026-11-16T12:00:00.123Z",',
        '    "read": false,',
        '    "summary": "hi there",',
        '    "type": "message",',
        '    "msgV": 1,',
        '    "msg_id": "ID",',
    ]
    assert lines[-3:] == ["    }", "  }", "]"]


def test_claudes_and_both_atms_are_understood() -> None:
    """With their own ids; what has none goes by sender, time and text."""
    atm = {
        "from": "arch",
        "content": "old",
        "timestamp": "2026-02-18T10:00:00.123456789+00:00",
        "message_id": "m",
    }
    atm1 = {"from": "qa", "text": "new", "metadata": {"atm": {"messageId": "01J", "sourceTeam": "west"}}}
    bare = {"from": "x", "text": "y", "timestamp": "2026-02-18T10:00:00Z", "read": True}
    found = read(CLAUDES, atm, atm1, bare).messages
    assert [each.message_id for each in found] == [CLAUDES["msg_id"], "m", "01J", ""]
    assert [each.text for each in found] == ["hello codex from lead", "old", "new", "y"]
    assert [each.is_read for each in found] == [False, False, False, True]
    assert found[1].when == datetime(2026, 2, 18, 10, 0, 0, 123456, UTC)
    assert (found[2].when, found[2].timestamp, found[2].source_team) == (None, "", "west")


@pytest.mark.parametrize(
    "entry", [5, None, "text", [], {}, {"from": 1, "text": "x"}, {"from": "x"}, {"from": "x", "text": None}]
)
def test_what_is_no_message_is_told_and_kept(entry: object) -> None:
    """It may be a newer program's."""
    mail = read(CLAUDES, entry)
    assert len(mail.messages) == 1
    assert [(problem.kind, problem.text[:8]) for problem in mail.problems] == [("entry", "Entry 2 ")]


@pytest.mark.parametrize(
    "said", [None, 5.5, "yesterday", "9999-99-99", [], "2026-11-16T25:00:00Z", -1, 10**30, True]
)
def test_a_time_that_is_none_is_no_reason_to_drop_a_message(said: object) -> None:
    """Its place tells when it came."""
    [found] = read({**CLAUDES, "timestamp": said}).messages
    assert found.text == CLAUDES["text"]


def test_the_order_is_urgent_first_then_by_instant_not_by_spelling() -> None:
    """`Z`, offsets and precisions mixed; what has no time goes by its place; equals keep theirs."""
    at = [
        ("late", "2026-11-16T12:00:00.5Z", ""),
        ("early", "2026-11-16T14:00:00+03:00", ""),
        ("middle", "2026-11-16T11:30:00Z", ""),
        ("behind middle", None, ""),
        ("no hurry", "2026-11-16T01:00:00Z", "low"),
        ("urgent", "2026-11-16T23:00:00Z", "URGENT"),
        ("first of two", "2026-11-16T12:30:00Z", "whatever"),
        ("second of two", "2026-11-16T12:30:00.000+00:00", ""),
    ]
    mail = read(
        *({"from": "x", "text": text, "timestamp": when, "priority": hint} for text, when, hint in at)
    )
    order = [
        "urgent",
        "early",
        "middle",
        "behind middle",
        "late",
        "first of two",
        "second of two",
        "no hurry",
    ]
    assert [found.text for found in mail.unread()] == order


@pytest.mark.parametrize(
    "hint",
    [{"priority": "high"}, {"urgency": "critical"}, {"metadata": {"atm": {"priority": "urgent"}}},
     {"metadata": {"laneway": {"priority": "urgent"}}, "priority": "low"}],
)  # fmt: skip
def test_a_hint_of_urgency_is_found_wherever_it_is_said(hint: dict[str, Any]) -> None:
    """Ours before ATM's before a bare one."""
    assert read({**CLAUDES, **hint}).messages[0].urgency == "urgent"


def test_a_message_that_was_written_twice_is_read_once() -> None:
    """Also if ATM 1.x took one of its ids away."""
    made = json.loads(letter("hi").entry(NOON))
    moved = {name: value for name, value in made.items() if name not in ("message_id", "msg_id")}
    assert len(read(made, made, moved).messages) == 1
    assert len(read(CLAUDES, CLAUDES).messages) == 1


def test_another_message_with_the_same_id_is_another_message() -> None:
    """Whoever takes an id of somebody else's must not make that one vanish."""
    forged = {**CLAUDES, "from": "mallory"}
    assert len(read(CLAUDES, forged).messages) == 2
    first, second = read({**CLAUDES, "msg_id": "1"}, {**CLAUDES, "msg_id": "2"}).messages
    assert first.key.isdisjoint(second.key), "the same words, said twice in one second"


ENTRIES = st.lists(
    st.fixed_dictionaries(
        {
            "from": st.sampled_from("ab"),
            "text": st.sampled_from("xyz"),
            "timestamp": st.sampled_from(["1", "2"]),
        },
        optional={
            "read": st.sampled_from([True, False, None, 1]),
            "msg_id": st.sampled_from("pqr"),
            "z": st.none(),
        },
    )
    | st.sampled_from([5, "x", [{"read": True}]]),
    max_size=8,
)


@given(ENTRIES, st.data())
def test_marking_touches_what_was_meant_and_nothing_else(found: list[Any], data: st.DataObject) -> None:
    """Every other entry keeps its bytes, a marked one all but `read`."""
    before = raw_json.items(json.dumps(found, indent=2).encode())
    messages = [m for m in map(message, before) if m is not None and not m.is_read]
    meant = data.draw(st.lists(st.sampled_from(messages), unique_by=id)) if messages else []
    key = frozenset().union(*(m.key for m in meant))
    after, count = entries.mark(before, key)
    changed = 0
    for old, new in zip(before, after, strict=True):
        was = message(old)
        if was is not None and not was.is_read and was.key & key:
            assert json.loads(new) == {**json.loads(old), "read": True}
            changed += 1
        else:
            assert new is old
    assert changed == count >= len({m.key for m in meant})
    assert entries.mark(after, key) == (after, 0)


@given(ENTRIES, st.sampled_from([None, 2]))
def test_unread_is_what_a_slow_look_finds(found: list[Any], indent: int | None) -> None:
    """The fast look and the careful one agree on every shape of `read`."""
    data = json.dumps(found, indent=indent).encode()
    slow = [e for e in found if not (isinstance(e, dict) and e.get("read") is True)]
    assert [json.loads(raw) for raw in entries.unread(data)] == slow


def ident(raw: bytes) -> Any:
    return json.loads(raw)["n"]


def numbered(*numbers: int, read_too: frozenset[int] = frozenset()) -> list[bytes]:
    return [
        spelt({"from": "a", "text": str(n), "timestamp": str(n), "n": n, "read": n in read_too})
        for n in numbers
    ]


@given(
    base=st.sets(st.integers(0, 9)),
    added=st.sets(st.integers(10, 14)),
    theirs_added=st.sets(st.integers(12, 19)),
    removed=st.sets(st.integers(0, 9)),
    marks=st.sets(st.integers(0, 9)),
    their_marks=st.sets(st.integers(0, 9)),
)
def test_a_merge_keeps_what_both_sides_did(
    base: set[int],
    added: set[int],
    theirs_added: set[int],
    removed: set[int],
    marks: set[int],
    their_marks: set[int],
) -> None:
    """Additions of both, once; their removals; marks of both."""
    before = numbered(*sorted(base))
    ours = numbered(*sorted(base), *sorted(added), read_too=frozenset(marks))
    theirs = numbered(*sorted(base - removed), *sorted(theirs_added), read_too=frozenset(their_marks))
    merged = entries.merge(before, ours, theirs)
    assert sorted(map(ident, merged)) == sorted((base - removed) | added | theirs_added)
    assert {ident(raw) for raw in merged if json.loads(raw)["read"]} == (marks | their_marks) & (
        base - removed
    )


@given(SAYABLE, st.integers(1, 5))
def test_the_same_words_never_have_the_same_time(text: str, times: int) -> None:
    """Claude Code takes delivered mail out by sender, time and text."""
    found: list[bytes] = []
    for _ in range(times):
        when = entries.free_time(found, "bob", text, NOON)
        found.append(letter(text).entry(when))
    assert [m.when for m in map(message, found) if m] == [
        NOON + timedelta(milliseconds=n) for n in range(times)
    ]
    assert entries.free_time(found, "alice", text, NOON) == NOON


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("a\0b", "NUL"),
        ("\ud800", "no text"),
        ("é" * (MAX_TEXT_BYTES // 2 + 1), "allowed"),
    ],
)
def test_what_cannot_be_sent_is_told_in_a_sentence(text: str, word: str) -> None:
    """Before anything is written."""
    with pytest.raises(BadMail, match=rf"{word}.*\.$"):
        draft("bob", text, team="crew")


def test_a_message_of_the_largest_size_is_fine() -> None:
    """To the byte."""
    assert draft("bob", "x" * MAX_TEXT_BYTES, team="crew").summary == "x" * 97 + "..."


def test_nobody_drafts_in_a_reserved_name() -> None:
    """Nor for a team that is a path."""
    with pytest.raises(BadName):
        draft("team-lead", "x", team="crew")
    with pytest.raises(BadName):
        draft("bob", "x", team="../crew")


def test_a_summary_is_one_short_line() -> None:
    """Made from the text where none is given, cut behind a word."""
    words = "one two three\n\tfour " + "word " * 50
    made = draft("bob", words, team="crew")
    assert made.summary.startswith("one two three four word")
    assert made.summary.endswith("word...")
    assert len(made.summary) <= 100
    assert draft("bob", words, team="crew", summary="own\nwords").summary == "own words"
