"""Tasks in both dialects: what a call is answered by, what can be asked about a task, and who may ask."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from laneway.base.errors import RemoteError, UsageError
from tests.doors.mcp.tasks_support import (
    DECLARED,
    END,
    NO_TASK,
    SERVER,
    START,
    Caller,
    HandTasks,
    Message,
    handshake,
    server,
    stateless,
    task_server,
    text,
    with_handshake,
    without,
)

# ── the extension of the stateless era ─────────────────────────────────────


@pytest.mark.covers("J-tools.13")
async def test_a_client_that_declares_the_extension_gets_a_task_and_finds_the_result_in_it() -> None:
    """The client asks for nothing: it is for the server to decide."""
    tasks, mcp_server, _ = task_server()
    caller = Caller(mcp_server, meta=stateless())

    assert await caller.wait() == {
        "resultType": "task",
        **without("task-1", "working", START, "The job runs."),
    }
    working = {"resultType": "complete", **without("task-1", "working", START, "The job runs.")}
    assert await caller.ask("tasks/get", taskId="task-1") == working
    tasks.finish("task-1", text("done"))
    assert await caller.ask("tasks/get", taskId="task-1") == {
        "resultType": "complete",
        **without("task-1", "completed", END, "It is over."),
        "result": {"resultType": "complete", **text("done")},
    }
    assert tasks.created == [("me", "wait", {"job": "a"}, None)]


@pytest.mark.covers("J-tools.13")
@pytest.mark.parametrize("capabilities", [{}, {"extensions": {}}, {"extensions": {"other/tasks": {}}}])
async def test_a_client_that_did_not_declare_it_never_gets_a_task(capabilities: Message) -> None:
    """Nor may it ask about one: it is told what it must declare."""
    tasks, mcp_server, _ = task_server()
    caller = Caller(mcp_server, meta=stateless(capabilities))

    answer = await caller.wait(task={"ttl": 1})
    assert answer == {"resultType": "complete", **text("waited for a"), "_meta": SERVER}
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        with pytest.raises(RemoteError) as refused:
            await caller.ask(method, taskId="task-1", inputResponses={})
        assert refused.value.code == -32021
        assert refused.value.data == {"requiredCapabilities": DECLARED}
    assert tasks.created == []


async def test_a_task_that_is_over_at_once_is_answered_by_its_result() -> None:
    """Nobody has to come back for what is there."""
    _, mcp_server, _ = task_server()
    answer = await Caller(mcp_server, meta=stateless()).wait("over")
    assert answer == {"resultType": "complete", **text("over before"), "_meta": SERVER}


async def test_other_tools_are_called_as_ever() -> None:
    """Also with the `task` of the other dialect, which means nothing here."""
    tasks, mcp_server, _ = task_server()
    caller = Caller(mcp_server, meta=stateless())
    answer = await caller.ask("tools/call", name="now", arguments={}, task={"ttl": 60_000})
    assert answer == {"resultType": "complete", **text("now"), "_meta": SERVER}
    assert tasks.created == []


async def test_a_call_that_cannot_begin_is_refused_like_any_other() -> None:
    """By the error of the call itself; there is no task then."""
    tasks, mcp_server, _ = task_server()
    refused = (-32602, "wait needs a job")
    call = {"name": "wait", "arguments": {}}
    assert await Caller(mcp_server, meta=stateless()).error("tools/call", **call) == refused
    assert await (await handshake(mcp_server)).error("tools/call", **call, task={}) == refused
    assert tasks.created == []


async def test_a_tools_error_is_a_result_and_only_a_real_error_is_failed() -> None:
    """In this dialect; in the other one both are."""
    tasks, mcp_server, _ = task_server()
    caller, other = Caller(mcp_server, meta=stateless()), await handshake(mcp_server)
    for _ in range(3):
        await caller.wait()
    tasks.finish("task-1", {**text("no such job"), "isError": True})
    tasks.finish("task-2", UsageError("The job cannot be read."))
    tasks.finish("task-3", RemoteError(-32005, "Codex ended", {"exit": 1}))

    first, second, third = [await caller.ask("tasks/get", taskId=f"task-{n}") for n in (1, 2, 3)]
    assert first["status"] == "completed"
    assert first["result"] == {"resultType": "complete", **text("no such job"), "isError": True}
    assert second["status"] == "failed"
    assert second["error"]["message"] == "The job cannot be read."
    assert third["error"] == {"code": -32005, "message": "Codex ended", "data": {"exit": 1}}
    assert "result" not in second | third
    assert [(await other.ask("tasks/get", taskId=f"task-{n}"))["status"] for n in (1, 2, 3)] == ["failed"] * 3


async def test_a_cancelled_task_is_cancelled_and_cancelling_again_does_nothing() -> None:
    """The acknowledgement is empty, whatever the task is; only an unknown one is an error."""
    tasks, mcp_server, _ = task_server()
    caller = Caller(mcp_server, meta=stateless())
    empty = {"resultType": "complete", "_meta": SERVER}
    await caller.wait()
    assert await caller.ask("tasks/cancel", taskId="task-1") == empty
    cancelled = {"resultType": "complete", **without("task-1", "cancelled", END, "It is over.")}
    assert await caller.ask("tasks/get", taskId="task-1") == cancelled
    assert await caller.ask("tasks/cancel", taskId="task-1") == empty
    await caller.wait()
    tasks.finish("task-2", text("done"))
    assert await caller.ask("tasks/cancel", taskId="task-2") == empty
    assert (await caller.ask("tasks/get", taskId="task-2"))["status"] == "completed"


async def test_answers_that_nobody_asked_for_are_taken_and_ignored() -> None:
    """Our tasks ask nothing."""
    _, mcp_server, _ = task_server()
    caller = Caller(mcp_server, meta=stateless())
    await caller.wait()
    update = {"taskId": "task-1", "inputResponses": {"key": {"action": "accept"}}}
    assert await caller.ask("tasks/update", **update) == {"resultType": "complete", "_meta": SERVER}
    assert (await caller.ask("tasks/get", taskId="task-1"))["status"] == "working"
    assert await caller.error("tasks/update", taskId="task-1") == (
        -32602,
        "tasks/update needs inputResponses",
    )
    unknown = await caller.error("tasks/update", taskId="task-9", inputResponses={})
    assert unknown == (-32602, NO_TASK.format("task-9"))


# ── 2025-11-25 ─────────────────────────────────────────────────────────────


@pytest.mark.covers("J-tools.13")
async def test_a_call_that_asks_for_a_task_gets_one_and_its_result_is_waited_for() -> None:
    """A call of the same tool that does not ask is answered by the result, however long it takes."""
    tasks, mcp_server, _ = task_server()
    caller = await handshake(mcp_server)

    task = with_handshake("task-1", "working", START, "The job runs.")
    immediate = {"io.modelcontextprotocol/model-immediate-response": "The job runs."}
    assert await caller.wait(task={"ttl": 60_000.0}) == {"task": task, "_meta": immediate}
    assert tasks.created == [("me", "wait", {"job": "a"}, 60_000)]
    assert await caller.ask("tasks/get", taskId="task-1") == task
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        waiting = group.create_task(caller.ask("tasks/result", taskId="task-1"))
        while not tasks.waiting:
            await asyncio.sleep(0)
        tasks.finish("task-1", {**text("done"), "_meta": {"a": 1}})
    related = {"io.modelcontextprotocol/related-task": {"taskId": "task-1"}}
    assert waiting.result() == {**text("done"), "_meta": {"a": 1, **related}}
    assert await caller.ask("tasks/result", taskId="task-1") == waiting.result()
    assert await caller.wait() == text("waited for a")


async def test_a_wait_that_is_given_up_leaves_the_task_alone() -> None:
    """The client may come back for the result."""
    tasks, mcp_server, _ = task_server()
    caller = await handshake(mcp_server)
    await caller.wait(task={})
    waiting = asyncio.ensure_future(caller.ask("tasks/result", taskId="task-1"))
    while not tasks.waiting:
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await caller.ask("tasks/get", taskId="task-1"))["status"] == "working"
    tasks.finish("task-1", text("done"))
    assert (await caller.ask("tasks/result", taskId="task-1"))["content"] == text("done")["content"]


async def test_the_error_of_a_call_is_the_error_of_its_result() -> None:
    """Exactly what the call itself would have raised."""
    tasks, mcp_server, _ = task_server()
    caller = await handshake(mcp_server)
    await caller.wait(task={})
    tasks.finish("task-1", RemoteError(-32005, "Codex ended"))
    assert await caller.error("tasks/result", taskId="task-1") == (-32005, "Codex ended")


async def test_a_task_is_cancelled_once() -> None:
    """Cancelling one that is over is refused: it stays what it is."""
    tasks, mcp_server, _ = task_server()
    caller = await handshake(mcp_server)
    await caller.wait(task={})
    await caller.wait(task={})
    cancelled = with_handshake("task-1", "cancelled", END, "It is over.")
    assert await caller.ask("tasks/cancel", taskId="task-1") == cancelled
    tasks.finish("task-2", text("done"))
    assert await caller.error("tasks/cancel", taskId="task-1") == (-32602, "Task task-1 is cancelled already")
    assert await caller.error("tasks/cancel", taskId="task-2") == (-32602, "Task task-2 is completed already")
    assert await caller.error("tasks/result", taskId="task-1") == (-32800, "The task was cancelled.")


async def test_a_task_that_ends_while_it_is_being_cancelled_was_not_cancelled() -> None:
    """What the client is told is what the task is."""

    class Late(HandTasks):
        async def cancel(self, call: Any, task_id: str) -> Any:
            return self.finish(task_id, text("done"))

    mcp_server, _ = server(Late())
    caller = await handshake(mcp_server)
    await caller.wait(task={})
    assert await caller.error("tasks/cancel", taskId="task-1") == (-32602, "Task task-1 is completed already")


async def test_tasks_are_listed_page_by_page() -> None:
    """Only the caller's own; a cursor of another list leads nowhere."""
    _, mcp_server, _ = task_server()
    caller, other = await handshake(mcp_server), await handshake(mcp_server, "another")
    for _ in range(3):
        await caller.wait(task={})
    await other.wait(task={})
    first = await caller.ask("tasks/list")
    assert [task["taskId"] for task in first["tasks"]] == ["task-1", "task-2"]
    assert first["tasks"][0] == with_handshake("task-1", "working", START, "The job runs.")
    last = await caller.ask("tasks/list", cursor=first["nextCursor"])
    assert [task["taskId"] for task in last["tasks"]] == ["task-3"]
    assert "nextCursor" not in last
    assert [task["taskId"] for task in (await other.ask("tasks/list"))["tasks"]] == ["task-4"]
    wrong = (-32602, "This cursor is not valid for this list: start again without one.")
    assert await caller.error("tasks/list", cursor="x") == wrong
    assert (await caller.error("tasks/list", cursor=1))[0] == -32602


