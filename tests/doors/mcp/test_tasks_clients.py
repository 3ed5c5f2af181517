"""Who knows of tasks, whose tasks they are, and who is notified of what becomes of them."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from laneway.doors.mcp.server import Interests, McpServer
from laneway.doors.mcp.subscriptions import Subscriptions
from laneway.doors.mcp.tasks import MAX_WATCHED, TaskRequests
from tests.doors.mcp.tasks_support import (
    DECLARED,
    END,
    NO_TASK,
    SERVER,
    TOOLS,
    Caller,
    HandTasks,
    Message,
    handshake,
    server,
    stateless,
    task_server,
    text,
    with_handshake,
)

# ── who knows of tasks ─────────────────────────────────────────────────────


async def test_each_dialect_announces_tasks_in_its_own_way() -> None:
    """And older versions hear nothing of them."""
    _, mcp_server, _ = task_server()
    capability: Message = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    latest = Caller(mcp_server)
    assert (await latest.greet())["capabilities"] == {"tools": {"listChanged": True}, "tasks": capability}
    supported = {**TOOLS[0], "execution": {"taskSupport": "optional"}}
    assert (await latest.ask("tools/list"))["tools"] == [supported, TOOLS[1]]

    older = Caller(mcp_server)
    assert (await older.greet("2025-06-18"))["capabilities"] == {"tools": {"listChanged": True}}
    assert (await older.ask("tools/list"))["tools"] == TOOLS

    newest = Caller(mcp_server, meta=stateless({}))
    assert (await newest.ask("server/discover"))["capabilities"] == {"tools": {}, **DECLARED}
    assert (await newest.ask("tools/list"))["tools"] == TOOLS


async def test_what_a_dialect_does_not_know_is_not_found() -> None:
    """The methods of one dialect in another, and any of them in older versions or without tasks."""
    _, mcp_server, _ = task_server()
    stateless_caller = Caller(mcp_server, meta=stateless())
    latest = await handshake(mcp_server)
    old = [await handshake(mcp_server, version=v) for v in ("2025-06-18", "2025-03-26", "2024-11-05")]
    bare, _ = server(None)
    everything = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update")
    cases = [
        (stateless_caller, ("tasks/result", "tasks/list", "tasks/nothing")),
        (latest, ("tasks/update", "tasks/nothing")),
        *((caller, everything) for caller in old),
        (await handshake(bare), everything),
        (Caller(bare, meta=stateless()), everything),
    ]
    for caller, methods in cases:
        for method in methods:
            assert await caller.error(method, taskId="task-1") == (-32601, f"method not found: {method}")


async def test_older_versions_and_servers_without_tasks_ignore_the_wish_for_one() -> None:
    """As they ignore whatever else they do not know."""
    _, mcp_server, _ = task_server()
    old = await handshake(mcp_server, version="2025-06-18")
    assert await old.wait(task={"ttl": 1}) == text("waited for a")
    bare, _ = server(None)
    assert await (await handshake(bare)).wait(task="nonsense") == text("waited for a")
    assert await Caller(bare, meta=stateless()).wait() == {
        "resultType": "complete",
        **text("waited for a"),
        "_meta": SERVER,
    }


async def test_a_task_of_somebody_else_is_as_unknown_as_one_that_never_was() -> None:
    """In the same words, so that nobody learns which ids there are."""
    tasks, mcp_server, _ = task_server()
    await Caller(mcp_server, "me", stateless()).wait()
    newest, latest = Caller(mcp_server, "another", stateless()), await handshake(mcp_server, "another")
    for task_id in ("task-1", "task-9"):
        unknown = (-32602, NO_TASK.format(task_id))
        for method in ("tasks/get", "tasks/cancel"):
            assert await newest.error(method, taskId=task_id) == unknown
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            assert await latest.error(method, taskId=task_id) == unknown
    assert tasks.open_ids == ["task-1"]


@pytest.mark.parametrize("params", [{}, {"taskId": 1}, {"taskId": None}, {"taskId": ["task-1"]}])
async def test_a_request_without_a_task_id_is_refused(params: Message) -> None:
    """By a sentence, in both dialects."""
    _, mcp_server, _ = task_server()
    refused = (-32602, "A request about a task needs its taskId")
    latest, newest = await handshake(mcp_server), Caller(mcp_server, meta=stateless())
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        assert await latest.error(method, **params) == refused
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert await newest.error(method, inputResponses={}, **params) == refused


async def test_ids_stay_good_when_the_server_starts_again_and_in_the_other_dialect() -> None:
    """The front end keeps nothing; the port does."""
    tasks, before, _ = task_server()
    await Caller(before, meta=stateless()).wait()
    after, requests = server(tasks)
    assert requests is not None
    caller = await handshake(after)
    assert (await caller.ask("tasks/get", taskId="task-1"))["status"] == "working"
    requests.changed(tasks.finish("task-1", text("done")))
    assert [params["status"] for _, params in caller.heard] == ["completed"]
    assert (await caller.ask("tasks/result", taskId="task-1"))["content"] == text("done")["content"]


async def test_a_task_that_expires_between_two_looks_is_unknown_and_did_not_fail() -> None:
    """Its state and its result are two questions to the port."""

    class Expiring(HandTasks):
        async def result(self, call: Any, task_id: str) -> Message:
            self.drop(task_id)
            return await super().result(call, task_id)

    tasks = Expiring()
    mcp_server, _ = server(tasks)
    caller = Caller(mcp_server, meta=stateless())
    await caller.wait()
    tasks.finish("task-1", text("done"))
    assert await caller.error("tasks/get", taskId="task-1") == (-32602, NO_TASK.format("task-1"))


# ── notifications ──────────────────────────────────────────────────────────


async def test_a_client_is_notified_of_its_tasks_until_they_are_over() -> None:
    """Whoever began a task or asked about it; nobody else."""
    tasks, mcp_server, requests = task_server()
    caller, again, other = [await handshake(mcp_server) for _ in range(3)]
    await caller.wait(task={})
    await again.ask("tasks/get", taskId="task-1")
    assert requests.watched() == {"task-1"}
    assert requests.changed(tasks.finish("task-1", text("done"))) == 2
    news = ("notifications/tasks/status", with_handshake("task-1", "completed", END, "It is over."))
    assert (caller.heard, again.heard, other.heard) == ([news], [news], [])
    assert requests.watched() == frozenset()
    await caller.ask("tasks/get", taskId="task-1")
    assert requests.watched() == frozenset()


async def test_clients_of_the_stateless_era_are_not_notified() -> None:
    """They ask, as often as the task says."""
    tasks, mcp_server, requests = task_server()
    caller = Caller(mcp_server, meta=stateless())
    await caller.wait()
    await caller.ask("tasks/get", taskId="task-1")
    assert requests.watched() == frozenset()
    assert requests.changed(tasks.finish("task-1", text("done"))) == 0
    assert caller.heard == []


async def test_a_client_that_listens_is_told_that_it_will_not_hear_of_tasks() -> None:
    """One that knows no tasks and wants to hear of them is refused, as the extension says."""

    async def nothing(principal: str, uri: str) -> bool:
        return False

    news = Subscriptions(lambda principal, uri: None, nothing)
    mcp_server = McpServer({"name": "stub"}, [], subscriptions=news, tasks=TaskRequests(HandTasks()))
    wanted = {"taskIds": ["task-1"]}
    caller, stranger = Caller(mcp_server, meta=stateless()), Caller(mcp_server, meta=stateless({}))
    refused = await stranger.error("subscriptions/listen", notifications=wanted)
    assert refused[0] == -32021
    listening = asyncio.ensure_future(caller.ask("subscriptions/listen", notifications=wanted))
    while not caller.heard:
        await asyncio.sleep(0)
    assert caller.heard[0][1]["notifications"] == {}
    mcp_server.end_subscriptions()
    await listening


async def test_a_client_that_is_gone_leaves_nothing_behind() -> None:
    """Neither its tasks' ids nor its channel."""
    tasks, mcp_server, requests = task_server()
    caller = await handshake(mcp_server)
    await caller.wait(task={})
    gone: weakref.ref[Interests] = weakref.ref(caller.connection.interests)
    del caller
    gc.collect()
    assert gone() is None
    assert requests.watched() == frozenset()
    assert tasks.open_ids == ["task-1"]


async def test_a_client_is_notified_of_so_many_tasks_and_not_more() -> None:
    """The oldest goes; a task that is no more can be forgotten."""
    _, mcp_server, requests = task_server()
    caller = await handshake(mcp_server)
    for _ in range(MAX_WATCHED + 1):
        await caller.wait(task={})
    assert len(requests.watched()) == MAX_WATCHED
    assert "task-1" not in requests.watched()
    requests.forget("task-2")
    assert len(requests.watched()) == MAX_WATCHED - 1
