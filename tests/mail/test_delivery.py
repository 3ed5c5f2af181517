"""What becomes of unread mail: the rules of delivery, proved without a file or a session."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laneway.mail import entries
from laneway.mail.claude_messages import Addressee, treatment
from laneway.mail.delivery import (
    HOUR_S,
    EndSession,
    HoldMail,
    Rules,
    Situation,
    Sorted,
    StartMailTurn,
    SteerMail,
    decide,
    sort,
)
from laneway.mail.entries import Message
from laneway.mail.pace import BACKOFF_S, MAX_BACKOFF_S, Pace, backoff
from laneway.store.stamps import stamp

SINCE = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
ME = Addressee("codex", "crew", SINCE)


def mail(number: int, sender: str = "bob", text: str = "", urgency: str = "normal", **fields: Any) -> Message:
    entry = {
        "from": sender,
        "text": text or f"message {number}",
        "timestamp": stamp(SINCE + timedelta(seconds=number)),
        "read": False,
        "message_id": f"id-{number}",
        "priority": urgency,
        **fields,
    }
    found = entries.message(json.dumps(entry).encode())
    assert found is not None
    return found


def order(number: int, sender: str = "team-lead") -> Message:
    frame = {"type": "shutdown_request", "requestId": "r", "from": sender, "timestamp": ""}
    return mail(number, sender, json.dumps(frame))


def idle_note(number: int) -> Message:
    return mail(number, text=json.dumps({"type": "idle_notification", "from": "bob", "timestamp": ""}))


def situation(**fields: Any) -> Situation:
    return Situation(**{"now": 10_000.0, "state": "idle", **fields})


def act(unread: list[Message], rules: Rules = Rules(), **fields: Any) -> Any:  # noqa: B008  frozen
    return decide(situation(**fields), sort(entries.in_order(unread), ME, rules), rules)


# ── what goes ──────────────────────────────────────────────────────────────


def test_an_idle_session_is_brought_its_mail_oldest_first() -> None:
    """The plain case."""
    assert act([mail(2), mail(1)]) == StartMailTurn((mail(1), mail(2)), 0)


def test_fifteen_messages_are_ten_now_and_five_later() -> None:
    """And the turn says how many wait."""
    unread = [mail(number) for number in range(15)]
    assert act(unread) == StartMailTurn(tuple(unread[:10]), 5)
    assert act(unread[10:]) == StartMailTurn(tuple(unread[10:]), 0)


def test_urgent_mail_goes_first_and_what_has_time_goes_last() -> None:
    """Then by age."""
    unread = [mail(1, urgency="low"), mail(2), mail(3, urgency="urgent"), mail(4, urgency="urgent"), mail(5)]
    assert act(unread).messages == (unread[2], unread[3], unread[1], unread[4], unread[0])


def test_without_mail_nothing_happens() -> None:
    """An empty inbox changes nothing."""
    assert act([]) == HoldMail("nothing")


def test_news_that_start_no_turn_come_along_behind_real_mail() -> None:
    """They take no place from anything that does."""
    notes = [idle_note(number) for number in range(3)]
    assert act(notes) == HoldMail("nothing")
    assert act([*notes, mail(9)], Rules(max_messages=3)).messages == (mail(9), notes[0], notes[1])


# ── what keeps it back ─────────────────────────────────────────────────────


@pytest.mark.covers("FR-17.6")
def test_a_busy_session_is_left_alone() -> None:
    """Whatever runs or waits there goes first, urgent or not."""
    assert act([mail(1, urgency="urgent")], state="busy") == HoldMail("busy")


def test_a_closed_session_gets_nothing() -> None:
    """What is unread stays where it is."""
    assert act([mail(1)], state="closed") == HoldMail("closed")


def test_switched_off_nothing_is_brought_and_nothing_obeyed() -> None:
    """Neither mail nor an order to end."""
    assert act([mail(1), order(2)], is_auto=False) == HoldMail("off")


def test_a_dead_codex_is_not_asked() -> None:
    """Whoever asks it first is told of the death, and that must be a client."""
    assert act([mail(1)], can_begin=False) == HoldMail("engine")


def test_where_the_engine_takes_nothing_into_a_turn_urgent_mail_waits_for_its_end() -> None:
    """Whatever the setting says."""
    urgent, rules = [mail(1, urgency="urgent")], Rules(may_steer=True)
    assert act(urgent, rules=rules, state="busy", can_steer=False) == HoldMail("busy")
    assert isinstance(act(urgent, rules=rules, state="busy"), SteerMail)


def test_after_a_failure_there_is_a_pause() -> None:
    """And it says until when."""
    assert act([mail(1)], not_before=10_001.0) == HoldMail("failed", 10_001.0)
    assert act([mail(1)], not_before=10_000.0) == StartMailTurn((mail(1),), 0)


def test_the_limit_of_an_hour_holds_until_the_oldest_turn_is_an_hour_old() -> None:
    """Two agents cannot talk each other into ruin."""
    rules = Rules(turns_per_hour=3)
    begun = (6_400.0, 7_000.0, 8_000.0, 9_000.0)  # the first is an hour old to the second
    assert act([mail(1)], rules, begun=begun) == HoldMail("limit", 10_600.0)
    assert act([mail(1)], rules, begun=begun, now=10_600.0) == StartMailTurn((mail(1),), 0)


def test_a_limit_of_none_is_none() -> None:
    """Zero turns in an hour are no turns, ever."""
    assert act([mail(1)], Rules(turns_per_hour=0)) == HoldMail("limit", None)


def test_senders_who_are_not_allowed_start_no_turn_and_their_mail_stays() -> None:
    """By name, or by name and team; who is denied is denied even if allowed."""
    rules = Rules(allow=frozenset({"bob", "eve", "ann@others"}), deny=frozenset({"eve"}))
    unread = (
        mail(1, "eve"),
        mail(2, "bob"),
        mail(3, "zoe"),
        mail(4, "ann", source_team="others"),
        mail(5, "ann", source_team="crew"),
    )
    found = sort(unread, ME, rules)
    assert found == Sorted(starting=(unread[1], unread[3]), refused=(unread[0], unread[2], unread[4]))
    assert decide(situation(), found, rules) == StartMailTurn((unread[1], unread[3]), 0)


def test_a_denied_lead_cannot_end_a_session() -> None:
    """Ending it is more than starting a turn."""
    assert act([order(1)], Rules(deny=frozenset({"team-lead"}))) == HoldMail("nothing")


def test_what_was_brought_is_only_marked_and_what_is_under_way_is_waited_for() -> None:
    """Neither is brought a second time in one life, also if its entry was written anew."""
    brought, pending_keys, fresh = mail(1), mail(2), mail(3)
    again = mail(1, metadata={"atm": {"messageId": "01J"}})
    found = sort(
        (again, pending_keys, fresh), ME, Rules(), delivered=brought.key, pending_keys=pending_keys.key
    )
    assert found == Sorted(starting=(fresh,), marks=(again,))


# ── what goes before everything ────────────────────────────────────────────


def test_an_order_to_end_goes_before_other_mail_and_no_limit_stops_it() -> None:
    """Close goes first; and it is the way out of a conversation that does not end."""
    assert act([mail(1), order(2)], Rules(turns_per_hour=0), not_before=99_999.0) == EndSession(order(2))


def test_an_order_to_end_waits_for_a_turn_that_runs() -> None:
    """What a client asked for is not stopped by mail."""
    assert act([order(1)], state="busy") == HoldMail("busy")


# ── urgent mail and a turn that runs ───────────────────────────────────────


def test_urgent_mail_reaches_a_running_turn_where_that_is_wanted() -> None:
    """Only what is urgent; the rest waits as ever."""
    rules = Rules(may_steer=True)
    urgent = mail(2, urgency="urgent")
    assert act([mail(1), urgent], rules, state="busy") == SteerMail((urgent,))
    assert act([mail(1)], rules, state="busy") == HoldMail("busy")
    assert act([urgent], rules, state="idle") == StartMailTurn((urgent,), 0)


def test_steering_counts_for_the_limit() -> None:
    """It is the shortest way to make two agents talk for ever."""
    rules = Rules(may_steer=True, turns_per_hour=1)
    assert act([mail(1, urgency="urgent")], rules, state="busy", begun=(9_000.0,)) == HoldMail(
        "limit", 12_600.0
    )


# ── properties ─────────────────────────────────────────────────────────────

urgencies = st.sampled_from(["urgent", "normal", "low"])
senders = st.sampled_from(["bob", "eve", "team-lead", "codex"])
some = st.lists(st.tuples(senders, urgencies, st.sampled_from(["words", "idle", "end"])), max_size=30).map(
    lambda drawn: [
        order(n, sender)
        if kind == "end"
        else idle_note(n)
        if kind == "idle"
        else mail(n, sender, urgency=urgency)
        for n, (sender, urgency, kind) in enumerate(drawn)
    ]
)
situations = st.builds(
    lambda state, is_auto, can_begin, begun, wait: situation(
        state=state, is_auto=is_auto, can_begin=can_begin, begun=tuple(begun), not_before=10_000.0 + wait
    ),
    st.sampled_from(["idle", "busy", "closed"]),
    st.booleans(),
    st.booleans(),
    st.lists(st.floats(5_000, 10_000), max_size=5).map(sorted),
    st.sampled_from([-1.0, 0.0, 1.0]),
)
rules_of_all_kinds = st.builds(
    Rules,
    max_messages=st.integers(1, 5),
    turns_per_hour=st.integers(0, 5),
    may_steer=st.booleans(),
    allow=st.none() | st.frozensets(senders),
    deny=st.frozensets(senders),
)


@given(situations, some, rules_of_all_kinds)
def test_whatever_the_situation_the_promises_hold(
    here: Situation, unread: list[Message], rules: Rules
) -> None:
    """Busy is left alone, off is off, the limits hold, nobody unwelcome gets in, nothing is out of order."""
    ordered = entries.in_order(unread)
    found = sort(ordered, ME, rules)
    done = decide(here, found, rules)
    went = done.messages if isinstance(done, StartMailTurn | SteerMail) else ()
    if isinstance(done, StartMailTurn | EndSession):
        assert here.state == "idle"
    if isinstance(done, SteerMail):
        assert here.state == "busy"
        assert rules.may_steer
        assert all(message.urgency == "urgent" for message in went)
    if went:
        assert here.is_auto
        assert here.can_begin
        assert here.now >= here.not_before
        assert sum(begun > here.now - HOUR_S for begun in here.begun) < rules.turns_per_hour
        assert len(went) <= rules.max_messages
        assert all(rules.admit(message) for message in went)
        real = [message for message in went if treatment(message, ME) == "turn"]
        assert [message for message in ordered if message in real] == real
    assert set(map(id, found.refused)) == {id(m) for m in ordered if not rules.admit(m)}


@settings(max_examples=50)
@given(some, rules_of_all_kinds)
def test_an_idle_session_gets_all_its_welcome_mail_and_each_message_once(
    unread: list[Message], rules: Rules
) -> None:
    """Turn after turn, with the limit lifted: nothing is left over and nothing comes twice."""
    unread = [message for message in unread if "shutdown" not in message.text]
    rules = Rules(max_messages=rules.max_messages, allow=rules.allow, deny=rules.deny)
    brought: set[str] = set()
    seen: list[Message] = []
    while True:
        found = sort(entries.in_order(unread), ME, rules, delivered=brought)
        done = decide(situation(), found, rules)
        if not isinstance(done, StartMailTurn):
            break
        seen += done.messages
        brought.update(*(message.key for message in done.messages))
    assert len(set(map(id, seen))) == len(seen)
    missing = [message for message in unread if message not in seen and rules.admit(message)]
    assert all(treatment(message, ME) == "quiet" for message in missing)


@settings(max_examples=50)
@given(st.lists(st.floats(0.01, 2_000), min_size=1, max_size=60), st.integers(1, 5))
def test_in_no_hour_are_there_more_turns_than_the_limit(gaps: list[float], limit: int) -> None:
    """However mail comes, and however soon after the limit is lifted."""
    pace, rules, now = Pace(), Rules(turns_per_hour=limit), 0.0
    started: list[float] = []
    for gap in gaps:
        now += gap
        if isinstance(act([mail(1)], rules, now=now, begun=pace.begun(now)), StartMailTurn):
            pace.begin(now)
            started.append(now)
    for time in started:
        assert sum(time - HOUR_S < other <= time for other in started) <= limit


# ── the pace ───────────────────────────────────────────────────────────────


def test_the_pause_doubles_and_stays_bounded() -> None:
    """No hot loop, and no pause without an end."""
    pauses = [backoff(failures) for failures in range(1, 100)]
    assert pauses[:3] == [BACKOFF_S, 2 * BACKOFF_S, 4 * BACKOFF_S]
    assert pauses == sorted(pauses)
    assert pauses[-1] == MAX_BACKOFF_S


def test_a_success_ends_the_pauses() -> None:
    """The next failure is a first one again."""
    pace = Pace()
    assert [pace.fail(100.0), pace.fail(100.0)] == [102.0, 104.0]
    pace.succeed()
    assert pace.fail(100.0) == 102.0


def test_a_turn_that_was_taken_back_does_not_count() -> None:
    """A client came first: that is not the mail's fault. Taking back what nobody counted is harmless."""
    pace = Pace()
    pace.begin(1.0)
    pace.begin(2.0)
    pace.take_back(1.0)
    pace.take_back(1.0)
    assert pace.begun(3.0) == (2.0,)
    assert pace.begun(HOUR_S + 2.0) == ()


def test_the_limits_have_defaults_that_the_seed_names() -> None:
    """Ten messages of 4,096 characters."""
    assert (Rules().max_messages, Rules().max_chars) == (10, 4096)
