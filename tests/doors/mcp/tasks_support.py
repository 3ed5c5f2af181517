"""Tasks under a test's control, a server with one tool that can be called as a task, and plain clients of it.

As a program (`python tasks_support.py FOLDER`) it serves standard input and output. FOLDER keeps its tasks
when it is started again: one file `<task id>.begun` each. A task ends as soon as a test writes the file
`<task id>`, whose content is the text of the result.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import BadCursor, LanewayError, RemoteError, TaskUnknown
from laneway.doors.mcp.eras import CAPABILITIES_KEY, CLIENT_KEY, TASKS_EXTENSION, VERSION_KEY
from laneway.doors.mcp.server import Call, Connection, McpServer, Offer
from laneway.doors.mcp.server_info import ServerInfo
from laneway.doors.mcp.stdio import OpenServer, serve_stdio
from laneway.doors.mcp.tasks import Task, TaskRequests, Tasks
from laneway.wire.messages import INVALID_PARAMS, Raw, encode

Message = dict[str, Any]

INFO = {"name": "stub", "version": "1"}
SERVER = {"io.modelcontextprotocol/serverInfo": INFO}
"""The `_meta` of each result of the stateless era."""
DECLARED: Message = {"extensions": {TASKS_EXTENSION: {}}}
"""The capabilities of a client that knows the extension."""
EXPIRES_MS = 86_400_000
POLL_MS = 250
"""As often as Claude Code asks at most."""
PAGE = 2
LOOK_S = 0.05
START, END = "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.500Z"
NO_TASK = "There is no task {}: it never was, has expired or is not yours."
TOOLS: list[Message] = [
    {"name": "wait", "description": "Wait for a job to end.", "inputSchema": {"type": "object"}},
    {"name": "now", "description": "Answer at once.", "inputSchema": {"type": "object"}},
]


def text(words: str) -> Message:
    return {"content": [{"type": "text", "text": words}]}


class HandTasks:
    """The port `Tasks`: tasks that end when the test says so. Outlives the servers that use it."""

    tools = frozenset({"wait"})

    def __init__(self) -> None:
        self.created: list[tuple[str, str, Message, int | None]] = []
        """Of each task its principal, its tool, its arguments and the wish for its time to live."""
        self.waiting = 0
        """Calls of `result` that wait."""
        self._kept: dict[str, tuple[str, Task]] = {}
        self._outcomes: dict[str, asyncio.Future[Message]] = {}
        self._ids = itertools.count(1)

    async def create(self, call: Call, tool: str, arguments: Message, *, ttl_ms: int | None) -> Task:
        if "job" not in arguments:
            raise RemoteError(INVALID_PARAMS, "wait needs a job")
        self.created.append((call.principal, tool, arguments, ttl_ms))
        task = self.begin(call.principal, f"task-{next(self._ids)}")
        return self.finish(task.task_id, text("over before")) if arguments["job"] == "over" else task

    def begin(self, principal: str, task_id: str) -> Task:
        task = Task(
            task_id=task_id,
            status="working",
            created_at=0.0,
            updated_at=0.0,
            ttl_ms=EXPIRES_MS,
            poll_ms=POLL_MS,
            message="The job runs.",
        )
        self._kept[task_id] = (principal, task)
        self._outcomes[task_id] = asyncio.get_running_loop().create_future()
        return task

    async def get(self, call: Call, task_id: str) -> Task:
        principal, task = self._kept.get(task_id, ("", None))
        if task is None or principal != call.principal:
            raise TaskUnknown(task_id)
        return task

    async def result(self, call: Call, task_id: str) -> Message:
        await self.get(call, task_id)
        self.waiting += 1
        try:
            return await asyncio.shield(self._outcomes[task_id])
        finally:
            self.waiting -= 1

    async def cancel(self, call: Call, task_id: str) -> Task:
        task = await self.get(call, task_id)
        if task.is_over:
            return task
        return self.finish(task_id, RemoteError(-32800, "The task was cancelled."), "cancelled")

    async def listed(self, call: Call, cursor: str | None) -> tuple[list[Task], str | None]:
        mine = [task for principal, task in self._kept.values() if principal == call.principal]
        if cursor is not None and not cursor.isdecimal():
            raise BadCursor
        first = int(cursor or 0)
        later = first + PAGE
        return mine[first:later], str(later) if later < len(mine) else None

    # ── what a test does ───────────────────────────────────────────────────

    def finish(self, task_id: str, outcome: Message | LanewayError, status: str = "") -> Task:
        """End a task with a result or an error."""
        principal, task = self._kept[task_id]
        is_bad = isinstance(outcome, LanewayError) or outcome.get("isError")
        task = msgspec.structs.replace(
            task,
            status=status or ("failed" if is_bad else "completed"),
            updated_at=1.5,
            message="It is over.",
        )
        self._kept[task_id] = (principal, task)
        future = self._outcomes[task_id]
        if isinstance(outcome, LanewayError):
            future.set_exception(outcome)
            future.exception()  # nobody needs to ask for it
        else:
            future.set_result(outcome)
        return task

    def now(self, task_id: str) -> Task:
        return self._kept[task_id][1]

    def drop(self, task_id: str) -> None:
        """Forget a task, as when it has expired."""
        del self._kept[task_id]

    @property
    def open_ids(self) -> list[str]:
        return [task_id for task_id, (_, task) in self._kept.items() if not task.is_over]


async def wait(call: Call, arguments: Message) -> Message:
    return text(f"waited for {arguments.get('job')}")


async def now(call: Call, arguments: Message) -> Message:
    return text("now")


def server(tasks: Tasks | None) -> tuple[McpServer, TaskRequests | None]:
    requests = TaskRequests(tasks) if tasks is not None else None
    offers = [Offer(TOOLS[0], wait), Offer(TOOLS[1], now)]
    return McpServer(INFO, offers, tasks=requests), requests


def stateless(capabilities: Message | None = None) -> Message:
    """The `_meta` of a request of the stateless era."""
    return {
        VERSION_KEY: "2026-07-28",
        CLIENT_KEY: {"name": "test", "version": "1"},
        CAPABILITIES_KEY: DECLARED if capabilities is None else capabilities,
    }


class Caller:
    """A client in this process: asks, and keeps what it is notified of."""

    def __init__(self, server: McpServer, principal: str = "me", meta: Message | None = None) -> None:
        """With `meta` it is a client of the stateless era."""
        self.heard: list[tuple[str, Message]] = []
        self.connection = Connection(principal, self)
        self._server = server
        self._meta = meta
        self._ids = itertools.count(1)

    def notify(self, method: str, params: Any) -> bool:
        self.heard.append((method, json.loads(encode(params))))
        return True

    async def call(self, method: str, params: Any) -> Any:
        raise AssertionError("tasks ask clients nothing")

    async def greet(self, version: str = "2025-11-25") -> Message:
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        return await self.ask("initialize", **params)

    async def ask(self, method: str, /, **params: Any) -> Message:
        meta = {"_meta": {**self._meta, **params.get("_meta", {})}} if self._meta is not None else {}
        raw = Raw(encode({**params, **meta}))
        request_id = str(next(self._ids)).encode()
        answer: Message = json.loads(
            encode(await self._server.serve(self.connection, method, raw, request_id))
        )
        return answer

    async def wait(self, job: str = "a", **more: Any) -> Message:
        return await self.ask("tools/call", name="wait", arguments={"job": job}, **more)

    async def error(self, method: str, /, **params: Any) -> tuple[int, str]:
        """The error of a request that must be refused."""
        try:
            answer = await self.ask(method, **params)
        except RemoteError as error:
            return error.code, error.message
        raise AssertionError(answer)


def task_server() -> tuple[HandTasks, McpServer, TaskRequests]:
    tasks = HandTasks()
    mcp_server, requests = server(tasks)
    assert requests is not None
    return tasks, mcp_server, requests


async def handshake(mcp_server: McpServer, principal: str = "me", version: str = "2025-11-25") -> Caller:
    caller = Caller(mcp_server, principal)
    await caller.greet(version)
    return caller


def with_handshake(task_id: str, status: str, at: str, message: str) -> Message:
    return {
        "taskId": task_id,
        "status": status,
        "statusMessage": message,
        "createdAt": START,
        "lastUpdatedAt": at,
        "ttl": EXPIRES_MS,
        "pollInterval": POLL_MS,
    }


def without(task_id: str, status: str, at: str, message: str) -> Message:
    """A task in the stateless dialect."""
    task = with_handshake(task_id, status, at, message)
    ttl, poll = task.pop("ttl"), task.pop("pollInterval")
    return {**task, "ttlMs": ttl, "pollIntervalMs": poll, "_meta": SERVER}


# ── as a program ───────────────────────────────────────────────────────────


class KeptTasks(HandTasks):
    """Begun tasks survive the process."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        for path in folder.glob("*.begun"):
            super().begin(path.read_text(), path.stem)

    def begin(self, principal: str, task_id: str) -> Task:
        (self._folder / f"{task_id}.begun").write_text(principal)
        return super().begin(principal, task_id)


async def _finish_by_files(folder: Path, tasks: HandTasks, requests: TaskRequests) -> None:
    while True:
        for task_id in tasks.open_ids:
            if (folder / task_id).exists():
                words = (folder / task_id).read_text()
                requests.changed(tasks.finish(task_id, text(words)))
        await asyncio.sleep(LOOK_S)


async def main(folder: Path) -> None:
    tasks = KeptTasks(folder)
    mcp_server, requests = server(tasks)
    assert requests is not None

    async def nothing() -> None:
        pass

    @asynccontextmanager
    async def opened() -> AsyncIterator[OpenServer]:
        yield OpenServer(mcp_server, nothing)

    finishing = asyncio.create_task(_finish_by_files(folder, tasks, requests))
    try:
        await serve_stdio(ServerInfo(info=INFO, tools=tuple(TOOLS), task_tools=tasks.tools), opened)
    finally:
        finishing.cancel()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
