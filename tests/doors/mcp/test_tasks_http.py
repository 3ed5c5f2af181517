"""Tasks over HTTP: statuses and headers of the stateless era, sessions and streams of the other."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from laneway.doors.mcp.eras import STATELESS_VERSION
from tests.core.support import until
from tests.doors.mcp.http_support import OTHER_TOKEN, Place, call, next_message, serving
from tests.doors.mcp.tasks_support import HandTasks, Message, server, stateless, text


def request(method: str, task_id: str, meta: Message | None = None) -> Message:
    params: Message = {"taskId": task_id, "inputResponses": {}}
    return {
        "jsonrpc": "2.0",
        "id": 7,
        "method": method,
        "params": {**params, "_meta": meta} if meta is not None else params,
    }


async def ask(place: Place, method: str, task_id: str, **headers: str) -> httpx2.Response:
    """A request of the stateless era."""
    mirrors = {"mcp_protocol_version": STATELESS_VERSION, "mcp_method": method}
    return await place.post(request(method, task_id, stateless()), **{**mirrors, **headers})


async def begin(place: Place) -> httpx2.Response:
    body = call("wait", {"job": "a"})
    body["params"]["_meta"] = stateless()
    mirrors = {"mcp_protocol_version": STATELESS_VERSION, "mcp_method": "tools/call", "mcp_name": "wait"}
    return await place.post(body, **mirrors)


async def test_a_task_is_made_and_found_by_requests_that_share_no_connection() -> None:
    """The header that names the task may be there, and must agree then."""
    mcp_server, _ = server(HandTasks())
    async with serving(mcp_server) as place:
        made = await begin(place)
        assert (made.status_code, made.json()["result"]["resultType"]) == (200, "task")
        for headers in ({}, {"mcp_name": "task-1"}, {"mcp_name": "=?base64?dGFzay0x?="}):
            found = await ask(place, "tasks/get", "task-1", **headers)
            assert (found.status_code, found.json()["result"]["status"]) == (200, "working")
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            wrong = await ask(place, method, "task-1", mcp_name="task-2")
            assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, -32020)


async def test_mistakes_have_the_statuses_of_their_errors() -> None:
    """Unknown, foreign, undeclared, of the other dialect."""
    mcp_server, _ = server(HandTasks())
    async with serving(mcp_server) as place:
        await begin(place)
        unknown = await ask(place, "tasks/get", "task-9")
        foreign = await ask(place, "tasks/get", "task-1", token=OTHER_TOKEN)
        other = await ask(place, "tasks/result", "task-1")
        undeclared = await place.post(
            request("tasks/get", "task-1", stateless({})),
            mcp_protocol_version=STATELESS_VERSION,
            mcp_method="tasks/get",
        )
    answers = [unknown, foreign, other, undeclared]
    assert [(each.status_code, each.json()["error"]["code"]) for each in answers] == [
        (400, -32602),
        (400, -32602),
        (404, -32601),
        (400, -32021),
    ]
    assert unknown.json()["error"]["message"].replace("9", "1") == foreign.json()["error"]["message"]


def call_as_task(job: str = "a") -> Message:
    body = call("wait", {"job": job})
    body["params"]["task"] = {}
    return body


async def test_a_session_is_notified_on_its_stream_until_it_ends() -> None:
    """The call that began the task is long answered; what ends with the session is only the notifying."""
    tasks = HandTasks()
    mcp_server, requests = server(tasks)
    assert requests is not None
    async with serving(mcp_server) as place:
        session, other = await place.shake_hands(), await place.shake_hands()
        for _ in range(2):
            assert "task" in (await place.post(call_as_task(), session)).json()["result"]
        async with place.streamed(None, session, method="GET") as events:
            assert requests.changed(tasks.finish("task-1", text("done"))) == 1
            _, news = await next_message(events)
        assert (news["method"], news["params"]["status"]) == ("notifications/tasks/status", "completed")
        assert requests.watched() == {"task-2"}
        await place.web.delete(place.url, headers=place.headers(session))
        await until(lambda: not requests.watched())
        found = await place.post(request("tasks/get", "task-2"), other)
        assert found.json()["result"]["status"] == "working"


@pytest.mark.parametrize("how", ["cancelled", "ended"])
async def test_a_wait_for_a_result_ends_with_its_client_and_the_task_goes_on(how: str) -> None:
    """Whether the client cancels its request or ends its session."""
    tasks = HandTasks()
    mcp_server, _ = server(tasks)
    async with serving(mcp_server) as place:
        session, other = await place.shake_hands(), await place.shake_hands()
        await place.post(call_as_task(), session)
        waiting: asyncio.Future[Any] = asyncio.ensure_future(
            place.post(request("tasks/result", "task-1"), session)
        )
        await until(lambda: tasks.waiting == 1)
        if how == "cancelled":
            notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
            await place.post(notice, session)
        else:
            await place.web.delete(place.url, headers=place.headers(session))
        await until(lambda: tasks.waiting == 0)
        waiting.cancel()
        tasks.finish("task-1", text("done"))
        result = await place.post(request("tasks/result", "task-1"), other)
        assert result.json()["result"]["content"] == text("done")["content"]
