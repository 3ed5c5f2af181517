"""What sessions decide, proved without processes, files or time."""

from __future__ import annotations

from itertools import islice
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import EngineLost, SessionClosed
from laneway.core.model import Failure
from laneway.core.named.opening import Budget
from laneway.core.named.records import Record, latest
from laneway.core.named.rules import (
    MAX_NUMBERED,
    Why,
    after_death,
    final_status,
    numbered,
    outcome,
    overdrawn,
    summary_text,
    wants_summary,
)
from laneway.core.turn import TurnResult


@given(st.sets(st.integers(1, 20)))
def test_the_first_name_offered_is_the_lowest_that_is_free(taken: set[int]) -> None:
    """No taken name is offered, and no free one is passed over."""
    names = {number: "x" if number == 1 else f"x-{number}" for number in range(1, 30)}
    offered = list(islice(numbered("x", {names[number] for number in taken}), 5))
    free = [name for number, name in names.items() if number not in taken]
    assert offered == free[:5]


def test_numbers_come_to_an_end() -> None:
    """A runaway is stopped."""
    assert len(list(numbered("x", set()))) == MAX_NUMBERED


@pytest.mark.parametrize(
    ("policy", "ended", "is_reported", "verdict"),
    [
        *((policy, None, told, "go") for policy in ("never", "reported", "always") for told in (True, False)),
        ("never", "exit code 1", False, "refuse"),
        ("never", "exit code 1", True, "refuse"),
        ("reported", "exit code 1", False, "refuse"),
        ("reported", "exit code 1", True, "renew"),
        ("always", "exit code 1", False, "go"),
        ("always", "exit code 1", True, "go"),
    ],
)
def test_what_a_death_means_for_the_next_call(
    policy: Any, ended: str | None, is_reported: bool, verdict: str
) -> None:
    """Who may start another engine, and after what."""
    assert after_death(policy, ended, is_reported=is_reported) == verdict


@given(st.integers(0, 10), st.integers(0, 10), st.integers(0, 5), st.integers(0, 5))
def test_a_budget_is_spent_exactly_from_its_limit_on(turns: int, tokens: int, more: int, used: int) -> None:
    """The last turn within it is allowed, the next is not."""
    if turns:
        spent = overdrawn(Budget(max_turns=turns), "a", turns - 1 + more, used)
        assert (spent is None) == (more == 0)
    if tokens:
        spent = overdrawn(Budget(max_tokens=tokens), "a", used, tokens - 1 + more)
        assert (spent is None) == (more == 0)
    assert overdrawn(Budget(), "a", turns, tokens) is None


@given(st.booleans(), st.integers(0, 3), st.booleans(), st.booleans())
def test_a_summary_is_asked_for_only_where_it_may_be(
    is_busy: bool, turns: int, is_on: bool, can: bool
) -> None:
    """Switched on, possible, with something to tell; of an idle one only when everything ends."""
    asked = {
        why: wants_summary(why, is_busy=is_busy, turns=turns, is_on=is_on, can=can) for why in get_args(Why)
    }
    possible = is_on and can and turns > 0
    assert asked == {"close": possible and is_busy, "shutdown": possible, "lost": False}


def test_interrupted_is_what_owes_a_summary() -> None:
    """Closed is everything else that ended in order."""
    assert final_status("close", is_summary_wanted=True, summary="s") == "closed"
    assert final_status("close", is_summary_wanted=True, summary=None) == "interrupted"
    assert final_status("shutdown", is_summary_wanted=False, summary=None) == "closed"
    assert final_status("lost", is_summary_wanted=False, summary=None) == "interrupted"


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, None),
        (TurnResult(status="completed", text="done"), "done"),
        (TurnResult(status="completed", text=" \n"), None),
        (TurnResult(status="interrupted", text="half a", stopped_by="timeout"), None),
        (TurnResult(status="failed", text="oh"), None),
    ],
)
def test_only_a_completed_turn_is_a_summary(result: TurnResult | None, text: str | None) -> None:
    """Half a sentence, or an excuse, is not put in front of the next session."""
    assert summary_text(result) == text


def test_outcomes_are_told_in_a_word_or_two() -> None:
    """For people who search the audit log."""
    failure = Failure(kind="usage_limit", message="…")
    assert outcome(TurnResult(status="completed")) == "completed"
    assert outcome(TurnResult(status="failed", failure=failure)) == "failed: usage_limit"
    assert outcome(TurnResult(status="interrupted", stopped_by="budget")) == "interrupted by budget"
    assert outcome(EngineLost("exit code 1")) == "EngineLost"
    assert outcome(SessionClosed("x")) == "SessionClosed"


def test_the_latest_session_is_the_one_that_was_active_last() -> None:
    """One without a time of activity counts from its start."""
    records = [
        Record(agent_id="a", identity="i", team="t", started_at="2026-01-03"),
        Record(agent_id="b", identity="i", team="t", started_at="2026-01-01", last_active="2026-01-04"),
        Record(agent_id="c", identity="i", team="t", started_at="2026-01-02", last_active="2026-01-02"),
    ]
    found = latest(records)
    assert found is not None
    assert found.agent_id == "b"
    assert latest([]) is None
