"""Background jobs as values: what a caller asked for, where a job stands, how it ended; runs and borders.

Pure data. A *run* is all write jobs in one work tree until it is accepted or rolled back; a *border* is a
snapshot of that tree at the start or the end of a write job.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.prepare import prepare
from laneway.jobs.snapshots.model import Snapshot

Mode: TypeAlias = Literal["read", "write"]
Sandbox: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]
Isolation: TypeAlias = Literal["shared", "overlay", "worktree"]
Status: TypeAlias = Literal[
    "queued",
    "starting",
    "running",
    "cancelling",
    "succeeded",
    "failed",
    "cancelled",
    "timed_out",
    "lost",
]
RunState: TypeAlias = Literal["open", "accepted", "rolled_back", "expired"]

ACTIVE: tuple[Status, ...] = ("starting", "running", "cancelling")
"""Statuses of a job that has a supervisor, or had one that died."""
UNFINISHED: tuple[Status, ...] = ("queued", *ACTIVE)
ENDED: tuple[Status, ...] = ("succeeded", "failed", "cancelled", "timed_out", "lost")

HERE = ("", "local", "any")
"""Names of the machine that a job is on, if it is this one. Jobs on others are rows of the ledger, too."""

MAX_PROMPT_CHARS = 1_048_576
"""Codex refuses a longer one after it has started."""
DEFAULT_TIMEOUT_S = 60 * 60.0
DEFAULT_STALL_S = 15 * 60.0
"""Without an item. A reconnect message is no sign of life: Codex repeats it for ever."""
DEFAULT_RUN_EXPIRY_S = 24 * 60 * 60.0
"""After its last job a run without conflicts closes by itself. Zero: never."""
TITLE_CHARS = 120
"""Of the prompt's first line, in lists."""


class JobLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs of one user may run at once, over all Laneway processes."""

    read: int = 8
    write: int = 2
    total: int = 10

    def of(self, mode: Mode) -> int:
        return self.read if mode == "read" else self.write


@prepare
class JobSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A checked request for a job. It is kept in the job's folder; the prompt may be a megabyte."""

    prompt: str
    cwd: str
    """Absolute, links resolved."""
    codex: str
    """The path of the Codex executable."""
    codex_home: str
    sandbox: Sandbox = "read-only"
    model: str | None = None
    effort: str | None = None
    output_schema: dict[str, Any] | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    stall_s: float = DEFAULT_STALL_S
    scope: tuple[str, ...] = ()
    """Paths and globs relative to the work tree; empty: anything."""
    retries: int = 0
    isolation: Isolation = "shared"
    token_budget: int | None = None
    require_clean: bool = False
    run_expiry_s: float = DEFAULT_RUN_EXPIRY_S
    thread_id: str | None = None
    """The thread of another job that this one continues."""
    continues: str = ""
    """The job whose thread it is, where that had none yet when this one was asked for."""
    notify: str | None = None
    """The identity that gets team mail when the job has ended."""
    notify_team: str | None = None

    @property
    def mode(self) -> Mode:
        return "read" if self.sandbox == "read-only" else "write"


@prepare
class JobUsage(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Tokens of one job, without those of the thread that it continued."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0


@prepare
class JobFailure(msgspec.Struct, frozen=True):
    """Why a job did not succeed: a kind for programs and a sentence for people."""

    kind: str
    """`exit`, `turn`, `schema`, `launch`, `budget`, `wall`, `stall`, `lost`, `disk`, `merge` …"""
    text: str


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the ledger."""

    job_id: str
    number: int
    """Grows with each job: its age."""
    owner: str
    mode: Mode
    status: Status
    tree: str = ""
    """The root of the work tree of a write job; empty for a read job."""
    run_id: str = ""
    priority: int = 0
    scope: tuple[str, ...] = ()
    overlaps: bool = False
    """Whether it may run beside jobs whose scopes intersect its own."""
    isolation: Isolation = "shared"
    after: str = ""
    """The job that must have ended before this one starts."""
    tags: tuple[str, ...] = ()
    title: str = ""
    cwd: str = ""
    node: str = ""
    attempt: int = 0
    thread_id: str = ""
    activity: str = ""
    tokens: int = 0
    created_at: float = 0.0
    """Seconds since 1970, as are all times here."""
    started_at: float = 0.0
    ended_at: float = 0.0
    ended_number: int = 0
    """Grows with each job that ends; zero while it has not."""
    failure: JobFailure | None = None
    is_inconsistent: bool = False
    """It was ended from outside while it may have been writing a file."""

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED

    @property
    def is_elsewhere(self) -> bool:
        """Whether it is on another machine: nothing but its row, and what was asked for, is here."""
        return self.node not in HERE


class Run(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    tree: str
    state: RunState
    baseline: str
    """A snapshot, encoded."""
    head: str
    porcelain: str
    """What `git status --porcelain` said when the run began, cut."""
    created_at: float
    closed_at: float = 0.0


class Border(msgspec.Struct, frozen=True, kw_only=True):
    """The tree at one moment, and which write jobs were active from then on."""

    number: int
    run_id: str
    at: float
    snapshot: Snapshot
    active: tuple[str, ...]


@prepare
class ModifiedFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A path that is credited to a job, with the evidence for it."""

    path: str
    certainty: str
    change: str = ""
    """`added`, `modified`, `deleted`, `mode`."""


@prepare
class Conflict(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    path: str
    kind: str
    """`overlap`, `sequence` or `possible`."""
    jobs: tuple[str, ...]
    is_resolved: bool = False

    @property
    def blocks(self) -> bool:
        """Whether the run cannot be accepted because of it."""
        return self.kind == "overlap" and not self.is_resolved


@prepare
class Result(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a job has produced; kept in its folder when it has ended, made anew while it runs."""

    last_message: str = ""
    structured_output: Any = None
    has_structured_output: bool = False
    modified_files: tuple[ModifiedFile, ...] = ()
    only_reported: tuple[str, ...] = ()
    """Paths that the worker says it modified, and of which we saw no change."""
    not_reported: tuple[str, ...] = ()
    """Paths that it modified and did not report."""
    outside_scope: tuple[str, ...] = ()
    usage: JobUsage = JobUsage()
    failure: JobFailure | None = None
    warnings: tuple[str, ...] = ()
    breaches: tuple[str, ...] = ()
    """What the worker's contract forbids and the repository shows: commits, moved references, stashes."""
