"""Serves the calls of other machines that run jobs on this one, over any transport.

Works on this home's own jobs, as the local user: who may see which job is the near side's matter. Nothing of
the caller's environment comes here; a folder is named by a repository of the user's own settings and a path
in it. Every call but `resolve` may be made twice: `spawn` and `send` bring the job's id along.

    served = Served(tools, settings.jobs_repositories)
    async with tools.running():
        answer = await served.handle("hello", {})
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from laneway import __version__
from laneway.base.errors import UsageError
from laneway.base.plain import code_label
from laneway.core.ports import Clock
from laneway.core.tool_arguments import BadArguments, checked
from laneway.core.tools import Caller
from laneway.jobs import tool_schemas
from laneway.jobs.model import Job, Mode
from laneway.jobs.nodes.messages import (
    PROTOCOL,
    Hello,
    NodeJobs,
    NodeSend,
    NodeSpawn,
    NodeWatch,
    node_job,
)
from laneway.jobs.places import JOB_ID
from laneway.jobs.service import LOCAL
from laneway.jobs.tools import JobTools, converted
from laneway.jobs.waiting import MAX_WAIT_S, Waiter

USER = Caller(agent_id="", principal=LOCAL)
MAX_WATCHED = 10_000
"""Jobs of one watch."""
MODES: tuple[Mode, ...] = ("read", "write")
_TOOLS = {
    "result": tool_schemas.RESULT,
    "events": tool_schemas.EVENTS,
    "cancel": tool_schemas.CANCEL,
    "resolve": tool_schemas.RESOLVE,
}


class Served:
    """The jobs of this home, for other machines."""

    def __init__(
        self,
        tools: JobTools,
        repositories: Mapping[str, Path],
        clock: Clock,
        check_codex: Callable[[], None] = lambda: None,
    ) -> None:
        """`tools` know no other machines: what comes here stays here.

        `check_codex` raises a `BinaryError` if nothing could be started; it is called before each start.
        """
        self._tools = tools
        self._repositories = repositories
        self._clock = clock
        self._check_codex = check_codex
        self._watches: dict[str, asyncio.Event] = {}

    async def handle(self, method: str, params: Mapping[str, Any]) -> Any:
        """Plain data; a `LanewayError` for what cannot be done."""
        match method:
            case "hello":
                return msgspec.to_builtins(await asyncio.to_thread(self._hello))
            case "spawn":
                answer = await asyncio.to_thread(self._spawn, converted(params, NodeSpawn))
            case "send":
                answer = await asyncio.to_thread(self._send, converted(params, NodeSend))
            case "watch":
                answer = await self._watch(converted(params, NodeWatch))
            case _ if method in _TOOLS:
                return await self._call_tool(method, params)
            case _:
                raise UsageError(
                    f"Laneway {__version__} has no call {code_label(method)} for other machines: update it."
                )
        if method != "watch":
            self._tools.stir()
        return msgspec.to_builtins(answer)

    async def _call_tool(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        schema = _TOOLS[method]
        try:
            arguments = checked(schema.name, schema.schema, dict(params))
        except BadArguments as problem:
            raise UsageError(str(problem)) from problem
        return await self._tools.answer(schema.name, USER, arguments)

    def _hello(self) -> Hello:
        jobs = self._tools.jobs
        jobs.look()
        return Hello(
            protocol=PROTOCOL,
            version=__version__,
            home=jobs.ledger.home(),
            repositories=tuple(self._repositories),
            free={mode: jobs.free(mode) for mode in MODES},
            places={mode: jobs.limits.of(mode) for mode in MODES},
        )

    # ── starting ───────────────────────────────────────────────────────────

    def _spawn(self, params: NodeSpawn) -> NodeJobs:
        job = self._known(params.job_id)
        if job is None:
            self._check_codex()
            folder = self._folder(params.repository, params.path)
            request = msgspec.structs.replace(params.request, cwd=folder, node=None)
            job = self._tools.jobs.spawn(request, job_id=params.job_id)
        return self._begun(job, params.cancel)

    def _send(self, params: NodeSend) -> NodeJobs:
        job = self._known(params.job_id)
        if job is None:
            self._check_codex()
            job = self._tools.jobs.send(params.earlier, params.prompt, job_id=params.job_id)
        return self._begun(job, params.cancel)

    def _known(self, job_id: str) -> Job | None:
        if not JOB_ID.fullmatch(job_id):
            raise UsageError(f"{code_label(job_id)} is not the id of a job.")
        return self._tools.jobs.ledger.get(job_id)

    def _begun(self, job: Job, cancel: str) -> NodeJobs:
        if cancel and not job.has_ended:
            self._tools.jobs.cancel(job.job_id, force=cancel == "force")
        return self._jobs((job.job_id,))

    def _folder(self, repository: str, path: str) -> str:
        """Where the near side's folder is on this machine."""
        place = self._repositories.get(repository)
        if place is None:
            known = ", ".join(self._repositories) or "none"
            raise UsageError(
                f"it has no repository {code_label(repository)} (its jobs.repositories: {known}):"
                f" `laneway config set jobs.repositories.{code_label(repository)} PATH` there."
            )
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise UsageError(f"{code_label(path)} is no path in the repository {code_label(repository)}.")
        return str(place.expanduser() / path)

    # ── watching ───────────────────────────────────────────────────────────

    async def _watch(self, params: NodeWatch) -> NodeJobs:
        if len(params.jobs) > MAX_WATCHED:
            raise UsageError(f"One watch is for {MAX_WATCHED:,} jobs at most.")
        over = asyncio.Event()
        if params.watcher:
            if params.watcher in self._watches:
                self._watches[params.watcher].set()
            self._watches[params.watcher] = over
        try:
            await self._wait_for_news(params, over)
            return await asyncio.to_thread(self._jobs, tuple(params.jobs))
        finally:
            if self._watches.get(params.watcher) is over:
                del self._watches[params.watcher]

    async def _wait_for_news(self, params: NodeWatch, over: asyncio.Event) -> None:
        waiter = Waiter(self._tools.jobs.places.bell, self._clock)
        timeout_s = min(params.timeout_ms / 1000, MAX_WAIT_S)
        waits = [
            asyncio.ensure_future(waiter.wait_until(lambda: self._has_news(params.jobs), timeout_s)),
            asyncio.ensure_future(over.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if waits[0].done():
                waits[0].result()
        finally:
            for each in waits:
                each.cancel()

    def _has_news(self, known: Mapping[str, str]) -> bool:
        self._tools.jobs.look()
        found = self._tools.jobs.ledger.many(known)
        return any(job_id not in found or found[job_id].status != known[job_id] for job_id in known)

    def _jobs(self, job_ids: tuple[str, ...]) -> NodeJobs:
        ledger = self._tools.jobs.ledger
        found, now = ledger.many(job_ids), ledger.now()
        queued = [job for job in found.values() if job.status == "queued"]
        if len(queued) > 1:  # each by itself would be a look at the whole queue
            positions = places_in(ledger.queued())
        else:
            positions = {job.job_id: ledger.position(job) for job in queued}
        return NodeJobs(
            home=ledger.home(),
            jobs=tuple(node_job(job, now, positions.get(job.job_id, 0)) for job in found.values()),
            unknown=tuple(job_id for job_id in job_ids if job_id not in found),
        )


def places_in(queue: Iterable[Job]) -> dict[str, int]:
    """How many jobs of its mode go before each, counted from one, as the ledger counts."""
    counts: dict[Mode, int] = {"read": 0, "write": 0}
    places: dict[str, int] = {}
    for job in sorted(queue, key=lambda job: (-job.priority, job.number)):
        counts[job.mode] += 1
        places[job.job_id] = counts[job.mode]
    return places
