"""Background jobs for an MCP server: tools, tasks, and the tick that keeps jobs going.

Joins `laneway.jobs` with the MCP front end. The modules of jobs are loaded with the first call: a server
whose client never uses them pays nothing.

    jobs = BackgroundJobs(options, settings, clock, codex_home=…, state=…, work=…)
    McpServer(…, jobs.joined(offers), tasks=jobs.tasks)
    async with jobs.running():
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from laneway.app.options import CodexChoice
from laneway.base.engines import DEFAULT_BACKEND
from laneway.base.errors import BinaryError
from laneway.base.settings import Settings
from laneway.codex import locate
from laneway.core.background import TaskSet
from laneway.core.ports import Clock
from laneway.core.tool_arguments import BadArguments, checked
from laneway.core.tools import Caller
from laneway.doors.mcp.codes import proxy_error
from laneway.doors.mcp.definitions import definition
from laneway.doors.mcp.job_instructions import JobInstructions
from laneway.doors.mcp.progress import with_progress
from laneway.doors.mcp.server import Call, Handler, Offer
from laneway.doors.mcp.tasks import TaskRequests
from laneway.doors.mcp.tool_offers import rendered
from laneway.jobs import tool_schemas
from laneway.wire.messages import INVALID_PARAMS

if TYPE_CHECKING:
    from laneway.core.tool_schema import ToolSchema
    from laneway.jobs.model import Job, JobSpec, Sandbox
    from laneway.jobs.nodes.remote_jobs import RemoteJobs
    from laneway.jobs.service import Jobs
    from laneway.jobs.tools import JobTools

NOTIFY_S = 0.25
"""Between two looks at tasks that clients are to be told of."""


def open_jobs(
    settings: Settings,
    choice: CodexChoice,
    *,
    cwd: Path,
    codex_home: str,
    state: Path | None = None,
    is_read_only: bool = False,
    needs_codex: bool = True,
    may_lack_codex: bool = False,
) -> Jobs:
    """The user's jobs, or those of a rehearsal in its folder for state.

    `BinaryError` without a Codex, unless none is needed: to look at jobs, and to start queued ones, which
    know their own. With other machines it is enough that one of them has a Codex. With `may_lack_codex` the
    error comes when a job is to be queued, as with the setting `engine` of another one.
    """
    from laneway.jobs.model import JobLimits
    from laneway.jobs.places import JobsLayout
    from laneway.jobs.requests import JobDefaults
    from laneway.jobs.service import Jobs

    codex = codex_problem = ""
    if needs_codex:
        try:
            codex = os.path.abspath(locate.find(choice.codex_bin, configured=choice.configured_bin).path)
        except BinaryError as problem:
            is_needed = settings.engine == DEFAULT_BACKEND and not may_lack_codex
            if settings.jobs_executor == "local" and not settings.jobs_nodes and is_needed:
                raise
            codex_problem = str(problem)
    places = JobsLayout.of(state)
    defaults = JobDefaults(
        cwd=cwd,
        work_near=places.jobs,
        codex=codex,
        codex_problem=codex_problem,
        codex_home=codex_home,
        max_sandbox=cast("Sandbox", settings.jobs_max_sandbox),
        is_read_only=is_read_only,
        model=settings.model,
        effort=settings.reasoning_effort,
        timeout_s=settings.jobs_timeout_ms / 1000,
        stall_s=settings.jobs_stall_ms / 1000,
        run_expiry_s=settings.jobs_run_expiry_hours * 3600.0,
        notify=settings.jobs_mail,
    )
    limits = JobLimits(read=settings.jobs_k_read, write=settings.jobs_k_write, total=settings.jobs_max_jobs)
    environment = dict(os.environ)
    if codex_home != locate.codex_home(os.environ):
        # Not the default one, which Codex makes for itself when it is not named.
        environment["CODEX_HOME"] = codex_home
    return Jobs(places, defaults, limits, environment, on_lost=_tell_lost)


def _tell_lost(spec: JobSpec, job: Job) -> None:
    """In place of the job's supervisor, which has died."""
    if spec.notify is not None:
        from laneway.app.job_mail import send_end

        send_end(spec.notify, spec.notify_team, job, "")


def remote_opener(settings: Settings) -> Callable[[Jobs], RemoteJobs]:
    """Jobs on other machines. The modules for them are loaded where there are such machines, or such jobs."""

    def opener(jobs: Jobs) -> RemoteJobs:
        from laneway.app.remote_jobs import open_remote

        return open_remote(settings, jobs)

    return opener


