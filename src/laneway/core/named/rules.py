"""Decisions about named sessions as pure functions: budgets, restarts, summaries, names, outcomes."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Literal, TypeAlias

from laneway.base.errors import BudgetSpent, LanewayError
from laneway.core.named.opening import Budget
from laneway.core.named.records import Record, Status
from laneway.core.turn import TurnResult

Restart: TypeAlias = Literal["never", "reported", "always"]
"""When a dead Codex may be replaced: never, once a caller has been told of the death, or at once."""
Why: TypeAlias = Literal["close", "shutdown", "lost"]
"""Why a session ends: its owner closes it, the process shuts down, or an error."""

MAX_NUMBERED = 1000
"""`codex` to `codex-1000`: more sessions of one name are a runaway client, not a team."""


def numbered(identity: str, taken: Container[str]) -> Iterator[str]:
    """The name, then the name with the numbers from 2 on, except for those that are taken."""
    for number in range(1, MAX_NUMBERED + 1):
        name = identity if number == 1 else f"{identity}-{number}"
        if name not in taken:
            yield name


def after_death(policy: Restart, ended: str | None, *, is_reported: bool) -> Literal["go", "renew", "refuse"]:
    """What to do with a call when the engine's process may have ended by itself."""
    if ended is None or policy == "always":
        return "go"  # under `always` the engine replaces its process by itself
    if policy == "reported" and is_reported:
        return "renew"
    return "refuse"


def overdrawn(budget: Budget, agent_id: str, turns: int, tokens: int) -> BudgetSpent | None:
    """The error of a session that has used up its turns or tokens; none if it may ask for another turn."""
    if budget.max_turns is not None and turns >= budget.max_turns:
        return BudgetSpent(agent_id, "turns", budget.max_turns, turns)
    if budget.max_tokens is not None and tokens >= budget.max_tokens:
        return BudgetSpent(agent_id, "tokens", budget.max_tokens, tokens)
    return None


def wants_summary(why: Why, *, is_busy: bool, turns: int, is_on: bool, can: bool) -> bool:
    """Whether a session is asked for a summary before it ends.

    A session without turns has nothing to sum up; closing an idle one should not wait for a turn.
    """
    if not is_on or not can or turns == 0:
        return False
    return why == "shutdown" or (why == "close" and is_busy)


def summary_text(result: TurnResult | None) -> str | None:
    """The text of the summary turn, if that turn was completed."""
    if result is None or result.status != "completed" or not result.text.strip():
        return None
    return result.text


def final_status(why: Why, *, is_summary_wanted: bool, summary: str | None) -> Status:
    return "interrupted" if why == "lost" or (is_summary_wanted and summary is None) else "closed"


def outcome(end: TurnResult | LanewayError) -> str:
    """How a turn ended, in a word or two for the audit log."""
    if isinstance(end, LanewayError):
        return type(end).__name__
    if end.stopped_by is not None:
        return f"{end.status} by {end.stopped_by}"
    return f"{end.status}: {end.failure.kind}" if end.failure is not None else end.status


def matches(record: Record, agent_id: str | None, thread_id: str | None, identity: str | None) -> bool:
    """Whether a record has this agent id, thread id or identity, whichever is given."""
    if agent_id is not None:
        return record.agent_id == agent_id
    if thread_id is not None:
        return record.thread_id == thread_id
    return record.identity == identity
