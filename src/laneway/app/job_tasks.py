"""Waits for jobs as MCP tasks: a call that waits is answered at once, and its client is told when it is over.

Implements the port `Tasks` of the MCP front end on the ledger of waits, so that a task outlives this server.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from laneway.base.counting import counted
from laneway.base.errors import BadCursor, TaskUnknown
from laneway.core.ports import Clock
from laneway.core.tool_arguments import BadArguments, checked
from laneway.core.tools import Caller, ToolResult
from laneway.doors.mcp.codes import proxy_error
from laneway.doors.mcp.server import Call
from laneway.doors.mcp.tasks import Task, TaskRequests
from laneway.doors.mcp.tool_offers import rendered
from laneway.jobs import tool_schemas
from laneway.jobs.ledger import Ledger
from laneway.jobs.tools import JobTools, owner_of
from laneway.jobs.wait_ledger import WaitFor, WaitLedger, WaitTask
from laneway.jobs.waiting import Until, Waiter, judge
from laneway.wire.messages import INVALID_PARAMS

POLL_MS = 1000
PAGE = 50
FOR_EVER_S = 365 * 24 * 60 * 60.0
UNTIL: dict[str, Until] = {tool_schemas.WAIT_ANY.name: "any", tool_schemas.WAIT_ALL.name: "all"}
_SCHEMAS = {tool.name: tool.schema for tool in (tool_schemas.WAIT_ANY, tool_schemas.WAIT_ALL)}


class JobTasks:
    """The waits of all clients of one server."""

    def __init__(self, tools: JobTools, clock: Clock) -> None:
        self._tools = tools
        self._clock = clock

    @property
    def tools(self) -> frozenset[str]:
        return frozenset(UNTIL)

    async def create(self, call: Call, tool: str, arguments: dict[str, Any], *, ttl_ms: int | None) -> Task:
        try:
            wanted = checked(tool, _SCHEMAS[tool], arguments)
        except BadArguments as problem:
            raise proxy_error(INVALID_PARAMS, str(problem)) from problem
        caller = caller_of(call)
        kept_s = None if ttl_ms is None else min(ttl_ms, FOR_EVER_S * 1000) / 1000
        return self._json(await asyncio.to_thread(self._create, caller, tool, wanted, kept_s))

    def _create(self, caller: Caller, tool: str, wanted: dict[str, Any], kept_s: float | None) -> WaitTask:
        ids = self._tools.waited_ids(caller, wanted)
        now = self._ledger.now()
        timeout_ms = wanted.get("timeoutMs")
        wait = WaitFor(
            UNTIL[tool],
            tuple(ids),
            wanted.get("cursor"),
            None if timeout_ms is None else now + min(timeout_ms, FOR_EVER_S * 1000) / 1000,
        )
        judge((), wait.cursor, wait.until)  # a broken cursor is refused here
        return self._settled(self._waits.add(owner_of(caller), tool, wait, kept_s))

    async def get(self, call: Call, task_id: str) -> Task:
        return self._json(await asyncio.to_thread(self._get, call, task_id))

    async def result(self, call: Call, task_id: str) -> dict[str, Any]:
        task = await asyncio.to_thread(self._get, call, task_id)
        if task.answer is None and not task.is_cancelled:
            waiter = Waiter(self._tools.jobs.places.bell, self._clock)
            await waiter.wait_until(lambda: self._is_over(call, task_id), FOR_EVER_S)
            task = await asyncio.to_thread(self._get, call, task_id)
        if task.answer is None:
            return rendered(ToolResult("The wait was cancelled; the jobs go on.", is_error=True))
        return rendered(ToolResult(_text(task.answer), data=task.answer))

    async def cancel(self, call: Call, task_id: str) -> Task:
        await asyncio.to_thread(self._get, call, task_id)
        await asyncio.to_thread(self._waits.cancel, task_id)
        return await self.get(call, task_id)

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[Task], str | None]:
        try:
            before = None if cursor is None else float(cursor)
        except ValueError:
            raise BadCursor from None
        rows = await asyncio.to_thread(self._waits.listed, owner_of(caller_of(call)), before, PAGE + 1)
        tasks = [self._json(await asyncio.to_thread(self._settled, row)) for row in rows[:PAGE]]
        return tasks, repr(rows[PAGE - 1].created_at) if len(rows) > PAGE else None

    # ── notifications ──────────────────────────────────────────────────────

    async def notify_ended(self, requests: TaskRequests) -> None:
        """Tell clients of their tasks that are over by now. Called by the tick, and when the bell rings."""
        for task_id in requests.watched():
            task = await asyncio.to_thread(self._settle_by_id, task_id)
            if task is None:
                requests.forget(task_id)
            elif self._json(task).is_over:
                requests.changed(self._json(task))

    def _settle_by_id(self, task_id: str) -> WaitTask | None:
        task = self._waits.find(task_id)
        return None if task is None else self._settled(task)

    # ── one wait ───────────────────────────────────────────────────────────

    @property
    def _ledger(self) -> Ledger:
        return self._tools.jobs.ledger

    @property
    def _waits(self) -> WaitLedger:
        return WaitLedger(self._tools.jobs.ledger)

    def _get(self, call: Call, task_id: str) -> WaitTask:
        task = self._waits.get(task_id, owner_of(caller_of(call)))
        if task is None:
            raise TaskUnknown(task_id)
        return self._settled(task)

    def _is_over(self, call: Call, task_id: str) -> bool:
        task = self._get(call, task_id)
        return task.is_cancelled or task.answer is not None

    def _settled(self, task: WaitTask) -> WaitTask:
        """The wait with its answer, if there is one by now."""
        if task.answer is not None or task.is_cancelled:
            return task
        jobs = self._tools.jobs
        jobs.look()
        # A job that was removed meanwhile is nothing to wait for.
        found = jobs.ledger.many(task.wait.job_ids)
        present = [found[job_id] for job_id in task.wait.job_ids if job_id in found]
        waited = judge(present, task.wait.cursor, task.wait.until)
        deadline = task.wait.deadline
        if not waited.is_satisfied and (deadline is None or jobs.ledger.now() < deadline):
            return task
        self._waits.answer(task.task_id, self._tools.waited_json(waited))
        return self._waits.get(task.task_id, task.owner) or task

    def _json(self, task: WaitTask) -> Task:
        status: Any = (
            "cancelled" if task.is_cancelled else "completed" if task.answer is not None else "working"
        )
        count = len(task.wait.job_ids)
        which = "one of " if task.wait.until == "any" and count > 1 else ""
        return Task(
            task_id=task.task_id,
            status=status,
            created_at=task.created_at,
            updated_at=task.created_at,
            ttl_ms=round((task.expires_at - task.created_at) * 1000),
            poll_ms=POLL_MS,
            message=f"Waits for {which}{counted(count, 'background job')}." if status == "working" else "",
        )


def caller_of(call: Call) -> Caller:
    """A client, without an identity: jobs belong to its principal."""
    return Caller(agent_id="", principal=call.principal)


def _text(answer: dict[str, Any]) -> str:
    return msgspec.json.encode(answer).decode()
