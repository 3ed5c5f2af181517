"""`Translator` and its helpers, where recorded traces alone do not determine the result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.codex.context import MAX_CHARS, additional_context
from laneway.codex.items import activity, plain_command
from laneway.codex.outputs import reconcile
from laneway.codex.translate import Translator, failure_of
from laneway.core.model import Event, Failure, Text, Thought, TurnDone, TurnStarted

HEAD = "head\n\n... {} bytes omitted ...\n"
CUT = f"{HEAD}tail\n"
"""An aggregated output as Codex shortens it."""


@pytest.mark.parametrize(
    ("live", "aggregated", "complete", "late"),
    [
        (["a", "b"], "ab", "ab", ""),
        (["b", "c"], "abc", "abc", "a"),
        (["a", "c"], "abcd", "abcd", "bd"),
        (["a"], None, "a", ""),
        (["a"], "", "a", ""),
        (["one\n", "two\n", "three\n"], "one\n[… cut …]\nthree\n", "one\ntwo\nthree\n", ""),
        (["two\n", "three\n", "four\n"], "one\ntwo\n[…]r\n", "one\ntwo\nthree\nfour\n", "one\n"),
        (["middle\n", "tail\n"], CUT.format(10), f"{HEAD.format(3)}middle\ntail\n", HEAD.format(3)),
        (["d\nmid", "dle\n", "tail\n"], CUT.format(7), "head\nmiddle\ntail\n", "hea"),
        (["head\nmiddle\ntail\n"], CUT.format(7), "head\nmiddle\ntail\n", ""),
        (["ad\nmiddle\ntail\n"], CUT.format(7), "head\nmiddle\ntail\n", "he"),
        (["middle\n"], CUT.format(7), "middle\n" + CUT.format(7), CUT.format(7)),
        ([], "all", "all", "all"),
    ],
)
def test_output_is_complete_and_nothing_is_late_twice(
    live: list[str], aggregated: str | None, complete: str, late: str
) -> None:
    """Lost pieces come late; a shortened aggregate takes nothing away from what streamed."""
    whole, gaps, rest = reconcile(live, aggregated)
    assert (whole, gaps + rest) == (complete, late)


@given(st.lists(st.text(max_size=6), max_size=8), st.data())
def test_whatever_pieces_are_lost_live_and_late_make_the_whole(
    pieces: list[str], data: st.DataObject
) -> None:
    """Every character exactly once, for any loss of pieces."""
    whole = "".join(pieces)
    live = [piece for piece in pieces if data.draw(st.booleans())]
    complete, gaps, rest = reconcile(live, whole)
    if whole:
        assert complete == whole
        assert sorted("".join((*live, gaps, rest))) == sorted(whole)
        assert complete.endswith(rest)


@given(st.lists(st.text("ab", min_size=1), min_size=1), st.text("xy", min_size=1))
def test_an_aggregate_that_has_nothing_of_what_streamed_is_told_as_well(
    live: list[str], aggregated: str
) -> None:
    """Whichever of the two is incomplete, no text is lost: the one was seen, the other comes late."""
    complete, gaps, rest = reconcile(live, aggregated)
    assert (complete, gaps + rest) == ("".join(live) + aggregated, aggregated)


def translated(*frames: tuple[str, dict[str, object]]) -> list[Event]:
    events: list[Event] = []
    translator = Translator(events.append)
    translator.begin("u")
    for method, params in frames:
        translator.notification(method, {"threadId": "t", "turnId": "u", **params}, b"")
    return events[1:]


def test_a_message_without_deltas_is_told_whole_and_a_lost_end_is_told_late() -> None:
    """Models that do not stream are heard too."""
    item = {"type": "agentMessage", "id": "m", "text": "hello"}
    assert translated(("item/completed", {"item": item})) == [Text(turn_id="u", item_id="m", text="hello")]
    thought = {"type": "reasoning", "id": "r", "summary": ["a", "b"]}
    assert translated(("item/completed", {"item": thought})) == [
        Thought(turn_id="u", item_id="r", text="a\n\nb")
    ]


def test_an_item_of_a_kind_nobody_knows_is_an_activity_with_all_it_carries() -> None:
    """New ones come with every release."""
    item = {"type": "teleport", "id": "x", "to": "mars"}
    shown = activity("u", item, ended=True)
    assert (shown.kind, shown.title, shown.status, shown.item) == ("other", "teleport", "completed", item)


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ("usageLimitExceeded", Failure(kind="usage_limit_exceeded", message="no")),
        (None, Failure(kind="other", message="no")),
        ({"httpConnectionFailed": {"httpStatusCode": 502}}, Failure("http_connection_failed", "no", 502)),
        ({"brandNew": {}}, Failure(kind="brand_new", message="no")),
    ],
)
def test_a_failure_keeps_codexs_own_word_for_its_kind(info: object, expected: Failure) -> None:
    """So that doors can tell a usage limit from a broken network, today and with new words."""
    assert failure_of({"message": "no", "codexErrorInfo": info}) == expected


@pytest.mark.parametrize(
    ("wrapped", "plain"),
    [
        ("/bin/bash -lc 'ls -l'", "ls -l"),
        ("bash -c 'echo '\\''x'\\'''", "echo 'x'"),
        ('/usr/bin/zsh -lc "ls"', "ls"),
        ("/bin/bash -lc ls", "ls"),
        ("python x.py", "python x.py"),
    ],
)
def test_a_command_is_shown_as_it_was_asked_for(wrapped: str, plain: str) -> None:
    """Without the shell that Codex wraps around it."""
    assert plain_command(wrapped) == plain


def test_context_is_cut_visibly_below_codexs_own_limit_and_moves_with_the_epoch() -> None:
    """An unchanged value would be suppressed after a compaction."""
    short = additional_context("You are codex-1.", 0)
    assert short == {"laneway": {"kind": "application", "value": "You are codex-1.\n(context 0)"}}
    assert additional_context("You are codex-1.", 1) != short
    long = additional_context("x" * 10_000, 3)["laneway"]["value"]
    assert len(long) == MAX_CHARS
    assert long.endswith("\n[cut]\n(context 3)")
    assert additional_context("", 0) == {}


def turns_of(*frames: tuple[str, dict[str, Any]]) -> list[Event]:
    """The events of a special turn; Codex answered the call that began it with turn `u`, or with nothing."""
    events: list[Event] = []
    translator = Translator(events.append)
    translator.expect("ticket", is_special_turn=True)
    for method, params in frames:
        translator.notification(method, {"threadId": "t", **params}, b"")
    translator.expect(None)
    return [event for event in events if isinstance(event, TurnStarted | TurnDone)]


ENDED: tuple[str, dict[str, Any]] = ("turn/completed", {"turn": {"id": "u", "status": "completed"}})


@pytest.mark.parametrize("inner", [{"id": "inner", "rootTurnId": "u"}, {"id": "inner"}])
def test_a_review_is_one_turn_whether_or_not_codex_names_its_root(inner: dict[str, object]) -> None:
    """Up to 0.153 the turn inside a review looks like any other."""
    entered = {"type": "enteredReviewMode", "id": "r", "review": "all"}
    assert turns_of(
        ("item/started", {"turnId": "u", "item": entered}),
        ("item/completed", {"turnId": "u", "item": entered}),
        ("turn/started", {"turn": inner}),
        ENDED,
    ) == [
        TurnStarted(turn_id="u", ticket="ticket"),
        TurnDone(turn_id="u", status="completed", first_id="inner", text=""),
    ]


def test_a_special_turn_begins_with_its_first_item_where_codex_tells_of_no_start() -> None:
    """A compaction of Codex 0.104."""
    item = {"type": "contextCompaction", "id": "c"}
    frames = [
        ("item/started", {"turnId": "u", "item": item}),
        ("item/completed", {"turnId": "u", "item": item}),
    ]
    assert turns_of(*frames, ENDED) == [
        TurnStarted(turn_id="u", ticket="ticket"),
        TurnDone(turn_id="u", status="completed", text=""),
    ]
