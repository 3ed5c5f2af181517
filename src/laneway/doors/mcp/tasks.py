"""MCP tasks: a call is answered at once by a task, whose result its client fetches or waits for later.

Both dialects are served. Up to 2025-11-25 a call itself asks for a task (`task` in its params), and
`tasks/result` waits. In the stateless era tasks are an extension: whoever declares it may get a task for
any call, and finds the result in `tasks/get`. What a task is and does, who may know of it and how long it
is kept is decided behind the port `Tasks`, so ids stay good when this server starts again. The only state
here is which client to notify of which task; it ends with the client or the task, whatever comes first.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeAlias
from weakref import WeakSet

import msgspec

from laneway.base.errors import LanewayError, RemoteError, TaskUnknown
from laneway.base.plain import code_label
from laneway.doors.mcp import eras
from laneway.doors.mcp.codes import proxy_error, wire_error
from laneway.doors.mcp.server import Call, Interests
from laneway.doors.mcp.server_info import not_found
from laneway.wire.messages import INVALID_PARAMS, METHOD_NOT_FOUND

STATUS = "notifications/tasks/status"
RELATED_KEY = "io.modelcontextprotocol/related-task"
IMMEDIATE_KEY = "io.modelcontextprotocol/model-immediate-response"
"""A sentence for the model, in place of the result that is not there yet."""
MAX_WATCHED = 256
"""Tasks that one client is notified of; one more replaces the first. It can always ask."""

TaskStatus: TypeAlias = Literal["working", "completed", "failed", "cancelled"]


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A call that goes on without its client."""

    task_id: str
    """At most 128 visible ASCII characters, or Claude Code refuses it."""
    status: TaskStatus
    """`failed` is a task whose result is an error or says `isError`. The last three are for ever."""
    created_at: float
    """In seconds since 1970, as `updated_at`."""
    updated_at: float
    ttl_ms: int | None = None
    """From its creation on it is kept so long; none: without end."""
    poll_ms: int = 1000
    """For a client to wait before it asks again."""
    message: str = ""
    """A sentence on its state, for people and models."""

    @property
    def is_over(self) -> bool:
        return self.status != "working"


class Tasks(Protocol):
    """Keeps tasks. For an id that is unknown to the caller's principal all of them raise `TaskUnknown`."""

    @property
    def tools(self) -> frozenset[str]:
        """The tools whose calls can be answered by a task."""
        ...

    async def create(self, call: Call, tool: str, arguments: dict[str, Any], *, ttl_ms: int | None) -> Task:
        """Begin this call as a task that `get` finds from now on. `ttl_ms` is a wish.

        Raises what the call itself would raise. If the task is over already, a client that did not ask
        for one is answered by its result.
        """
        ...

    async def get(self, call: Call, task_id: str) -> Task: ...

    async def result(self, call: Call, task_id: str) -> dict[str, Any]:
        """Wait for the result of `tools/call`, or raise its error: a cancelled task has one, too.

        Cancelling this only ends the wait.
        """
        ...

    async def cancel(self, call: Call, task_id: str) -> Task:
        """Cancel the task, if it is not over, and return it as it is then."""
        ...

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[Task], str | None]:
        """A page of the principal's tasks, and the cursor to the next one. It raises `BadCursor`."""
        ...


