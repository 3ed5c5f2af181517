"""Jobs as JSON: small, whatever a worker says of itself."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.jobs.job_json import row_json, status_json
from laneway.jobs.model import ENDED, Job, JobFailure, Status

MAX_STATUS_BYTES = 300
LETTERS = ("🏴", '"', "\x1b[2J", "\\", "é", "\u202e", "\0", "\n")
DAY_S = 24 * 60 * 60.0


def job(status: Status, text: str) -> Job:
    has_ended = status in ENDED
    return Job(
        job_id="job-0123456789abcdef",
        number=1,
        owner="local",
        mode="write",
        status=status,
        title=text,
        activity="" if has_ended else text,
        tokens=10**12,
        started_at=1.0,
        ended_at=DAY_S if has_ended else 0.0,
        failure=JobFailure("no_turn", text) if has_ended else None,
    )


@pytest.mark.covers("J-tools.4")
@pytest.mark.parametrize("status", ["queued", "cancelling", "timed_out"])
@given(text=st.text(min_size=60) | st.sampled_from([letter * 200 for letter in LETTERS]))
def test_a_status_has_less_than_300_bytes_and_no_odd_characters(status: Status, text: str) -> None:
    """It is polled, and models pay for it."""
    answer = status_json(job(status, text), DAY_S, position=100_000 if status == "queued" else 0)
    data = msgspec.json.encode(answer)
    assert len(data) < MAX_STATUS_BYTES
    for value in answer.values():
        assert "\n" not in str(value)
        assert "\x1b" not in str(value)
    assert "\x1b" not in str(row_json(job(status, text), DAY_S))


def test_an_ordinary_status_is_not_cut() -> None:
    told = status_json(job("failed", "unexpected status 401 Unauthorized: Missing bearer."), DAY_S)
    assert told["error"] == "no_turn: unexpected status 401 Unauthorized: Missing bearer."
