"""The official Python client has calls answered as tasks, in both dialects, on pipes and over HTTP.

It can carry both dialects and drives neither by itself: a client extension, as anybody would write it, polls
in the stateless one; for 2025-11-25 it has the types of the messages.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import httpx2
import mcp_types
import pytest
from mcp.client.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, NotificationBinding, ResultClaim
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict, Field

from laneway.doors.mcp.eras import TASKS_EXTENSION
from laneway.doors.mcp.tasks import RELATED_KEY
from tests.core.support import LOOK_S, until
from tests.doors.mcp.http_support import OTHER_TOKEN, TOKEN, serving
from tests.doors.mcp.tasks_support import HandTasks, server, text

Finish: TypeAlias = Callable[[str, str], Awaitable[None]]
"""End a task, given its id, with a text."""
PROGRAM = Path(__file__).with_name("tasks_support.py")
TRANSPORTS = pytest.mark.parametrize("transport", ["pipes", "http"])


@asynccontextmanager
async def client(
    transport: str, era: str, folder: Path, extension: ClientExtension | None = None
) -> AsyncIterator[tuple[Client, Finish]]:
    more: Any = {"mode": era, "extensions": [extension] if extension is not None else []}
    async with asyncio.timeout(60):
        if transport == "pipes":
            words = [str(PROGRAM), str(folder)]
            parameters = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))

            async def write(task_id: str, words: str) -> None:
                (folder / task_id).write_text(words)

            async with Client(parameters, **more) as peer:
                yield peer, write
            return
        tasks = HandTasks()
        mcp_server, requests = server(tasks)
        assert requests is not None
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with serving(mcp_server) as place, httpx2.AsyncClient(headers=headers, timeout=30) as web:
            connected = Client(streamable_http_client(place.url, http_client=web), **more)

            async def finish(task_id: str, words: str) -> None:
                if era == "legacy":  # it opens the stream for notifications when it likes
                    await until(lambda: requests.changed(tasks.now(task_id)))
                requests.changed(tasks.finish(task_id, text(words)))

            async with connected as peer:
                yield peer, finish


def said(result: mcp_types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, mcp_types.TextContent)
    return content.text


# ── the extension of the stateless era ─────────────────────────────────────


class TaskFields(mcp_types.Result):
    model_config = ConfigDict(extra="allow")
    task_id: str = Field(alias="taskId")
    status: str
    poll_interval_ms: int = Field(alias="pollIntervalMs")
    ttl_ms: int | None = Field(alias="ttlMs")
    result: mcp_types.CallToolResult | None = None


class CreatedTask(TaskFields):
    result_type: Literal["task"] = Field(alias="resultType")


class GetTask(mcp_types.Request[dict[str, Any], Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param: ClassVar[str | None] = "taskId"


class CancelTask(mcp_types.Request[dict[str, Any], Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    name_param: ClassVar[str | None] = "taskId"


class Polling(ClientExtension):
    """Resolves a task by asking until it is over. `on_task` is called once with its id."""

    identifier = TASKS_EXTENSION

    def __init__(self, on_task: Callable[[str], Awaitable[None]]) -> None:
        self.seen: list[str] = []
        self._on_task = on_task

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self._resolve)]

    async def _resolve(self, task: CreatedTask, context: ClaimContext) -> mcp_types.CallToolResult:
        request = GetTask(params={"taskId": task.task_id})
        self.seen.append(task.status)
        while True:
            now = await context.session.send_request(request, TaskFields)
            if now.status != "working":
                assert now.result is not None
                return now.result
            if len(self.seen) == 1:
                self.seen.append(now.status)
                await self._on_task(task.task_id)
            await asyncio.sleep(LOOK_S)


@TRANSPORTS
async def test_an_extension_of_the_official_client_resolves_a_call_by_its_task(
    transport: str, tmp_path: Path
) -> None:
    """For the code that called the tool there is no difference."""
    finish: Finish
    polling = Polling(lambda task_id: finish(task_id, "the job is done"))
    async with client(transport, "auto", tmp_path, polling) as (peer, finish):
        assert peer.protocol_version == "2026-07-28"
        assert peer.server_capabilities.extensions == {TASKS_EXTENSION: {}}
        assert said(await peer.call_tool("wait", {"job": "a"})) == "the job is done"
        assert polling.seen == ["working", "working"]
        assert said(await peer.call_tool("now", {})) == "now"
        with pytest.raises(MCPError) as unknown:
            await peer.session.send_request(GetTask(params={"taskId": "task-9"}), TaskFields)
        assert unknown.value.code == -32602
        await peer.session.send_request(CancelTask(params={"taskId": "task-1"}), mcp_types.EmptyResult)


@TRANSPORTS
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_the_official_client_without_the_extension_waits_for_the_result(
    transport: str, era: str, tmp_path: Path
) -> None:
    """As it does today."""
    async with client(transport, era, tmp_path) as (peer, _):
        assert said(await peer.call_tool("wait", {"job": "a"})) == "waited for a"


# ── 2025-11-25 ─────────────────────────────────────────────────────────────


class Listening(ClientExtension):
    """Keeps what it is notified of. Its name means nothing."""

    identifier = "test.example/listening"

    def __init__(self) -> None:
        self.heard: list[mcp_types.TaskStatusNotificationParams] = []

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        async def hear(params: mcp_types.TaskStatusNotificationParams) -> None:
            self.heard.append(params)

        kind = mcp_types.TaskStatusNotificationParams
        return [NotificationBinding(method="notifications/tasks/status", params_type=kind, handler=hear)]


async def begin(peer: Client) -> mcp_types.Task:
    """The official client takes no task as the result of `tools/call`: so its types read the raw one."""
    metadata = mcp_types.TaskMetadata(ttl=60_000)
    params = mcp_types.CallToolRequestParams(name="wait", arguments={"job": "a"}, task=metadata)
    wire = params.model_dump(by_alias=True, mode="json", exclude_none=True)
    raw = await peer.session._dispatcher.send_raw_request("tools/call", wire, {})
    return mcp_types.CreateTaskResult.model_validate(raw, by_name=False).task


def task_request(method: str, task_id: str) -> Any:
    match method:
        case "get":
            return mcp_types.GetTaskRequest(params=mcp_types.GetTaskRequestParams(task_id=task_id))
        case "result":
            return mcp_types.GetTaskPayloadRequest(
                params=mcp_types.GetTaskPayloadRequestParams(task_id=task_id)
            )
        case _:
            return mcp_types.CancelTaskRequest(params=mcp_types.CancelTaskRequestParams(task_id=task_id))


@TRANSPORTS
async def test_the_types_of_the_official_client_fit_the_older_dialect(transport: str, tmp_path: Path) -> None:
    """It is told that tools may be called as tasks, asks, waits, lists, cancels and is notified."""
    listening = Listening()
    async with client(transport, "legacy", tmp_path, listening) as (peer, finish):
        assert peer.protocol_version == "2025-11-25"
        capability = peer.server_capabilities.tasks
        assert capability is not None
        assert capability.requests is not None
        assert capability.requests.tools is not None
        assert capability.requests.tools.call is not None
        tools = {tool.name: tool.execution for tool in (await peer.list_tools()).tools}
        assert tools == {"wait": mcp_types.ToolExecution(task_support="optional"), "now": None}

        task = await begin(peer)
        ask = peer.session.send_request
        got = await ask(task_request("get", task.task_id), mcp_types.GetTaskResult)
        assert (got.task_id, got.status, got.poll_interval) == (task.task_id, "working", 250)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(ask(task_request("result", task.task_id), mcp_types.CallToolResult))
            await finish(task.task_id, "the job is done")
        assert said(waiting.result()) == "the job is done"
        assert waiting.result().meta == {RELATED_KEY: {"taskId": task.task_id}}
        await until(lambda: listening.heard and listening.heard[-1].status == "completed")
        assert {news.task_id for news in listening.heard} == {task.task_id}

        second = await begin(peer)
        listed = await ask(mcp_types.ListTasksRequest(), mcp_types.ListTasksResult)
        assert [(each.task_id, each.status) for each in listed.tasks] == [
            (task.task_id, "completed"),
            (second.task_id, "working"),
        ]
        cancelled = await ask(task_request("cancel", second.task_id), mcp_types.CancelTaskResult)
        assert cancelled.status == "cancelled"
        with pytest.raises(MCPError) as refused:
            await ask(task_request("cancel", task.task_id), mcp_types.CancelTaskResult)
        assert refused.value.code == -32602


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_over_http_a_task_belongs_to_the_token_that_began_it(era: str) -> None:
    """Another token's client does not find it; another client of the same token does."""
    tasks = HandTasks()
    mcp_server, _ = server(tasks)
    async with serving(mcp_server) as place:

        @asynccontextmanager
        async def of(token: str) -> AsyncIterator[Client]:
            headers = {"authorization": f"Bearer {token}"}
            async with httpx2.AsyncClient(headers=headers, timeout=30) as web:
                transport = streamable_http_client(place.url, http_client=web)
                extension = Polling(lambda task_id: asyncio.sleep(0))
                async with Client(transport, mode=era, extensions=[extension]) as peer:
                    yield peer

        request = task_request("get", "task-1") if era == "legacy" else GetTask(params={"taskId": "task-1"})
        kind: Any = mcp_types.GetTaskResult if era == "legacy" else TaskFields
        async with of(TOKEN) as owner:
            if era == "legacy":
                await begin(owner)
            else:
                await owner.session.call_tool("wait", {"job": "a"}, allow_claimed=True)
        async with of(TOKEN) as same, of(OTHER_TOKEN) as stranger:
            assert (await same.session.send_request(request, kind)).status == "working"
            with pytest.raises(MCPError) as unknown:
                await stranger.session.send_request(request, kind)
            assert unknown.value.code == -32602
    assert len({principal for principal, _, _, _ in tasks.created}) == 1
