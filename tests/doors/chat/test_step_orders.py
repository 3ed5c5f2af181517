"""The rules of a conversation under every order of letters: nothing is lost, done twice, or left hanging."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.doors.chat.conversation_letters import ChatLetter, QuestionExpired, QuitAsked
from tests.doors.chat.orders import World, explore, is_settled, said, starting, wander


def ends_of(*script: ChatLetter, asks: int = 0, delegates: int = 0, **options: Any) -> list[World]:
    """All ends; each of them is settled, and each input has come to its end once."""
    ends = explore(World(starting(**options), script, asks=asks, delegates=delegates))
    assert ends
    for end in ends:
        assert is_settled(end), end
        assert sorted(end.ended) == sorted(end.order), "not every turn has ended"
    return ends


def assert_all_over(ends: list[World], *input_ids: int) -> None:
    for end in ends:
        assert sorted(end.over) == sorted(input_ids), end
        told = {input_id for input_id, _ in end.receipts}
        assert told == set(input_ids), "a message has no receipt"


@pytest.mark.parametrize("busy", ["interrupt", "steer", "queue"])
def test_two_messages_are_both_acted_upon_in_their_order(busy: str) -> None:
    """Whatever the lane tells in between, and whatever the setting."""
    ends = ends_of(said(1, "one"), said(2, "two"), busy=busy)
    assert_all_over(ends, 1, 2)
    for end in ends:
        assert end.begun == (1, 2)
        assert end.order[0] == "in-1"


@pytest.mark.parametrize("busy", ["interrupt", "steer", "queue"])
def test_messages_to_two_lanes_and_back_never_work_at_once(busy: str) -> None:
    """/codex while Claude works, and a message while Codex does."""
    ends = ends_of(said(1, "one"), said(2, "/codex two"), said(3, "three"), busy=busy)
    assert_all_over(ends, 1, 2, 3)
    assert all(set(end.begun) == {1, 2, 3} for end in ends)
    if busy == "queue":
        assert all(end.order == ("in-1", "in-2", "in-3") for end in ends)


@pytest.mark.parametrize("busy", ["interrupt", "steer", "queue"])
def test_a_stop_ends_what_works_and_drops_what_waits(busy: str) -> None:
    """A message that comes after it is a new beginning."""
    ends = ends_of(said(1, "one"), said(2, "two"), said(3, "/stop"), said(4, "four"), busy=busy)
    assert_all_over(ends, 1, 2, 3, 4)
    for end in ends:
        assert end.order[-1] == "in-4"
        assert set(end.begun) >= {1, 4}


@pytest.mark.parametrize("busy", ["interrupt", "steer", "queue"])
def test_quitting_begins_nothing_more(busy: str) -> None:
    """What waits is dropped and told."""
    script = (said(1, "one"), said(2, "two"), QuitAsked("quit"))
    ends = ends_of(*script, busy=busy)
    assert_all_over(ends, 1, 2)


def test_a_shutdown_leaves_what_waits_to_the_next_process() -> None:
    """It is not over, and was given to nobody."""
    script = (said(1, "one"), said(2, "two"), QuitAsked("shutdown"))
    for end in explore(World(starting(busy="queue"), script)):
        assert not end.state.turns
        waiting = {plan.taken.input_id for plan in (*end.state.queue, *end.state.steering)}
        assert waiting | set(end.over) == {1, 2}
        assert not waiting & set(end.begun)


def test_a_question_is_answered_once_or_goes_with_its_turn() -> None:
    """By words, by its end, or by a message that stops the lane."""
    ends = ends_of(said(1, "one"), said(2, "yes", at=1.0), asks=1)
    assert_all_over(ends, 1, 2)
    assert {end.answered for end in ends} == {(), ("q1",), ("q1", "q2")}
    assert {dict(end.receipts)[2] for end in ends} == {"answered", "begun"}


def test_a_late_expiry_answers_nothing() -> None:
    """Of a question that was answered, or went with its turn."""
    script = (said(1, "one"), said(2, "/stop"), QuestionExpired(1))
    ends = ends_of(*script, asks=1)
    assert_all_over(ends, 1, 2)


def test_input_for_a_lane_that_asks_waits_behind_its_question() -> None:
    """Even where a message would stop the lane."""
    ends = ends_of(said(1, "one"), said(2, "/claude two", at=1.0), said(3, "no", at=2.0), asks=1)
    assert_all_over(ends, 1, 2, 3)
    held = [end for end in ends if (2, "held") in end.receipts]
    assert held
    assert all(end.begun[-1] in (2, 3) for end in held)


def test_a_delegated_turn_is_part_of_its_callers() -> None:
    """Its call gets one result, whoever ends first."""
    ends = ends_of(said(1, "one"), said(2, "two"), delegates=1)
    assert_all_over(ends, 1, 2)
    for end in ends:
        assert set(end.order) >= {"in-1", "in-2"}
        assert all(ticket in end.ended for ticket in end.order if ticket.startswith("call"))
    assert any("call-call1" in end.order for end in ends)


def test_a_stop_reaches_a_delegated_turn_as_well() -> None:
    """And nothing of it goes on."""
    ends = ends_of(said(1, "one"), said(2, "/stop"), delegates=1)
    assert_all_over(ends, 1, 2)
    assert any("call-call1" in end.stops for end in ends)


def test_several_at_once_with_questions_and_delegations() -> None:
    """The widest search: three messages, a question and a delegated turn."""
    ends = ends_of(said(1, "one"), said(2, "/codex two", at=1.0), said(3, "/stop"), asks=1, delegates=1)
    assert_all_over(ends, 1, 2, 3)


WORDS = ("words", "yes", "/codex task", "/claude task", "/steer more", "/queue later", "/stop", "/lane codex")


@given(st.data())
def test_long_talks_by_chance_end_with_everything_told(data: st.DataObject) -> None:
    """Up to eight messages, questions, delegations and slow stops, in an order that nobody has thought of."""
    texts = data.draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8))
    busy = data.draw(st.sampled_from(("interrupt", "steer", "queue")))
    script = tuple(said(number, text, at=float(number)) for number, text in enumerate(texts, 1))
    asks, delegates = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 1))
    chance = data.draw(st.randoms(use_true_random=False))
    world = World(starting(busy=busy), script, asks=asks, delegates=delegates)
    end = wander(world, chance.randrange)
    assert is_settled(end)
    assert sorted(end.ended) == sorted(end.order)
    assert_all_over([end], *range(1, len(texts) + 1))
