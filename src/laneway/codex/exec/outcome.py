"""Whether a worker succeeded: from how its process ended, its events, its standard error and its output.

Pure. Success is exit 0, a completed turn of the right thread, and output that satisfies the schema. What
somebody else decided (a cancel, a limit of time) is not told here.
"""

from __future__ import annotations

import signal
from typing import Literal, TypeAlias

import msgspec

from laneway.base.plain import label
from laneway.codex.exec.events import RECONNECTING, WorkerState
from laneway.codex.exec.stderr import launch_fault

FaultKind: TypeAlias = Literal["launch", "turn", "no_turn", "exit", "schema", "budget", "empty"]

MAX_SHOWN_CHARS = 500
"""Of an error of Codex or of the model's provider."""


class Verdict(msgspec.Struct, frozen=True):
    kind: FaultKind | None = None
    """None: the worker succeeded."""
    reason: str = ""
    """What to do about it, for programs: see `LaunchFault.reason` and `turn_reason`."""
    text: str = ""
    """A sentence."""

    @property
    def has_succeeded(self) -> bool:
        return self.kind is None


def verdict(
    returncode: int,
    state: WorkerState,
    stderr_tail: str,
    *,
    thread_id: str | None = None,
    schema_problem: str | None = None,
    budget: int | None = None,
) -> Verdict:
    """`thread_id` was to be resumed; `budget`: it was ended for having used more than so many tokens."""
    if budget is not None:
        return Verdict("budget", "tokens", f"The job used more than its {budget} tokens.")
    if thread_id is not None and state.thread_id and state.thread_id != thread_id.lower():
        return Verdict("launch", "thread", "Codex does not know the thread, and began another one.")
    match state.turn:
        case "failed":
            return Verdict("turn", turn_reason(state.last_error), _failed(state.last_error))
        case "none":
            return _not_begun(returncode, stderr_tail)
        case "running":
            return _unfinished(returncode, state)
        case "completed":
            return _completed(returncode, state, schema_problem)


def _not_begun(returncode: int, stderr_tail: str) -> Verdict:
    fault = launch_fault(stderr_tail)
    if fault is not None and returncode > 0:
        return Verdict("launch", fault.reason, fault.text)
    if returncode == 0:
        return Verdict("no_turn", "", "Codex ended without having begun a turn.")
    return Verdict("exit", _exit_reason(returncode), f"Codex {_ended(returncode)} before its turn began.")


def _unfinished(returncode: int, state: WorkerState) -> Verdict:
    error = f": {_clause(state.last_error)}" if state.last_error else ""
    if returncode == 0:  # 0.104 does so after SIGINT
        return Verdict(
            "no_turn", turn_reason(state.last_error), f"Codex ended without finishing its turn{error}."
        )
    return Verdict("exit", _exit_reason(returncode), f"Codex {_ended(returncode)} within its turn{error}.")


def _completed(returncode: int, state: WorkerState, schema_problem: str | None) -> Verdict:
    if returncode != 0:
        text = f"Codex completed its turn, but {_ended(returncode)}."
        return Verdict("exit", _exit_reason(returncode), text)
    if schema_problem is not None:
        return Verdict("schema", "output", f"The output does not satisfy the schema: {schema_problem}")
    if not state.has_acted:  # a provider over its limit was seen to do this
        return Verdict("empty", "", "The turn completed, but the model said and did nothing.")
    return Verdict()


def _ended(returncode: int) -> str:
    if returncode >= 0:
        return f"exited with {returncode}"
    try:
        return f"was ended by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"was ended by signal {-returncode}"


def _exit_reason(returncode: int) -> str:
    return "signal" if returncode < 0 else "code"


def _failed(error: str) -> str:
    return f"The turn failed: {_clause(error)}." if error else "The turn failed, and Codex did not say why."


def _clause(error: str) -> str:
    return label(error.strip().rstrip("."), MAX_SHOWN_CHARS)


_REASONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("login", ("401 Unauthorized", "Missing environment variable", "not logged in", "refresh token")),
    ("limit", ("429 Too Many Requests", "usage limit", "rate limit", "quota")),
    ("context", ("context window", "context_length_exceeded")),
    ("network", (RECONNECTING, "error sending request", "failed to lookup address", "stream disconnected")),
    ("provider", ("high demand", "at capacity", "overloaded", "unexpected status 5")),
    ("request", ("unexpected status 4",)),
)


def turn_reason(error: str) -> str:
    """Of what a turn failed, by Codex's text: login, limit, context, network, provider, request, other."""
    folded = error.casefold()
    return next(
        (name for name, marks in _REASONS if any(mark.casefold() in folded for mark in marks)), "other"
    )
