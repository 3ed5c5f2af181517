"""Checks a request for a job and makes a `JobSpec` and a queued `Job` of it. Bad input is one sentence.

Looks at folders, starts nothing and changes nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from laneway.base.errors import BinaryError, TreeRefused, UsageError
from laneway.base.plain import code_label
from laneway.jobs.model import (
    DEFAULT_RUN_EXPIRY_S,
    DEFAULT_STALL_S,
    DEFAULT_TIMEOUT_S,
    HERE,
    MAX_PROMPT_CHARS,
    TITLE_CHARS,
    Isolation,
    Job,
    JobSpec,
    Mode,
    Sandbox,
)

SANDBOXES: tuple[Sandbox, ...] = ("read-only", "workspace-write", "danger-full-access")
"""From the narrowest to the widest."""
THIS_NODE, ANY_NODE = "local", "any"
"""The name of the machine that we run on, and whichever can start a job soonest."""
MAX_TAGS, MAX_TAG_CHARS = 20, 64
MAX_SCOPES, MAX_SCOPE_CHARS = 200, 1024
MAX_RETRIES = 5
MAX_PRIORITY = 100
MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000
MIN_TIMEOUT_MS = 1000


class JobDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """What a request that does not say otherwise gets, and what no request may exceed."""

    cwd: Path
    codex: str
    codex_home: str
    codex_problem: str = ""
    """Why there is no Codex, where jobs may run on other machines all the same."""
    work_near: Path
    """A folder on the file system where layers and copies of work trees will be."""
    max_sandbox: Sandbox = "workspace-write"
    is_read_only: bool = False
    """The server was started with `--readonly`."""
    model: str | None = None
    effort: str | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    stall_s: float = DEFAULT_STALL_S
    run_expiry_s: float = DEFAULT_RUN_EXPIRY_S
    notify: bool = False
    """Whether the identity that spawns a job is sent team mail when it ends."""


class SpawnRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The arguments of `codex_spawn`, by their types."""

    prompt: str
    cwd: str | None = None
    sandbox: Sandbox = "read-only"
    model: str | None = None
    effort: str | None = None
    output_schema: dict[str, Any] | None = None
    timeout_ms: int | None = None
    stall_ms: int | None = None
    scope: tuple[str, ...] = ()
    priority: int = 0
    retries: int = 0
    isolation: Isolation = "shared"
    tags: tuple[str, ...] = ()
    token_budget: int | None = None
    run: str | None = None
    require_clean: bool = False
    overlap: str = "queue"
    node: str | None = None


class Checked(msgspec.Struct, frozen=True):
    """A request that may be queued."""

    spec: JobSpec
    tree: str
    """The root of the work tree; empty for a read job."""


def checked(request: SpawnRequest, defaults: JobDefaults, *, thread_id: str | None = None) -> Checked:
    """`UsageError` with one sentence for anything that cannot be done."""
    if request.node not in (None, *HERE):
        raise UsageError(f"There is no machine {code_label(request.node or '')}: jobs run on this one only.")
    if defaults.codex_problem:
        raise BinaryError(defaults.codex_problem)
    cwd = _folder(request.cwd, defaults)
    check_values(request, defaults)
    if request.output_schema is not None:
        from laneway.codex.exec.schema import BadSchema, check_schema  # only where a job has a schema

        try:
            check_schema(request.output_schema)
        except BadSchema as problem:
            raise UsageError(f"The output schema cannot be used: {problem}") from problem
    tree = "" if request.sandbox == "read-only" else _tree(cwd)
    spec = JobSpec(
        prompt=request.prompt,
        cwd=cwd,
        codex=defaults.codex,
        codex_home=defaults.codex_home,
        sandbox=request.sandbox,
        model=request.model or defaults.model,
        effort=request.effort or defaults.effort,
        output_schema=request.output_schema,
        timeout_s=defaults.timeout_s if request.timeout_ms is None else request.timeout_ms / 1000,
        stall_s=defaults.stall_s if request.stall_ms is None else request.stall_ms / 1000,
        scope=_scope(request.scope, tree),
        retries=request.retries,
        isolation=_isolation(request, tree, defaults),
        token_budget=request.token_budget,
        require_clean=request.require_clean,
        run_expiry_s=defaults.run_expiry_s,
        thread_id=thread_id,
    )
    _check_room(spec)
    return Checked(spec, tree)


def _check_room(spec: JobSpec) -> None:
    from laneway.jobs.preparation import compose_prompt

    # Only long ones: nobody should wait for the contract of every job.
    if len(spec.prompt) > MAX_PROMPT_CHARS // 2 and len(compose_prompt(spec)) > MAX_PROMPT_CHARS:
        raise UsageError(
            f"The prompt has {len(spec.prompt):,} characters; with the worker's contract that is more than"
            f" the {MAX_PROMPT_CHARS:,} that Codex takes."
        )


def queued(checked_request: Checked, request: SpawnRequest, job_id: str, owner: str, **more: Any) -> Job:
    """The row of a new job."""
    spec = checked_request.spec
    return row(
        request,
        job_id=job_id,
        owner=owner,
        mode=spec.mode,
        tree=checked_request.tree,
        run_id=request.run or "",
        scope=spec.scope,
        cwd=spec.cwd,
        node=request.node or "",
        **more,
    )


