"""Whether a worker succeeded: every way in which it may not have."""

from __future__ import annotations

from typing import Any

import pytest

from laneway.codex.exec.events import WorkerState
from laneway.codex.exec.outcome import Verdict, turn_reason, verdict

DONE = WorkerState(thread_id="t", turn="completed", last_message="x", has_acted=True)
SILENT = WorkerState(thread_id="t", turn="completed")
RUNNING = WorkerState(thread_id="t", turn="running", has_acted=True)
FAILED = WorkerState(thread_id="t", turn="failed", last_error="no\nluck.")
NOTHING = WorkerState()


@pytest.mark.covers("J-workers.8")
@pytest.mark.parametrize(
    ("returncode", "state", "stderr", "more", "fault"),
    [
        (0, DONE, "", {}, Verdict()),
        (0, DONE, "Error: of a command that was refused", {"thread_id": "T"}, Verdict()),
        (1, DONE, "", {}, Verdict("exit", "code", "Codex completed its turn, but exited with 1.")),
        (
            -9,
            DONE,
            "",
            {},
            Verdict("exit", "signal", "Codex completed its turn, but was ended by SIGKILL."),
        ),
        (
            0,
            DONE,
            "",
            {"schema_problem": "$ needs a."},
            Verdict("schema", "output", "The output does not satisfy the schema: $ needs a."),
        ),
        (
            0,
            SILENT,
            "",
            {},
            Verdict("empty", "", "The turn completed, but the model said and did nothing."),
        ),
        (1, FAILED, "", {}, Verdict("turn", "other", "The turn failed: no\\nluck.")),
        (0, FAILED, "", {}, Verdict("turn", "other", "The turn failed: no\\nluck.")),
        (
            1,
            WorkerState(turn="failed"),
            "",
            {},
            Verdict("turn", "other", "The turn failed, and Codex did not say why."),
        ),
        (1, RUNNING, "Error: x", {}, Verdict("exit", "code", "Codex exited with 1 within its turn.")),
        (-15, RUNNING, "", {}, Verdict("exit", "signal", "Codex was ended by SIGTERM within its turn.")),
        (-99, RUNNING, "", {}, Verdict("exit", "signal", "Codex was ended by signal 99 within its turn.")),
        (0, RUNNING, "", {}, Verdict("no_turn", "other", "Codex ended without finishing its turn.")),
        (0, NOTHING, "", {}, Verdict("no_turn", "", "Codex ended without having begun a turn.")),
        (1, NOTHING, "", {}, Verdict("exit", "code", "Codex exited with 1 before its turn began.")),
        (1, NOTHING, "Error: x", {}, Verdict("launch", "other", "Codex did not start: x.")),
        (
            -9,
            NOTHING,
            "Error: x",
            {},
            Verdict("exit", "signal", "Codex was ended by SIGKILL before its turn began."),
        ),
        (
            0,
            DONE,
            "",
            {"thread_id": "other"},
            Verdict("launch", "thread", "Codex does not know the thread, and began another one."),
        ),
        (1, RUNNING, "", {"budget": 5}, Verdict("budget", "tokens", "The job used more than its 5 tokens.")),
    ],
)
def test_how_a_worker_ended(
    returncode: int, state: WorkerState, stderr: str, more: dict[str, Any], fault: Verdict
) -> None:
    """One kind, one sentence; success is exit 0, a completed turn, and output that satisfies the schema."""
    found = verdict(returncode, state, stderr, **more)
    assert found == fault
    assert found.has_succeeded == (fault.kind is None)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("unexpected status 401 Unauthorized: x", "login"),
        ("Missing environment variable: `KEY`.", "login"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "limit"),
        ("You've hit your usage limit.", "limit"),
        ("Your input exceeds the context window of this model.", "context"),
        ("stream disconnected before completion: stream closed before response.completed", "network"),
        ("We're currently experiencing high demand, which may cause temporary errors.", "provider"),
        ("unexpected status 404 Not Found: x", "request"),
        ("", "other"),
    ],
)
def test_of_what_a_turn_failed(error: str, reason: str) -> None:
    """For programs, which may try some of them again."""
    assert turn_reason(error) == reason