class BackgroundJobs:
    """The jobs of one server process."""

    def __init__(
        self,
        settings: Settings,
        choice: CodexChoice,
        clock: Clock,
        *,
        cwd: Path,
        codex_home: str,
        state: Path | None = None,
        is_read_only: bool = False,
    ) -> None:
        self._open = lambda: open_jobs(
            settings, choice, cwd=cwd, codex_home=codex_home, state=state, is_read_only=is_read_only
        )
        self._settings = settings
        self._ends_with_us = state is not None
        # Somebody's own name, not the one that a session gets for want of another.
        self._identity = settings.identity if settings.source("identity").kind != "default" else None
        self._team = settings.team if settings.source("team").kind != "default" else ""
        self._clock = clock
        self._job_tools: JobTools | None = None
        self._stack = AsyncExitStack()
        self._background = TaskSet()
        self._stopping = asyncio.Event()
        self.tasks = TaskRequests(_LateTasks(self))
        self.instructions = JobInstructions()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look after jobs while the block runs. Jobs of a rehearsal end with it, all others outlive it."""
        self._background.spawn(self._notify_clients(), "tasks of jobs")
        try:
            async with self._stack:
                if await asyncio.to_thread(self._has_left_jobs):
                    await self.loaded()  # those of an earlier server may have to be ended
                yield
                if self._ends_with_us and self._job_tools is not None:
                    await asyncio.to_thread(_end_all, self._job_tools.jobs)
        finally:
            self._stopping.set()
            await self._background.wait()

    async def loaded(self) -> JobTools:
        """The tools, with everything that they need."""
        if self._job_tools is None:
            from laneway.jobs.tools import JobTools

            open_remote = None if self._ends_with_us else remote_opener(self._settings)
            self._job_tools = JobTools(self._open, self._clock, self._identity, self._team, open_remote)
            await self._stack.enter_async_context(self._job_tools.running())
        return self._job_tools

    def _has_left_jobs(self) -> bool:
        from laneway.jobs.places import JobsLayout

        return not self._ends_with_us and JobsLayout.of().jobs.exists()

    async def _notify_clients(self) -> None:
        """Tell clients of tasks that are over."""
        while not self._stopping.is_set():
            if self._job_tools is not None and self.tasks.watched():
                await self._waits(self._job_tools).notify_ended(self.tasks)
            await self._pause()

    async def _pause(self) -> None:
        over = asyncio.Event()
        stop = self._clock.after(NOTIFY_S, over.set)
        waiting = [asyncio.ensure_future(each.wait()) for each in (over, self._stopping)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop()
            for each in waiting:
                each.cancel()

    def _waits(self, tools: JobTools) -> Any:
        from laneway.app.job_tasks import JobTasks

        return JobTasks(tools, self._clock)

    async def waits(self) -> Any:
        """The waits that are MCP tasks."""
        return self._waits(await self.loaded())

    # ── tools ──────────────────────────────────────────────────────────────

    def joined(self, offers: Iterable[Offer]) -> list[Offer]:
        """These offers and ours. Where one has the name of ours, calls with a `jobId` are ours."""
        theirs = {offer.name: offer for offer in offers}
        for schema in tool_schemas.ALL:
            handler = self._handler(schema)
            other = theirs.get(schema.name)
            if other is not None:
                handler = _by_job_id(handler, other.handler)
            theirs[schema.name] = Offer(other.definition if other else definition(schema, {}), handler)
        return list(theirs.values())

    def _handler(self, schema: ToolSchema) -> Handler:
        async def handle(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
            try:
                wanted = checked(schema.name, schema.schema, arguments)
            except BadArguments as problem:
                raise proxy_error(INVALID_PARAMS, str(problem)) from problem
            serve = (await self.loaded()).handler(schema.name)
            work = serve(Caller(agent_id="", principal=call.principal), wanted)
            if schema.name in (tool_schemas.WAIT_ANY.name, tool_schemas.WAIT_ALL.name):
                work = with_progress(call, work, self._clock, message=lambda: "waiting for background jobs")
            return rendered(await work)

        return handle


class _LateTasks:
    """The port of tasks, which loads what is behind it with the first call."""

    def __init__(self, jobs: BackgroundJobs) -> None:
        self._jobs = jobs

    @property
    def tools(self) -> frozenset[str]:
        return frozenset({tool_schemas.WAIT_ANY.name, tool_schemas.WAIT_ALL.name})

    async def create(self, call: Call, tool: str, arguments: dict[str, Any], *, ttl_ms: int | None) -> Any:
        return await (await self._jobs.waits()).create(call, tool, arguments, ttl_ms=ttl_ms)

    async def get(self, call: Call, task_id: str) -> Any:
        return await (await self._jobs.waits()).get(call, task_id)

    async def result(self, call: Call, task_id: str) -> Any:
        return await (await self._jobs.waits()).result(call, task_id)

    async def cancel(self, call: Call, task_id: str) -> Any:
        return await (await self._jobs.waits()).cancel(call, task_id)

    async def listed(self, call: Call, cursor: str | None) -> Any:
        return await (await self._jobs.waits()).listed(call, cursor)


def _by_job_id(ours: Handler, theirs: Handler) -> Handler:
    async def handle(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        return await (ours if arguments.get("jobId") is not None else theirs)(call, arguments)

    return handle


def _end_all(jobs: Jobs) -> None:
    """A rehearsal is over: its model is gone, and so is its folder in a moment."""
    for job in jobs.unfinished():
        jobs.cancel(job.job_id, force=True)
