"""The job tools: from the arguments of a call to the answer. Bad input is one sentence and starts nothing.

`JobTools` is made once for a server. While `async with tools.running():` lasts, jobs are looked after every
few seconds; they go on without, but nobody would notice one whose supervisor died.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from laneway.base.errors import LanewayError, UsageError
from laneway.base.plain import code_label
from laneway.core.background import Coalescer, TaskSet
from laneway.core.ports import Clock
from laneway.core.tools import Caller, Handler, Tool, ToolResult
from laneway.jobs import tool_schemas
from laneway.jobs.event_log import TYPES
from laneway.jobs.job_json import result_json, row_json, status_json
from laneway.jobs.listing import JobFilter, listed
from laneway.jobs.model import HERE, Job
from laneway.jobs.partial import result_of
from laneway.jobs.requests import ANY_NODE, THIS_NODE, SpawnRequest
from laneway.jobs.resolving import Resolution, resolve
from laneway.jobs.service import LOCAL, Jobs
from laneway.jobs.waiting import MAX_WAIT_S, WAIT_S, Until, Waited, Waiter

if TYPE_CHECKING:
    from laneway.jobs.nodes.remote_jobs import RemoteJobs

log = logging.getLogger(__name__)

T = TypeVar("T")
TICK_S = 5.0
"""Between two looks at all jobs, while a server runs."""

OnPending = Callable[[tuple[str, ...]], None]


def owner_of(caller: Caller) -> str:
    """The owner of jobs of this caller: a token of the network by itself, everybody else is the user."""
    return caller.principal if caller.principal.startswith("http:") else LOCAL


class JobTools:
    """Serves calls of the job tools."""

    def __init__(
        self,
        open_jobs: Callable[[], Jobs],
        clock: Clock,
        identity: str | None = None,
        team: str = "",
        open_remote: Callable[[Jobs], RemoteJobs] | None = None,
    ) -> None:
        """`open_jobs` is called with the first call; it may raise a `LanewayError`.

        `identity` is told of ended jobs by mail, where the settings want that and the caller has none; an
        empty `team` is found when there is something to tell. `open_remote`: jobs on other machines; without
        it there are none.
        """
        self._identity = identity
        self._team = team
        self._open_jobs = open_jobs
        self._clock = clock
        self._open_remote = open_remote
        self._jobs: Jobs | None = None
        self._remote: RemoteJobs | None = None
        self._tasks = TaskSet()
        self._dispatching = Coalescer(self._dispatch, self._tasks, "dispatch jobs", linger_s=0)
        self._stop_tick: Callable[[], None] = lambda: None

    @property
    def jobs(self) -> Jobs:
        if self._jobs is None:
            self._jobs = self._open_jobs()
        return self._jobs

    @property
    def reports(self) -> tuple[str, ...]:
        """What was wrong with the database, if it was opened, and what became of it; as sentences."""
        return self._jobs.ledger.database.reports if self._jobs is not None else ()

    @property
    def remote(self) -> RemoteJobs:
        """Only where there are other machines, or jobs of them."""
        if self._remote is None:
            if self._open_remote is None:
                raise UsageError("Jobs run on this machine only.")
            self._remote = self._open_remote(self.jobs)
        return self._remote

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._stop_tick = self._clock.after(TICK_S, self._tick)
        try:
            yield
        finally:
            self._stop_tick()
            if self._remote is not None:
                await self._remote.close()
            await self._tasks.wait()
            if self._jobs is not None:
                self._jobs.close()

    def _tick(self) -> None:
        self._tasks.spawn(self._look(), "look after jobs")
        self._stop_tick = self._clock.after(TICK_S, self._tick)

    async def _look(self) -> None:
        if self._jobs is not None or await asyncio.to_thread(self._has_any):
            await asyncio.to_thread(self.jobs.look)
            await self.follow()

    async def follow(self) -> None:
        """Keep up with jobs on other machines, if there are any."""
        if self._open_remote is not None and await asyncio.to_thread(self._has_elsewhere):
            await self.remote.follow()

    def _has_elsewhere(self) -> bool:
        return bool(self.jobs.ledger.elsewhere())

    def _has_any(self) -> bool:
        """Whether this user has ever had a job: else nothing is opened for the tick."""
        return self.jobs.places.jobs.exists()

    async def _dispatch(self) -> None:
        try:
            await asyncio.to_thread(self.jobs.dispatch)
        except LanewayError as problem:
            log.warning("Jobs are not started: %s", problem)

    def stir(self) -> None:
        """A job was queued or has ended: start what may start."""
        self._dispatching.stir()

    # ── the tools ──────────────────────────────────────────────────────────

    def tools(self) -> tuple[Tool, ...]:
        return tuple(schema.tool(self.handler(schema.name)) for schema in tool_schemas.ALL)

    def handler(self, name: str) -> Handler:
        async def handle(caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
            try:
                answer = await self.answer(name, caller, arguments)
            except LanewayError as problem:
                return ToolResult(str(problem), is_error=True)
            return ToolResult(msgspec.json.encode(answer).decode(), data=answer)

        return handle

    async def answer(self, name: str, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What a tool answers, as data; a `LanewayError` if it cannot."""
        answer: dict[str, Any] = await getattr(self, "_" + name.removeprefix("codex_"))(caller, arguments)
        return answer

    async def _spawn(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        request = converted(arguments, SpawnRequest)
        notify, owner = self._notify(caller), owner_of(caller)
        node = request.node or THIS_NODE
        if node == ANY_NODE and self._open_remote is not None:
            node = await self.remote.choose(request)
        if node not in HERE and self._open_remote is not None:
            job = await self.remote.spawn(node, request, owner, notify)
        else:
            job = await asyncio.to_thread(self.jobs.spawn, request, owner, notify=notify)
            self._dispatching.stir()
        return {"jobId": job.job_id}

    def _notify(self, caller: Caller) -> tuple[str, str] | None:
        identity = caller.identity or self._identity
        return (identity, self._team) if identity and self.jobs.defaults.notify else None

    async def _send(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        notify, owner, prompt = self._notify(caller), owner_of(caller), arguments["prompt"]
        earlier = await asyncio.to_thread(self.jobs.get, arguments["jobId"], owner)
        if earlier.is_elsewhere:
            job = await self.remote.send(earlier, prompt, owner, notify)
        else:
            job = await asyncio.to_thread(self.jobs.send, earlier.job_id, prompt, owner, notify=notify)
            self._dispatching.stir()
        return {"jobId": job.job_id}

    async def _status(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        job = await asyncio.to_thread(self.jobs.get, arguments["jobId"], owner_of(caller))
        return await asyncio.to_thread(self.status_of, await self._current(job))

    def status_of(self, job: Job) -> dict[str, Any]:
        """As it stands, or is said not to be known. Blocking."""
        return status_json(job, self.jobs.ledger.now(), **self._standing(job))

    def row_of(self, job: Job) -> dict[str, Any]:
        """The same in a list. Blocking."""
        return row_json(job, self.jobs.ledger.now(), is_unreachable=self._is_unreachable(job))

    def _standing(self, job: Job) -> dict[str, Any]:
        position = 0
        if job.status == "queued":
            position = (self.remote if job.is_elsewhere else self.jobs.ledger).position(job)
        return {"position": position, "is_unreachable": self._is_unreachable(job)}

    def _is_unreachable(self, job: Job) -> bool:
        return bool(self._problem_of(job))

    def _problem_of(self, job: Job) -> str:
        """Why nothing new can be said of a job on another machine, as a sentence; empty if it can."""
        if not job.is_elsewhere or job.has_ended:
            return ""
        problem = self.remote.problem_of(job)
        return f"{problem}." if problem is not None else ""

    def problem_of(self, job_id: str) -> str:
        """The same, by the job's id. Blocking."""
        return self._problem_of(self.jobs.get(job_id))

    async def _result(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        job = await asyncio.to_thread(self.jobs.get, arguments["jobId"], owner_of(caller))
        if job.is_elsewhere:
            return await self.remote.result(job)
        return await asyncio.to_thread(self._result_now, await self._current(job))

    def _result_now(self, job: Job) -> dict[str, Any]:
        result, conflicts = result_of(self.jobs, job)
        return result_json(job, result, conflicts, self.jobs.ledger.now())

    async def _cancel(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        owner, force = owner_of(caller), bool(arguments.get("force"))
        job = await asyncio.to_thread(self.jobs.get, arguments["jobId"], owner)
        if job.is_elsewhere:
            job = await self.remote.cancel(job, force=force)
            return await asyncio.to_thread(self.status_of, job)
        job = await asyncio.to_thread(self.jobs.cancel, job.job_id, owner, force=force)
        self._dispatching.stir()
        return status_json(job, self.jobs.ledger.now())

    async def _events(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        job = await asyncio.to_thread(self.jobs.get, arguments["jobId"], owner_of(caller))
        unknown = set(strings("types", arguments.get("types", ()))).difference(TYPES)
        if unknown:
            raise UsageError(f"There are no events of type {code_label(min(unknown))}: {', '.join(TYPES)}.")
        if job.is_elsewhere:
            answer = await self.remote.events(job, arguments)
            if answer is not None:
                return answer
        else:
            # The status first: `final` is written before it, so that the last page is never missed.
            job = await self._current(job)
        return await asyncio.to_thread(self._events_now, job, arguments)

    def _events_now(self, job: Job, arguments: Mapping[str, Any]) -> dict[str, Any]:
        page = self.jobs.events(
            job,
            arguments.get("cursor"),
            kinds=frozenset(arguments.get("types", ())),
            is_full=bool(arguments.get("full")),
            max_events=arguments.get("maxEvents"),
        )
        return {
            "events": list(page.events),
            "nextCursor": page.next_cursor,
            "done": job.has_ended and page.is_at_end,
            "status": job.status,
        }

    async def _wait_any(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return await self.wait("any", caller, arguments)

    async def _wait_all(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return await self.wait("all", caller, arguments)

    async def wait(
        self,
        until: Until,
        caller: Caller,
        arguments: Mapping[str, Any],
        on_pending: OnPending = lambda pending: None,
    ) -> dict[str, Any]:
        """Long-poll: what has ended, what has not, and the cursor for the next call."""
        ids = await asyncio.to_thread(self.waited_ids, caller, arguments)
        timeout_s = min(arguments.get("timeoutMs", WAIT_S * 1000), MAX_WAIT_S * 1000) / 1000
        await self.follow()
        waiter = Waiter(self.jobs.places.bell, self._clock)
        waited = await waiter.wait(
            lambda: self._look_at(ids, owner_of(caller)),
            arguments.get("cursor"),
            until,
            timeout_s,
            on_pending,
        )
        return self.waited_json(waited)

    def waited_ids(self, caller: Caller, arguments: Mapping[str, Any]) -> list[str]:
        """The jobs to wait for; `JobUnknown` for one that the caller does not have."""
        owner = owner_of(caller)
        named = arguments.get("jobIds")
        if named is None:
            return [job.job_id for job in self.jobs.unfinished(owner)]
        return [job.job_id for job in self.jobs.many(strings("jobIds", named), owner)]

    def _look_at(self, ids: Sequence[str], owner: str) -> list[Job]:
        self.jobs.look()
        return self.jobs.many(ids, owner)

    def waited_json(self, waited: Waited) -> dict[str, Any]:
        now = self.jobs.ledger.now()
        unreachable = self._unreachable(waited.pending)
        return {
            "ended": [status_json(job, now) for job in waited.ended],
            "pending": list(waited.pending),
            **({"unreachable": unreachable} if unreachable else {}),
            "nextCursor": waited.next_cursor,
            "timedOut": not waited.is_satisfied,
        }

    def _unreachable(self, pending: Sequence[str]) -> list[str]:
        """Whose machines cannot be asked, so that their ends would not be noticed."""
        if self._remote is None:
            return []
        jobs = self.jobs.ledger.many(pending)
        return [job_id for job_id, job in jobs.items() if self._is_unreachable(job)]

    async def _list(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if self._open_remote is not None:
            jobs = await asyncio.to_thread(self.jobs.ledger.elsewhere)
            await self.refresh(*jobs)
        return await asyncio.to_thread(self._list_now, caller, arguments)

    def _list_now(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self.jobs.look()
        page = listed(self.jobs, owner_of(caller), converted(arguments, JobFilter))
        more: dict[str, Any] = {"nextCursor": page.next_cursor} if page.next_cursor else {}
        unreachable = {job.node: why for job in page.jobs if (why := self._problem_of(job))}
        if unreachable:
            more["unreachable"] = unreachable
        return {
            "jobs": [self.row_of(job) for job in page.jobs],
            "slots": page.slots,
            "tokens": {
                "today": page.totals.today,
                "byDay": page.totals.by_day,
                "byRun": page.totals.by_run,
            },
            **more,
        }

    async def _resolve(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        request = converted(arguments, Resolution)
        if self._open_remote is not None and (request.run or request.job_ids):
            remote_answer = await self.remote.resolve(arguments, owner_of(caller))
            if remote_answer is not None:
                return remote_answer
        answer = await asyncio.to_thread(resolve, self.jobs, owner_of(caller), request)
        self._dispatching.stir()
        return answer

    async def refresh(self, *jobs: Job) -> None:
        """Learn how jobs on other machines stand, as far as they can be asked."""
        elsewhere = [job for job in jobs if job.is_elsewhere and not job.has_ended]
        if elsewhere:
            await self.remote.refresh(elsewhere)

    async def _current(self, job: Job) -> Job:
        """The job as it is now: after its machine was asked, or after one whose supervisor died was ended."""
        if job.has_ended or (job.status == "queued" and not job.is_elsewhere):
            return job
        if job.is_elsewhere:
            await self.refresh(job)
        else:
            await asyncio.to_thread(self.jobs.look)
        return await asyncio.to_thread(self.jobs.get, job.job_id)


def converted(arguments: Mapping[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(dict(arguments), kind)
    except msgspec.ValidationError as problem:
        _, is_named, where = str(problem).rpartition(" - at `$.")
        what = where.rstrip("`") if is_named else "An argument"
        raise UsageError(f"{what} is not of the form that the tool's schema says.") from problem


def strings(name: str, values: Any) -> list[str]:
    if not all(isinstance(value, str) for value in values):
        raise UsageError(f"{name} must be a list of strings.")
    return list(values)
