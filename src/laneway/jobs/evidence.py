"""Evidence of a job's edits, read back from its event log: it still runs, or its supervisor died.

Blocking.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laneway.base.errors import LanewayError
from laneway.jobs import event_log
from laneway.jobs.attribution import EditWindow, JobTraces
from laneway.jobs.model import Job
from laneway.jobs.places import JobsLayout
from laneway.jobs.worker import relative_to
from laneway.store.stamps import parse

HARMLESS = frozenset({"web_search"})
"""Tools that change no files."""


def shown_so_far(places: JobsLayout, job: Job, merged: tuple[str, ...]) -> JobTraces:
    """Of a job that has written down no evidence yet. `merged` are paths of the merge of its own layer."""
    if job.isolation != "shared":
        merge = EditWindow(start=job.started_at, paths=merged, is_merge=True)
        return JobTraces(windows=(merge,) if merged else (), scope=job.scope)
    try:
        windows = windows_in(places.job(job.job_id).events, job.job_id, job.tree)
    except LanewayError:
        windows = (EditWindow(start=job.started_at),)  # the log is damaged: it may have done anything
    return JobTraces(windows=windows, scope=job.scope)


def windows_in(path: Path, job_id: str, tree: str) -> tuple[EditWindow, ...]:
    """When the worker may have changed files. From its last event on it may have: that one has no end."""
    calls: dict[str, EditWindow] = {}
    last_at = 0.0
    cursor: str | None = None
    while True:
        page = event_log.read(path, job_id, cursor, is_full=True)
        for event in page.events:
            when = parse(event["timestamp"])
            last_at = when.timestamp() if when is not None else last_at
            if event["type"] in ("tool_call", "tool_result") and isinstance(event["content"], dict):
                _note(calls, event["type"], event["content"], last_at, tree)
        if page.is_at_end or not page.events:
            break
        cursor = page.next_cursor
    after = (EditWindow(start=last_at),) if last_at else ()
    return (*calls.values(), *after)


def _note(calls: dict[str, EditWindow], kind: str, content: dict[str, Any], at: float, tree: str) -> None:
    call_id, tool = str(content.get("id", "")), content.get("tool")
    if tool in HARMLESS:
        return
    begun = calls.get(call_id)
    start = begun.start if begun is not None else at
    paths: tuple[str, ...] = ()
    if kind == "tool_result" and tool == "patch" and content.get("status") == "completed":
        named = (change.get("path") for change in content.get("changes") or () if isinstance(change, dict))
        paths = tuple(path for name in named if isinstance(name, str) and (path := relative_to(tree, name)))
    text = str(content.get("command", "")) if tool == "command" else ""
    calls[call_id] = EditWindow(
        start=start, end=at if kind == "tool_result" else None, text=text, paths=paths
    )
