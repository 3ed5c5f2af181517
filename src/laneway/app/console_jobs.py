"""The user's background jobs for the console: the job tools, called as the user."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from laneway.base.errors import UsageError
from laneway.core.tools import Caller
from laneway.doors.console.panels.ports import JobAction
from laneway.jobs import tool_schemas
from laneway.jobs.service import LOCAL
from laneway.jobs.tools import JobTools
from laneway.rendering.outputs import shortened

SHOWN_JOBS = 50
"""On one page of the list."""
SHOWN_EVENTS = 500
"""Of one job in one answer; the cursor goes on from there."""
MAX_PROMPT_CHARS = 20_000
"""Shown of what a job was told: it may be a megabyte."""
_CALLER = Caller(agent_id="", principal=LOCAL)


class ToolJobs:
    """The `JobBoard` of the console."""

    def __init__(self, tools: JobTools) -> None:
        self._tools = tools

    async def jobs(self, cursor: str | None) -> dict[str, Any]:
        return await self._answer(tool_schemas.LIST.name, {"limit": SHOWN_JOBS, "cursor": cursor})

    async def result(self, job_id: str) -> dict[str, Any]:
        answer = await self._answer(tool_schemas.RESULT.name, {"jobId": job_id})
        return {**answer, **await asyncio.to_thread(self._request, job_id)}

    def _request(self, job_id: str) -> dict[str, Any]:
        """What the job was told to do."""
        jobs = self._tools.jobs
        job = jobs.get(job_id)
        spec = jobs.spec(job)
        return {
            "title": job.title,
            "mode": job.mode,
            "cwd": spec.cwd,
            "prompt": shortened(spec.prompt, MAX_PROMPT_CHARS),
        }

    async def events(self, job_id: str, cursor: str | None) -> dict[str, Any]:
        arguments = {"jobId": job_id, "cursor": cursor, "maxEvents": SHOWN_EVENTS}
        return await self._answer(tool_schemas.EVENTS.name, arguments)

    async def cancel(self, job_id: str, *, is_forced: bool) -> dict[str, Any]:
        return await self._answer(tool_schemas.CANCEL.name, {"jobId": job_id, "force": is_forced})

    async def again(self, job_id: str) -> str:
        jobs = self._tools.jobs
        job = await asyncio.to_thread(jobs.get, job_id)
        if job.is_elsewhere:
            raise UsageError("This job ran on another machine: start it again there.")
        if not job.has_ended:
            raise UsageError("This job has not ended: cancel it first.")
        new = await asyncio.to_thread(jobs.again, job)
        self._tools.stir()
        return new.job_id

    async def run(self, run_id: str, paths: Sequence[str], job_ids: Sequence[str] = ()) -> dict[str, Any]:
        arguments = {
            "action": "show",
            "run": run_id,
            "paths": list(paths) or None,
            "jobIds": list(job_ids) or None,
        }
        return await self._answer(tool_schemas.RESOLVE.name, arguments)

    async def resolve(
        self, run_id: str, action: JobAction, job_ids: Sequence[str], resolved: Sequence[str], *, merges: bool
    ) -> dict[str, Any]:
        arguments = {
            "action": action,
            "run": run_id,
            "jobIds": list(job_ids) or None,
            "resolved": list(resolved) or None,
            "merge": merges or None,
        }
        return await self._answer(tool_schemas.RESOLVE.name, arguments)

    async def _answer(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in arguments.items() if value is not None}
        return await self._tools.answer(tool, _CALLER, given)