def row(request: SpawnRequest, **more: Any) -> Job:
    """A queued job, as far as the request says."""
    return Job(
        number=0,
        status="queued",
        priority=request.priority,
        overlaps=request.overlap == "allow",
        isolation=request.isolation,
        tags=request.tags,
        title=title_of(request.prompt),
        **more,
    )


def title_of(prompt: str) -> str:
    return prompt.strip().splitlines()[0][:TITLE_CHARS]


def mode_of(request: SpawnRequest) -> Mode:
    return "read" if request.sandbox == "read-only" else "write"


def check_prompt(prompt: str) -> None:
    if not prompt.strip():
        raise UsageError("The prompt is empty: say what the job is to do.")
    if len(prompt) > MAX_PROMPT_CHARS:
        raise UsageError(
            f"The prompt has {len(prompt):,} characters; Codex takes {MAX_PROMPT_CHARS:,} at most."
        )


def check_values(request: SpawnRequest, defaults: JobDefaults) -> None:
    """What can be said without looking at a folder."""
    check_prompt(request.prompt)
    _check_sandbox(request.sandbox, defaults)
    _check_numbers(request)


def real_path(named: str | None, defaults: JobDefaults) -> str:
    """The folder that a caller means, without links, whether it is there or not."""
    path = os.path.join(defaults.cwd, os.path.expanduser(named or ""))
    try:
        return os.path.realpath(path)
    except ValueError:  # a NUL
        return path


def _folder(named: str | None, defaults: JobDefaults) -> str:
    real = real_path(named, defaults)
    if "\0" in real or not os.path.isdir(real):
        raise UsageError(f"There is no folder {code_label(real)}: cwd must name one on this machine.")
    return real


def _check_sandbox(sandbox: Sandbox, defaults: JobDefaults) -> None:
    if defaults.is_read_only and sandbox != "read-only":
        raise UsageError("This server was started with --readonly: its jobs may only read.")
    if SANDBOXES.index(sandbox) > SANDBOXES.index(defaults.max_sandbox):
        raise UsageError(
            f"Jobs may go as far as {defaults.max_sandbox}, not {sandbox}: the setting jobs.max_sandbox"
            " of the user's own settings decides."
        )


def _check_numbers(request: SpawnRequest) -> None:
    for name, value, least, most in (
        ("timeoutMs", request.timeout_ms, MIN_TIMEOUT_MS, MAX_TIMEOUT_MS),
        ("stallMs", request.stall_ms, MIN_TIMEOUT_MS, MAX_TIMEOUT_MS),
        ("retries", request.retries, 0, MAX_RETRIES),
        ("priority", request.priority, -MAX_PRIORITY, MAX_PRIORITY),
        ("tokenBudget", request.token_budget, 1, 10**12),
    ):
        if value is not None and not least <= value <= most:
            meant = " (one second to 24 hours)" if least == MIN_TIMEOUT_MS else ""
            raise UsageError(f"{name} must be from {least} to {most}{meant}, not {value}.")
    if len(request.tags) > MAX_TAGS or any(not 0 < len(tag) <= MAX_TAG_CHARS for tag in request.tags):
        raise UsageError(f"A job has at most {MAX_TAGS} tags, each of 1 to {MAX_TAG_CHARS} characters.")


def _tree(cwd: str) -> str:
    """The top of the work tree, as git says: a bare repository may lie in the work tree of another one."""
    from laneway.jobs.snapshots.work_tree import NO_REPOSITORY, work_tree  # only where a job may write

    try:
        return str(work_tree(Path(cwd)).top)
    except TreeRefused as problem:
        text = str(problem)
        if text.endswith(NO_REPOSITORY):
            text = text.removesuffix(".") + (
                ", which a job that may write needs: run `git init` there, or ask for a read-only job."
            )
        raise UsageError(text) from problem


def _scope(scopes: tuple[str, ...], tree: str) -> tuple[str, ...]:
    if scopes and not tree:
        raise UsageError("A read-only job has no scope: leave it out.")
    if len(scopes) > MAX_SCOPES or any(len(scope) > MAX_SCOPE_CHARS for scope in scopes):
        raise UsageError(f"A scope has at most {MAX_SCOPES} paths of at most {MAX_SCOPE_CHARS} characters.")
    return tuple(_relative(scope, tree) for scope in scopes)


def _relative(scope: str, tree: str) -> str:
    """The path or glob relative to the tree."""
    path = os.path.normpath(os.path.join(tree, scope)) if scope.strip() else ""
    if "\0" in scope or not (path == tree or path.startswith(tree.rstrip("/") + "/")):
        raise UsageError(f"The scope {code_label(scope)} is outside of the work tree {code_label(tree)}.")
    relative = PurePosixPath(path).relative_to(tree)
    return "**" if str(relative) == "." else str(relative)


def _isolation(request: SpawnRequest, tree: str, defaults: JobDefaults) -> Isolation:
    if request.isolation == "shared":
        return "shared"
    if not tree:
        raise UsageError("A read-only job needs no isolation: leave it out.")
    if request.isolation == "overlay" and sys.platform != "linux":
        raise UsageError("isolation overlay needs Linux: use worktree, or shared.")
    from laneway.jobs.isolation.isolated import why_not  # only where a job asks for it

    problem = why_not(request.isolation, Path(tree), defaults.work_near, defaults.codex_home)
    if problem:
        raise UsageError(problem)
    return request.isolation