class TaskRequests:
    """Serves tasks to clients. Implements `TaskHandler` of `server`."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._notified: WeakSet[Interests] = WeakSet()
        """Clients with tasks. One that goes takes its entry along."""

    @property
    def tools(self) -> frozenset[str]:
        return self._tasks.tools

    @property
    def methods(self) -> frozenset[str]:
        return frozenset({*_STATELESS, *_HANDSHAKE})

    # ── requests of clients ────────────────────────────────────────────────

    async def begin(self, call: Call, tool: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Answer this call by a task; none if it is to be answered as any other."""
        try:
            if call.client.takes_tasks and tool in self.tools:
                return await self._begin_unasked(call, tool, arguments)
            requested = call.params.get("task") if call.client.requests_tasks else None
            return None if requested is None else await self._begin(call, tool, arguments, requested)
        except LanewayError as error:
            raise wire_error(error) from error

    async def serve(self, call: Call, method: str) -> dict[str, Any]:
        """Answer a request about tasks."""
        handler: _Method | None = None
        if call.client.is_stateless:
            handler = _STATELESS.get(method)
        elif call.client.requests_tasks:
            handler = _HANDSHAKE.get(method)
        if handler is None:
            raise not_found(method)
        if call.client.is_stateless:
            _check_declared(call)
        try:
            return await handler(self, call)
        except LanewayError as error:
            raise wire_error(error) from error

    def check_listen(self, call: Call) -> None:
        """Raise if a client that knows no tasks wants to be notified of them. Those that do must ask."""
        filters = call.params.get("notifications")
        if isinstance(filters, dict) and filters.get("taskIds") is not None:
            _check_declared(call)

    # ── news from behind the port ──────────────────────────────────────────

    def watched(self) -> frozenset[str]:
        """The ids of the tasks that a connected client would be notified of."""
        return frozenset(key for interests in list(self._notified) for key in interests.task_channels)

    def changed(self, task: Task) -> int:
        """The task has changed; returns how many clients were notified. Waits for no client."""
        notified = 0
        for interests in list(self._notified):
            channel = interests.task_channels.get(task.task_id)
            if channel is not None:
                notified += channel.notify(STATUS, _handshake_json(task))
        if task.is_over:
            self.forget(task.task_id)
        return notified

    def forget(self, task_id: str) -> None:
        """There will be no more news of this task."""
        for interests in list(self._notified):
            interests.task_channels.pop(task_id, None)

    def _watch(self, call: Call, task: Task) -> None:
        channels = call.interests.task_channels
        if task.is_over:
            return
        if len(channels) >= MAX_WATCHED and task.task_id not in channels:
            del channels[next(iter(channels))]
        channels[task.task_id] = call.channel
        self._notified.add(call.interests)

    # ── 2025-11-25 ─────────────────────────────────────────────────────────

    async def _begin(
        self, call: Call, tool: str, arguments: dict[str, Any], requested: Any
    ) -> dict[str, Any]:
        if tool not in self.tools:
            raise RemoteError(METHOD_NOT_FOUND, f"Tool '{code_label(tool)}' cannot be called as a task")
        task = await self._tasks.create(call, tool, arguments, ttl_ms=_ttl_ms(requested))
        self._watch(call, task)
        # A task begins as working, even one that has nothing to wait for.
        result: dict[str, Any] = {"task": _handshake_json(msgspec.structs.replace(task, status="working"))}
        return {**result, "_meta": {IMMEDIATE_KEY: task.message}} if task.message else result

    async def _get(self, call: Call) -> dict[str, Any]:
        task = await self._tasks.get(call, _task_id(call))
        self._watch(call, task)
        return _handshake_json(task)

    async def _result(self, call: Call) -> dict[str, Any]:
        task_id = _task_id(call)
        result = await self._tasks.result(call, task_id)
        return {**result, "_meta": {**result.get("_meta", {}), RELATED_KEY: {"taskId": task_id}}}

    async def _cancel(self, call: Call) -> dict[str, Any]:
        task = await self._tasks.get(call, _task_id(call))
        if not task.is_over:
            task = await self._tasks.cancel(call, task.task_id)
            if task.status == "cancelled":
                return _handshake_json(task)
        raise proxy_error(INVALID_PARAMS, f"Task {code_label(task.task_id)} is {task.status} already")

    async def _list(self, call: Call) -> dict[str, Any]:
        cursor = call.params.get("cursor")
        if cursor is not None and not isinstance(cursor, str):
            raise proxy_error(INVALID_PARAMS, "cursor must be the nextCursor of an earlier answer")
        tasks, next_cursor = await self._tasks.listed(call, cursor)
        more = {"nextCursor": next_cursor} if next_cursor is not None else {}
        return {"tasks": [_handshake_json(task) for task in tasks], **more}

    # ── the extension of the stateless era ─────────────────────────────────

    async def _begin_unasked(self, call: Call, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        task = await self._tasks.create(call, tool, arguments, ttl_ms=None)
        if task.is_over:
            return await self._tasks.result(call, task.task_id)
        return {"resultType": "task", **_stateless_json(task)}

    async def _get_with_outcome(self, call: Call) -> dict[str, Any]:
        task = await self._tasks.get(call, _task_id(call))
        if task.status in ("working", "cancelled"):
            return _stateless_json(task)
        try:
            result = await self._tasks.result(call, task.task_id)
        except TaskUnknown:
            raise
        except LanewayError as error:
            failure = wire_error(error)
            data = {"data": failure.data} if failure.data is not None else {}
            failed = msgspec.structs.replace(task, status="failed", message=task.message or failure.message)
            return {
                **_stateless_json(failed),
                "error": {"code": failure.code, "message": failure.message, **data},
            }
        # Here `failed` is for errors alone, not for a result that is one.
        completed = msgspec.structs.replace(task, status="completed")
        return {**_stateless_json(completed), "result": {"resultType": "complete", **result}}

    async def _update(self, call: Call) -> dict[str, Any]:
        """Responses to questions: our tasks ask none, and what nobody asked is ignored."""
        if not isinstance(call.params.get("inputResponses"), dict):
            raise proxy_error(INVALID_PARAMS, "tasks/update needs inputResponses")
        await self._tasks.get(call, _task_id(call))
        return {}

    async def _request_cancel(self, call: Call) -> dict[str, Any]:
        await self._tasks.cancel(call, _task_id(call))
        return {}


_Method: TypeAlias = Callable[[TaskRequests, Call], Awaitable[dict[str, Any]]]
_HANDSHAKE: dict[str, _Method] = {
    "tasks/get": TaskRequests._get,
    "tasks/result": TaskRequests._result,
    "tasks/cancel": TaskRequests._cancel,
    "tasks/list": TaskRequests._list,
}
_STATELESS: dict[str, _Method] = {
    "tasks/get": TaskRequests._get_with_outcome,
    "tasks/update": TaskRequests._update,
    "tasks/cancel": TaskRequests._request_cancel,
}


def _check_declared(call: Call) -> None:
    if not call.client.takes_tasks:
        needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {eras.TASKS_EXTENSION: {}}}}
        raise RemoteError(
            eras.MISSING_CAPABILITY,
            f"A client of tasks declares {eras.TASKS_EXTENSION} on each request",
            needed,
        )


