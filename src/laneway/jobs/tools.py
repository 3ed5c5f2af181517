"""The job tools: from the arguments of a call to the answer. Bad input is one sentence and starts nothing.

`JobTools` is made once for a server. While `async with tools.running():` lasts, jobs are looked after every
few seconds; they go on without, but nobody would notice one whose supervisor died.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec

from laneway.base.errors import LanewayError, UsageError
from laneway.core.background import Coalescer, TaskSet
from laneway.core.ports import Clock
from laneway.core.tools import Caller, Handler, Tool, ToolResult
from laneway.jobs import tool_schemas
from laneway.jobs.job_json import result_json, row_json, status_json
from laneway.jobs.listing import JobFilter, listed
from laneway.jobs.model import Job
from laneway.jobs.partial import conflicts_of, result_of
from laneway.jobs.requests import SpawnRequest
from laneway.jobs.resolving import Resolution, resolve
from laneway.jobs.service import LOCAL, Jobs
from laneway.jobs.waiting import MAX_WAIT_S, WAIT_S, Until, Waited, Waiter

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
        self, open_jobs: Callable[[], Jobs], clock: Clock, identity: str | None = None, team: str = ""
    ) -> None:
        """`open_jobs` is called with the first call; it may raise a `LanewayError`.

        `identity` is told of ended jobs by mail, where the settings want that and the caller has none; an
        empty `team` is found when there is something to tell.
        """
        self._identity = identity
        self._team = team
        self._open_jobs = open_jobs
        self._clock = clock
        self._jobs: Jobs | None = None
        self._tasks = TaskSet()
        self._dispatching = Coalescer(self._dispatch, self._tasks, "dispatch jobs", linger_s=0)
        self._stop_tick: Callable[[], None] = lambda: None

    @property
    def jobs(self) -> Jobs:
        if self._jobs is None:
            self._jobs = self._open_jobs()
        return self._jobs

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._stop_tick = self._clock.after(TICK_S, self._tick)
        try:
            yield
        finally:
            self._stop_tick()
            await self._tasks.wait()
            if self._jobs is not None:
                self._jobs.close()

    def _tick(self) -> None:
        self._tasks.spawn(self._look(), "look after jobs")
        self._stop_tick = self._clock.after(TICK_S, self._tick)

    async def _look(self) -> None:
        if self._jobs is not None or await asyncio.to_thread(self._has_any):
            await asyncio.to_thread(self.jobs.look)

    def _has_any(self) -> bool:
        """Whether this user has ever had a job: else nothing is opened for the tick."""
        return self.jobs.places.jobs.exists()

    async def _dispatch(self) -> None:
        try:
            await asyncio.to_thread(self.jobs.dispatch)
        except LanewayError as problem:
            log.warning("Jobs are not started: %s", problem)

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
        notify = self._notify(caller)
        job = await asyncio.to_thread(self.jobs.spawn, request, owner_of(caller), notify=notify)
        self._dispatching.stir()
        return {"jobId": job.job_id}

    def _notify(self, caller: Caller) -> tuple[str, str] | None:
        identity = caller.identity or self._identity
        return (identity, self._team) if identity and self.jobs.defaults.notify else None

    async def _send(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        notify = self._notify(caller)
        job = await asyncio.to_thread(
            self.jobs.send, arguments["jobId"], arguments["prompt"], owner_of(caller), notify=notify
        )
        self._dispatching.stir()
        return {"jobId": job.job_id}

    async def _status(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return await asyncio.to_thread(self._status_now, arguments["jobId"], owner_of(caller))

    def _status_now(self, job_id: str, owner: str) -> dict[str, Any]:
        job = self._current(job_id, owner)
        position = self.jobs.ledger.position(job) if job.status == "queued" else 0
        return status_json(job, self.jobs.ledger.now(), position=position)

    async def _result(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return await asyncio.to_thread(self._result_now, arguments["jobId"], owner_of(caller))

    def _result_now(self, job_id: str, owner: str) -> dict[str, Any]:
        job = self._current(job_id, owner)
        return result_json(
            job, result_of(self.jobs, job), conflicts_of(self.jobs, job), self.jobs.ledger.now()
        )

    async def _cancel(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        job = await asyncio.to_thread(
            self.jobs.cancel, arguments["jobId"], owner_of(caller), force=bool(arguments.get("force"))
        )
        self._dispatching.stir()
        return status_json(job, self.jobs.ledger.now())

    async def _events(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return await asyncio.to_thread(self._events_now, arguments, owner_of(caller))

    def _events_now(self, arguments: Mapping[str, Any], owner: str) -> dict[str, Any]:
        # The status first: `final` is written before it, so that the last page is never missed.
        job = self._current(arguments["jobId"], owner)
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
        timeout_s = min(arguments.get("timeoutMs", WAIT_S * 1000) / 1000, MAX_WAIT_S)
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
        return {
            "ended": [status_json(job, now) for job in waited.ended],
            "pending": list(waited.pending),
            "nextCursor": waited.next_cursor,
            "timedOut": not waited.is_satisfied,
        }

    async def _list(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return await asyncio.to_thread(self._list_now, caller, arguments)

    def _list_now(self, caller: Caller, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self.jobs.look()
        page = listed(self.jobs, owner_of(caller), converted(arguments, JobFilter))
        now = self.jobs.ledger.now()
        more = {"nextCursor": page.next_cursor} if page.next_cursor else {}
        return {
            "jobs": [row_json(job, now) for job in page.jobs],
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
        answer = await asyncio.to_thread(resolve, self.jobs, owner_of(caller), request)
        self._dispatching.stir()
        return answer

    def _current(self, job_id: str, owner: str) -> Job:
        """The job, after one whose supervisor died was ended."""
        job = self.jobs.get(job_id, owner)
        if not job.has_ended and job.status != "queued":
            self.jobs.look()
            job = self.jobs.get(job_id, owner)
        return job


def converted(arguments: Mapping[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(dict(arguments), kind)
    except msgspec.ValidationError as problem:
        where = str(problem).rpartition(" - at `$.")[2].rstrip("`")
        raise UsageError(
            f"{where or 'An argument'} is not of the form that the tool's schema says."
        ) from problem


def strings(name: str, values: Any) -> list[str]:
    if not all(isinstance(value, str) for value in values):
        raise UsageError(f"{name} must be a list of strings.")
    return list(values)
