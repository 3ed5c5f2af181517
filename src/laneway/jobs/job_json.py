"""Jobs as JSON, for the tools and for `--json` on the command line. Pure; short, for models pay for it."""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.plain import label
from laneway.jobs.model import Conflict, Job, Result

ACTIVITY_CHARS = 60
ERROR_CHARS = 80
"""In a status, which is polled."""
TITLE_CHARS = 60


UNREACHABLE = "unreachable"
"""Shown in place of the status of a job whose machine cannot be asked: nobody knows how it stands."""


def status_json(job: Job, now: float, *, position: int = 0, is_unreachable: bool = False) -> dict[str, Any]:
    """Where a job stands; always under 300 bytes."""
    facts: dict[str, Any] = {"jobId": job.job_id, "status": job.status}
    if is_unreachable:
        facts |= {"status": UNREACHABLE, "lastStatus": job.status}
    if position:
        facts["position"] = position
    if job.started_at:
        facts["elapsedMs"] = round(max(0.0, (job.ended_at or now) - job.started_at) * 1000)
    if job.tokens:
        facts["tokens"] = job.tokens
    if job.activity and not job.has_ended:
        facts["activity"] = label(job.activity, ACTIVITY_CHARS)
    if job.failure is not None:
        facts["error"] = f"{job.failure.kind}: {label(job.failure.text, ERROR_CHARS)}"
    return facts


def row_json(job: Job, now: float, **more: Any) -> dict[str, Any]:
    """A job in a list."""
    facts = status_json(job, now, **more)
    facts |= {"title": label(job.title, TITLE_CHARS), "mode": job.mode}
    for name, value in (
        ("run", job.run_id),
        ("tags", list(job.tags)),
        ("node", job.node),
        ("after", job.after),
    ):
        if value:
            facts[name] = value
    return facts


def result_json(job: Job, result: Result, conflicts: tuple[Conflict, ...], now: float) -> dict[str, Any]:
    """Everything that a job produced."""
    facts = status_json(job, now)
    facts.pop("error", None)
    facts |= {"isPartial": not job.has_ended, "lastMessage": result.last_message}
    if result.has_structured_output:
        facts["structuredOutput"] = result.structured_output
    more = msgspec.to_builtins(result)
    for name in (
        "modifiedFiles",
        "onlyReported",
        "notReported",
        "outsideScope",
        "warnings",
        "breaches",
        "usage",
    ):
        if more.get(name):
            facts[name] = more[name]
    if job.failure is not None:
        facts["error"] = {"kind": job.failure.kind, "text": job.failure.text}
    if job.run_id:
        facts["run"] = job.run_id
    if conflicts:
        facts["conflicts"] = msgspec.to_builtins(conflicts)
    if job.is_inconsistent:
        facts["isInconsistent"] = True
    if job.thread_id:
        facts["threadId"] = job.thread_id
    return facts