async def test_a_task_begins_as_working_even_if_nothing_is_left_to_do() -> None:
    """The dialect says so; the next question tells the truth."""
    _, mcp_server, requests = task_server()
    caller = await handshake(mcp_server)
    assert (await caller.wait("over", task={}))["task"]["status"] == "working"
    assert (await caller.ask("tasks/get", taskId="task-1"))["status"] == "completed"
    assert requests.watched() == frozenset()


async def test_a_tool_without_tasks_cannot_be_called_as_one() -> None:
    """The error is the one that the specification names; an unknown tool stays an unknown tool."""
    _, mcp_server, _ = task_server()
    caller = await handshake(mcp_server)
    refused = await caller.error("tools/call", name="now", arguments={}, task={})
    assert refused == (-32601, "Tool 'now' cannot be called as a task")
    assert await caller.ask("tools/call", name="now", arguments={}) == text("now")
    assert await caller.ask("tools/call", name="now", arguments={}, task=None) == text("now")
    unknown = await caller.error("tools/call", name="nothing", arguments={}, task={})
    assert unknown == (-32602, "Unknown tool 'nothing'")


@pytest.mark.parametrize("task", [True, "yes", [], {"ttl": "long"}, {"ttl": -1}, {"ttl": True}])
async def test_a_wish_that_makes_no_sense_is_refused(task: Any) -> None:
    """Before anything is begun."""
    tasks, mcp_server, _ = task_server()
    caller = await handshake(mcp_server)
    assert (await caller.error("tools/call", name="wait", arguments={"job": "a"}, task=task))[0] == -32602
    assert tasks.created == []
