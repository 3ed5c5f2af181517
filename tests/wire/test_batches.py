"""Arrays of messages: every element served, the answers together in one array."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from laneway.base.errors import RemoteError
from laneway.wire.batch import MAX_BATCH, MAX_BATCH_COMMAS, MAX_OPEN_BATCHES
from tests.wire.support import DEADLINE_S, Desk, Gate, echo

NOT_A_MESSAGE = {"code": -32600, "message": "This is not a JSON-RPC message"}


def request(request_id: Any, method: str = "echo", params: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def answer(request_id: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def refusal(request_id: Any, error: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def by_id(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(answers, key=lambda one: str(one["id"]))


async def test_every_element_is_handled_and_the_answers_are_one_array() -> None:
    """Requests, notifications, answers to ours and nonsense, side by side; as the specification shows it."""
    desk = Desk()
    desk.on("echo", echo)
    call = asyncio.ensure_future(desk.peer.call("ours"))
    await desk.sent()
    desk.says(
        [
            request("a", params=[1]),
            {"jsonrpc": "2.0", "method": "told", "params": [7]},
            {"foo": "boo"},
            request("b", "none"),
            {"jsonrpc": "2.0", "id": 1, "result": "theirs"},
            request("c", params={"x": "é"}),
            17,
            [request("nested")],
        ]
    )

    answers = await desk.sent()
    assert by_id(answers) == by_id(
        [
            answer("a", [1]),
            refusal(None, NOT_A_MESSAGE),
            refusal("b", {"code": -32603, "message": "Internal error"}),
            answer("c", {"x": "é"}),
            refusal(None, NOT_A_MESSAGE),
            refusal(None, NOT_A_MESSAGE),
        ]
    )
    assert desk.notified == [("told", b"[7]")]
    assert await call == "theirs"
    await desk.wait_quiet()


async def test_a_batch_waits_for_its_slowest_and_holds_up_nobody_else() -> None:
    """Other messages are answered meanwhile."""
    desk = Desk()
    gate = Gate()
    desk.on("slow", gate)
    desk.on("echo", echo)
    desk.says([request(1, "slow"), request(2)], request(3))

    assert await desk.sent() == answer(3, None)
    await desk.wait_quiet()
    gate.opened.set()
    assert by_id(await desk.sent()) == [answer(1, "opened"), answer(2, None)]


async def test_a_batch_that_asks_nothing_is_answered_with_nothing() -> None:
    """Not with an empty array either."""
    desk = Desk()
    desk.says([{"method": "a"}, {"method": "b"}], [{"id": 99, "result": 1}])

    await desk.wait_quiet()
    assert desk.notified == [("a", b""), ("b", b"")]


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (b"[]", {"code": -32600, "message": "The batch is empty"}),
        (b" [ ] ", {"code": -32600, "message": "The batch is empty"}),
        (b'[{"id":1,"method":"echo"},{"id"]', {"code": -32700, "message": "This is not JSON"}),
        (b'[{"id":1,"method":"echo","params":"\xff"}]', {"code": -32700, "message": "This is not UTF-8"}),
        (
            b"[" + b"1," * MAX_BATCH + b"1]",
            {
                "code": -32600,
                "message": "The batch has more than 1024 messages; send them one by one or in smaller ones",
            },
        ),
        (
            b"[" + b"1," * (MAX_BATCH_COMMAS + 1) + b"not even looked at",
            {
                "code": -32600,
                "message": "The batch has more than 1024 messages; send them one by one or in smaller ones",
            },
        ),
    ],
)
async def test_a_batch_that_is_none_is_refused_with_one_answer(frame: bytes, error: dict[str, Any]) -> None:
    """A single object, as the specification wants it; the next message is served."""
    desk = Desk()
    desk.on("echo", echo)
    desk.says(frame, request(1))

    assert await desk.sent() == refusal(None, error)
    assert await desk.sent() == answer(1, None)
    await desk.wait_quiet()


async def test_where_batches_are_not_served_they_are_refused_whole() -> None:
    """MCP dropped them in 2025-06-18: a door can say so, even after the handshake."""
    desk = Desk(with_batches=False)
    desk.on("echo", echo)
    desk.says([request(1)])
    assert (await desk.sent())["error"] == {
        "code": -32600,
        "message": "Batches are not served here; send the messages one by one",
    }
    desk.peer.with_batches = True
    desk.says([request(1)])
    assert await desk.sent() == [answer(1, None)]


async def test_the_same_id_twice_in_one_batch_is_answered_twice() -> None:
    """Each request has its answer; only the first is served."""
    desk = Desk()
    desk.on("echo", echo)
    desk.says([request(1, params=1), request(1, params=2)])

    assert sorted(await desk.sent(), key=json.dumps) == sorted(
        [answer(1, 1), refusal(1, {"code": -32600, "message": "This request id is in use"})], key=json.dumps
    )


@pytest.mark.parametrize("reply", [None, RemoteError(-32800, "cancelled")])
async def test_a_cancelled_element_does_not_keep_the_others_waiting(reply: RemoteError | None) -> None:
    """Answered or not, as the door wants it."""
    desk = Desk()
    gate = Gate()
    desk.on("slow", gate)
    desk.on("echo", echo)
    desk.says([request("slow", "slow"), request("quick")])
    async with asyncio.timeout(DEADLINE_S):
        await gate.began.wait()
    desk.peer.cancel_theirs(b'"slow"', reply)

    expected = [answer("quick", None)]
    if reply is not None:
        expected.append(refusal("slow", {"code": -32800, "message": "cancelled"}))
    assert by_id(await desk.sent()) == by_id(expected)


async def test_closing_answers_an_open_batch_whole() -> None:
    """What was ready and what was not, in one last array."""
    desk = Desk()
    desk.on("slow", Gate())
    desk.on("echo", echo)
    desk.says([request(1, "slow"), request(2)])
    await desk.wait_quiet()
    async with asyncio.timeout(DEADLINE_S):
        await desk.peer.aclose()

    closing = {"code": -32000, "message": "The connection is closing"}
    assert by_id(await desk.sent()) == [refusal(1, closing), answer(2, None)]


async def test_open_batches_are_counted_and_one_too_many_is_refused() -> None:
    """Each holds answers in memory; when one is through, the next may come."""
    desk = Desk()
    gate = Gate()
    desk.on("slow", gate)
    desk.on("echo", echo)
    desk.says(*([request(number, "slow")] for number in range(MAX_OPEN_BATCHES)))
    desk.says([request("refused")])

    assert (await desk.sent())["error"]["message"] == "More than 16 batches at once; wait for an answer"
    gate.opened.set()
    for number in range(MAX_OPEN_BATCHES):
        assert await desk.sent() == [answer(number, "opened")]
    desk.says([request("served")])
    assert await desk.sent() == [answer("served", None)]
