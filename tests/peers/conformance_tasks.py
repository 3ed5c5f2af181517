"""Tasks as the official conformance suite wants them: some that take time, some that fail.

Nothing runs: a task is over when its time has come, and whoever asks sees it.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import msgspec

from laneway.base.errors import RemoteError, TaskUnknown
from laneway.doors.mcp import eras
from laneway.doors.mcp.server import Call
from laneway.doors.mcp.tasks import Task

Result = dict[str, Any]


def text(words: str) -> Result:
    return {"content": [{"type": "text", "text": words}]}


async def greet(call: Call, arguments: Result) -> Result:
    return text(f"Hello, {arguments.get('name')}!")


async def slow_compute(call: Call, arguments: Result) -> Result:
    """For clients that know no tasks; the suite asks them only for what takes no time."""
    return text("computed")


async def only_as_task(call: Call, arguments: Result) -> Result:
    data: Result = {"requiredCapabilities": {"extensions": {eras.TASKS_EXTENSION: {}}}}
    raise RemoteError(eras.MISSING_CAPABILITY, "This tool can only be called as a task", data)


HANDLERS = {
    "greet": greet,
    "slow_compute": slow_compute,
    "failing_job": only_as_task,
    "protocol_error_job": only_as_task,
}


class ConformanceTasks:
    """The port `Tasks`, in memory and for one principal."""

    tools = frozenset(HANDLERS) - {"greet"}

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Task, str, float]] = {}
        """Each with its tool and the time of its end."""
        self._ids = itertools.count(1)

    async def create(self, call: Call, tool: str, arguments: Result, *, ttl_ms: int | None) -> Task:
        now = time.time()
        seconds = float(arguments.get("seconds", 0.2))
        task = Task(
            task_id=f"task-{next(self._ids)}",
            status="working",
            created_at=now,
            updated_at=now,
            ttl_ms=3_600_000,
            poll_ms=100,
        )
        self._kept[task.task_id] = (task, tool, now + seconds)
        return await self.get(call, task.task_id)

    async def get(self, call: Call, task_id: str) -> Task:
        if task_id not in self._kept:
            raise TaskUnknown(task_id)
        task, tool, end = self._kept[task_id]
        if task.is_over or time.time() < end:
            return task
        return self._changed(task_id, "completed" if tool == "slow_compute" else "failed", end)

    def _changed(self, task_id: str, status: Any, at: float) -> Task:
        task, tool, end = self._kept[task_id]
        task = msgspec.structs.replace(task, status=status, updated_at=at)
        self._kept[task_id] = (task, tool, end)
        return task

    async def result(self, call: Call, task_id: str) -> Result:
        """The suite fetches results only of tasks that are over."""
        _, tool, _ = self._kept[task_id]
        if tool == "protocol_error_job":
            raise RemoteError(-32603, "The job broke")
        return text("computed") if tool == "slow_compute" else {**text("The job failed"), "isError": True}

    async def cancel(self, call: Call, task_id: str) -> Task:
        task = await self.get(call, task_id)
        return task if task.is_over else self._changed(task_id, "cancelled", time.time())

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[Task], str | None]:
        return [task for task, _, _ in self._kept.values()], None
