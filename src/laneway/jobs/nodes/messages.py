"""Messages between two machines about jobs: parameters and answers of each call, and errors.

Pure. No time of one machine's clock is sent to another one: only how long ago something was. `result`,
`events`, `cancel` and `resolve` take and answer what the tool of that name does.
"""

from __future__ import annotations

from typing import Any

import msgspec

from laneway.base.errors import (
    BadCursor,
    BinaryError,
    ContentGone,
    JobUnknown,
    LanewayError,
    NodeUnreachable,
    StoreError,
    TreeRefused,
    UsageError,
)
from laneway.base.plain import label
from laneway.base.prepare import prepare
from laneway.jobs.model import Job, JobFailure, Mode, Status
from laneway.jobs.requests import SpawnRequest

PROTOCOL = 1
NODE_ERROR = -32010
"""The code of our own errors in JSON-RPC; the data is a `NodeFault`."""
MAX_ERROR_CHARS = 2000


@prepare
class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """Who a machine is, and what it has room for: the answer to `hello`, which takes nothing."""

    protocol: int
    version: str
    home: str
    """The id of its ledger: a name may lead to another machine tomorrow."""
    repositories: tuple[str, ...]
    free: dict[Mode, int]
    """Places, less the jobs that wait for one; below zero if more of them wait."""
    places: dict[Mode, int] = {}
    """How many jobs of a mode may run at once."""


@prepare
class NodeSpawn(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Start a job, unless there is one of this id. The near side has made the id: it may ask again."""

    job_id: str
    repository: str
    path: str
    """Of the folder, relative to the repository."""
    request: SpawnRequest
    cancel: str = ""
    """`soft` or `force`: only so that no late copy of this call starts it."""


@prepare
class NodeSend(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Continue the thread of a job, unless there is a job of this id."""

    job_id: str
    earlier: str
    prompt: str
    cancel: str = ""


@prepare
class NodeWatch(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Answer when one of these jobs has another status than this, or when the time is up."""

    jobs: dict[str, str]
    timeout_ms: int = 0
    watcher: str = ""
    """Whose watch: a new one ends the one before."""


@prepare
class NodeJob(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Where a job stands on its machine."""

    job_id: str
    status: Status
    position: int = 0
    run_id: str = ""
    thread_id: str = ""
    attempt: int = 0
    activity: str = ""
    tokens: int = 0
    started_ago_s: float | None = None
    ended_ago_s: float | None = None
    failure: JobFailure | None = None
    is_inconsistent: bool = False


@prepare
class NodeJobs(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `spawn`, `send` and `watch`."""

    home: str
    jobs: tuple[NodeJob, ...] = ()
    unknown: tuple[str, ...] = ()
    """Ids of which this machine has no job."""


class _EventsAnswer(msgspec.Struct):
    events: list[dict[str, Any]]
    nextCursor: str
    done: bool
    status: Status


class _ResultAnswer(msgspec.Struct):
    jobId: str
    status: Status
    isPartial: bool
    lastMessage: str


class _ResolveAnswer(msgspec.Struct):
    run: str
    jobs: list[dict[str, Any]] = []


_ANSWERS: dict[str, type] = {"events": _EventsAnswer, "result": _ResultAnswer, "resolve": _ResolveAnswer}


def answer_of(method: str, answer: Any) -> dict[str, Any]:
    """What a machine answered to a call that is a tool's, as it is; `ValidationError` if it is none."""
    msgspec.convert(answer, _ANSWERS[method])
    checked: dict[str, Any] = answer
    return checked


def node_job(job: Job, now: float, position: int = 0) -> NodeJob:
    return NodeJob(
        job_id=job.job_id,
        status=job.status,
        position=position,
        run_id=job.run_id,
        thread_id=job.thread_id,
        attempt=job.attempt,
        activity=job.activity,
        tokens=job.tokens,
        started_ago_s=max(0.0, now - job.started_at) if job.started_at else None,
        ended_ago_s=max(0.0, now - job.ended_at) if job.ended_at else None,
        failure=job.failure,
        is_inconsistent=job.is_inconsistent,
    )


# ── errors ─────────────────────────────────────────────────────────────────


@prepare
class NodeFault(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error of ours on its way to the other machine."""

    kind: str
    text: str
    job_id: str = ""


_KINDS: dict[str, type[LanewayError]] = {
    "usage": UsageError,
    "tree_refused": TreeRefused,
    "store": StoreError,
    "binary": BinaryError,
}


def fault_of(error: LanewayError) -> NodeFault:
    if isinstance(error, JobUnknown):
        return NodeFault(kind="job_unknown", text=str(error), job_id=error.job_id)
    if isinstance(error, BadCursor):
        return NodeFault(kind="bad_cursor", text=str(error))
    if isinstance(error, NodeUnreachable):
        return NodeFault(kind="node_unreachable", text=error.why)
    kind = next((kind for kind, each in _KINDS.items() if isinstance(error, each)), "other")
    if isinstance(error, ContentGone):
        kind = "tree_refused"
    return NodeFault(kind=kind, text=str(error))


def error_of(fault: Any, node: str) -> LanewayError:
    """The error that the machine `node` answered with, whatever it sent.

    Without a name it has only been carried here, and says itself where it comes from.
    """
    try:
        known = msgspec.convert(fault, NodeFault)
    except msgspec.ValidationError:
        return LanewayError(f"On {node} something failed: its log says what.")
    match known.kind:
        case "job_unknown":
            return JobUnknown(known.job_id)
        case "bad_cursor":
            return BadCursor()
        case "node_unreachable":
            return NodeUnreachable(node, label(known.text, MAX_ERROR_CHARS))
        case kind:
            text = label(known.text, MAX_ERROR_CHARS)
            return _KINDS.get(kind, LanewayError)(f"{node}: {text}" if node else text)