def _task_id(call: Call) -> str:
    task_id = call.params.get("taskId")
    if not isinstance(task_id, str):
        raise proxy_error(INVALID_PARAMS, "A request about a task needs its taskId")
    return task_id


def _ttl_ms(requested: Any) -> int | None:
    """How long a client wants the task to be kept."""
    if not isinstance(requested, dict):
        raise proxy_error(INVALID_PARAMS, "task must be an object")
    ttl = requested.get("ttl")
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not math.isfinite(ttl) or ttl < 0:
        raise proxy_error(INVALID_PARAMS, "ttl must be a number of milliseconds")
    return int(ttl)


def _handshake_json(task: Task) -> dict[str, Any]:
    return {**_common(task), "ttl": task.ttl_ms, "pollInterval": task.poll_ms}


def _stateless_json(task: Task) -> dict[str, Any]:
    return {**_common(task), "ttlMs": task.ttl_ms, "pollIntervalMs": task.poll_ms}


def _common(task: Task) -> dict[str, Any]:
    return {
        "taskId": task.task_id,
        "status": task.status,
        **({"statusMessage": task.message} if task.message else {}),
        "createdAt": _time(task.created_at),
        "lastUpdatedAt": _time(task.updated_at),
    }


def _time(seconds: float) -> str:
    when = datetime.fromtimestamp(seconds, UTC)
    return when.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
