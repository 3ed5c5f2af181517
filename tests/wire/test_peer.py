"""JSON-RPC both ways: ids, order, concurrency, cancellation and the one boundary for errors."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest

from laneway.base.errors import RemoteError, WireBroken
from laneway.wire.peer import MAX_BACKLOG_BYTES, MAX_IN_FLIGHT, Peer, Raw
from tests.wire.support import DEADLINE_S, Desk, Gate, cancel_notice, echo


async def fail(error: Exception) -> None:
    raise error


async def test_two_peers_call_each_other_at_the_same_time() -> None:
    """Both use the id 1, and neither takes the other's answer for its own."""
    loop = asyncio.get_running_loop()

    async def here(method: str, params: Raw, request_id: bytes) -> Any:
        return ["here", method, params, await left.call("back", {"from": "here"})]

    async def there(method: str, params: Raw, request_id: bytes) -> Any:
        return ["there", method, params]

    def to_the_right(data: bytes) -> None:
        loop.call_soon(right.feed, data)

    def to_the_left(data: bytes) -> None:
        loop.call_soon(left.feed, data)

    left = Peer(to_the_right, on_request=here, on_notification=lambda *_: None)
    right = Peer(to_the_left, on_request=there, on_notification=lambda *_: None, with_header=False)
    async with asyncio.timeout(DEADLINE_S):
        from_right, from_left = await asyncio.gather(left.call("a", 1), right.call("b", 2))

    assert from_right == ["there", "a", 1]
    assert from_left == ["here", "b", 2, ["there", "back", {"from": "here"}]]


@pytest.mark.parametrize(
    "request_id",
    [
        b"1",
        b"-0",
        b"1.0",
        b"1.50e+2",
        b"1e400",
        b"123456789012345678901234567890123456789012345678901234567890",
        b"null",
        b"true",
        b'"1"',
        b'""',
        b'"a\\u00e9\\/\\n"',
        b'"\xc3\xa9 \xf0\x9f\x90\xa2"',
        b'["a", 1]',
        b'{"deep": {"er": [ ]}}',
    ],
)
async def test_an_id_of_any_kind_comes_back_byte_for_byte(request_id: bytes) -> None:
    """Other people's ids are not ours to read, round or rewrite."""
    desk = Desk()
    desk.on("echo", echo)

    desk.says(b'{"jsonrpc":"2.0", "id" : ' + request_id + b' , "method":"echo","params":[1]}')

    assert await desk.sent_bytes() == b'{"jsonrpc":"2.0","id":' + request_id + b',"result":[1]}'
    assert desk.ids == [request_id]


async def test_ids_that_look_alike_are_different_requests() -> None:
    """`1`, `1.0` and `"1"` may be open at once."""
    desk = Desk(with_header=False)
    gate = Gate()
    desk.on("wait", gate)
    desk.says(*(b'{"id":%s,"method":"wait"}' % one for one in (b"1", b"1.0", b'"1"')))
    gate.opened.set()

    assert [await desk.sent_bytes() for _ in range(3)] == [
        b'{"id":1,"result":"opened"}',
        b'{"id":1.0,"result":"opened"}',
        b'{"id":"1","result":"opened"}',
    ]


@pytest.mark.parametrize("with_header", [True, False])
async def test_the_header_is_optional_in_and_as_configured_out(with_header: bool) -> None:
    """app-server omits it, MCP and ACP demand it; both are read by either kind of peer."""
    header = {"jsonrpc": "2.0"} if with_header else {}
    desk = Desk(with_header=with_header)
    desk.on("echo", echo)
    desk.says({"id": 1, "method": "echo", "params": {}}, {"jsonrpc": "2.0", "id": 2, "method": "none"})
    desk.peer.notify("told", [1])
    call = asyncio.ensure_future(desk.peer.call("ask"))

    sent = [await desk.sent() for _ in range(4)]

    assert sorted(sent, key=json.dumps) == sorted(
        [
            {**header, "id": 1, "result": {}},
            {**header, "id": 2, "error": {"code": -32603, "message": "Internal error"}},
            {**header, "method": "told", "params": [1]},
            {**header, "id": 1, "method": "ask"},
        ],
        key=json.dumps,
    )
    desk.says({"id": 1, "result": None})
    assert await call is None


async def test_what_is_said_in_one_turn_of_the_loop_is_one_write() -> None:
    """Order is kept and nothing waits for more to come."""
    desk = Desk()
    for number in range(3):
        desk.peer.notify("n", number)

    assert [(await desk.sent())["params"] for _ in range(3)] == [0, 1, 2]
    assert desk.writes == 1


async def test_notifications_keep_their_order_around_a_slow_request() -> None:
    """They are handed over on the reader, in receive order; a request waits aside."""
    desk = Desk()
    gate = Gate()
    desk.on("slow", gate)
    desk.says(
        {"method": "a"},
        {"id": 1, "method": "slow"},
        {"method": "b", "params": {"x": [1, 2]}},
        {"method": "a", "params": None},
    )

    assert desk.notified == [("a", b""), ("b", b'{"x": [1, 2]}'), ("a", b"null")]
    gate.opened.set()
    assert await desk.sent() == {"jsonrpc": "2.0", "id": 1, "result": "opened"}


async def test_a_slow_request_does_not_hold_up_a_later_one() -> None:
    """Requests are served side by side."""
    desk = Desk()
    gate = Gate()
    desk.on("slow", gate)
    desk.on("echo", echo)
    desk.says({"id": 1, "method": "slow"}, {"id": 2, "method": "echo", "params": "quick"})

    assert await desk.sent() == {"jsonrpc": "2.0", "id": 2, "result": "quick"}
    gate.opened.set()
    assert await desk.sent() == {"jsonrpc": "2.0", "id": 1, "result": "opened"}


async def test_an_answer_is_seen_before_the_message_behind_it() -> None:
    """`on_reply` runs on the reader: what follows an answer may already build on it."""
    desk = Desk()
    seen: list[bytes] = []

    def on_reply(result: Raw) -> None:
        seen.append(bytes(result))
        assert desk.notified == []

    call = asyncio.ensure_future(desk.peer.call("start", on_reply=on_reply))
    await desk.sent()
    desk.peer.feed(b'{"id":1,"result":{"turn":7}}\n{"method":"turn/started"}\n')

    assert (seen, desk.notified) == ([b'{"turn":7}'], [("turn/started", b"")])
    assert await call == {"turn": 7}


async def test_a_failing_on_reply_is_its_callers_failure() -> None:
    """The reader goes on with the next message as if nothing had happened."""
    desk = Desk()
    call = asyncio.ensure_future(desk.peer.call("start", on_reply=lambda result: [][1]))
    await desk.sent()
    desk.peer.feed(b'{"id":1,"result":1}\n{"method":"next"}\n')

    assert desk.notified == [("next", b"")]
    with pytest.raises(IndexError):
        await call


async def test_a_failing_notification_handler_stops_nothing() -> None:
    """It is logged; the messages behind it are still read."""
    seen: list[str] = []

    def on_notification(method: str, params: Raw, frame: bytes) -> None:
        seen.append(method)
        raise KeyError(method)

    peer = Peer(lambda data: None, on_request=lambda *_: fail(KeyError()), on_notification=on_notification)
    peer.feed(b'{"method":"a"}\n{"method":"b"}\n')

    assert seen == ["a", "b"]


async def test_answers_out_of_order_reach_their_own_calls() -> None:
    """And an answer to nothing is left alone."""
    desk = Desk()
    calls = [asyncio.ensure_future(desk.peer.call("m", number)) for number in range(3)]
    ids = [(await desk.sent())["id"] for _ in range(3)]
    desk.says({"id": 999, "result": 0}, {"id": str(ids[0]), "result": 0}, {"id": None, "error": {}})
    for request_id in reversed(ids):
        desk.says({"id": request_id, "result": f"for {request_id}"})

    assert await asyncio.gather(*calls) == [f"for {request_id}" for request_id in ids]


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        (b'{"code":-1,"message":"no","data":{"why":[1]}}', (-1, "no", {"why": [1]})),
        (b'{"code":5,"message":"no","extra":1}', (5, "no", None)),
        (b"{}", (-32603, "", None)),
        (b'"just text"', (-32603, "The other end sent an answer that is none", None)),
        (b'{"code":1,"message":"\xff"}', (-32603, "The other end sent an answer that is none", None)),
    ],
)
async def test_an_error_answer_is_raised_with_its_facts(answer: bytes, facts: tuple[Any, ...]) -> None:
    """Whatever stands in it, the call ends with a `RemoteError`."""
    desk = Desk()
    call = asyncio.ensure_future(desk.peer.call("m"))
    await desk.sent()
    desk.says(b'{"id":1,"error":' + answer + b"}")

    with pytest.raises(RemoteError) as caught:
        await call
    assert (caught.value.code, caught.value.message, caught.value.data) == facts


@pytest.mark.parametrize("answer", [b'{"id":1}', b'{"id":1,"error":null}'])
async def test_an_answer_without_result_or_error_ends_the_call(answer: bytes) -> None:
    """It is reported as garbage; still, nobody waits for ever."""
    garbage: list[tuple[bytes, str]] = []
    desk = Desk(on_garbage=lambda frame, problem: garbage.append((frame, problem)))
    call = asyncio.ensure_future(desk.peer.call("m"))
    await desk.sent()
    desk.says(answer)

    with pytest.raises(RemoteError, match="an answer that is none"):
        await call
    assert garbage == [(answer, "This is not a JSON-RPC message")]


async def test_a_typed_reply_is_decoded_and_a_misfit_is_the_other_ends_error() -> None:
    """A result of the wrong shape must not look like invalid params of whoever asked us."""
    desk = Desk()
    calls = [asyncio.ensure_future(desk.peer.call("m", reply=dict[str, int])) for _ in range(2)]
    await desk.sent()
    await desk.sent()
    desk.says({"id": 1, "result": {"a": 1}}, {"id": 2, "result": ["secret"]})

    assert await calls[0] == {"a": 1}
    with pytest.raises(RemoteError) as caught:
        await calls[1]
    assert (caught.value.code, caught.value.message) == (-32603, "The answer to m cannot be read")


async def test_params_that_cannot_be_sent_leave_nothing_waiting() -> None:
    """The caller hears it at once; the connection ends later without a word about it."""
    desk = Desk()
    with pytest.raises(TypeError):
        await desk.peer.call("m", object())
    desk.peer.feed_eof()

    await desk.wait_quiet()


@pytest.mark.parametrize(
    ("error", "body"),
    [
        (RemoteError(-7, "mine"), {"code": -7, "message": "mine"}),
        (RemoteError(-7, "mine", {"a": 1}), {"code": -7, "message": "mine", "data": {"a": 1}}),
        (
            msgspec.ValidationError("Expected `int`"),
            {"code": -32602, "message": "Invalid params: Expected `int`"},
        ),
        (WireBroken("secret"), {"code": -32603, "message": "Internal error"}),
        (OSError("secret"), {"code": -32603, "message": "Internal error"}),
        (RemoteError(-7, "mine", object()), {"code": -32603, "message": "Internal error"}),
    ],
)
async def test_an_exception_becomes_a_wire_error_at_one_boundary(
    error: Exception, body: dict[str, Any]
) -> None:
    """Our own errors pass whole; the text of a foreign one never crosses."""
    desk = Desk()
    desk.on("m", lambda params: fail(error))
    desk.says({"id": "x", "method": "m"})

    assert await desk.sent() == {"jsonrpc": "2.0", "id": "x", "error": body}


async def test_a_result_that_cannot_be_sent_is_an_internal_error() -> None:
    """The request is answered all the same."""
    desk = Desk()

    async def odd(params: Raw) -> object:
        return object()

    desk.on("m", odd)
    desk.says({"id": 1, "method": "m"})

    assert (await desk.sent())["error"] == {"code": -32603, "message": "Internal error"}


async def test_params_that_were_not_there_are_passed_on_as_none() -> None:
    """A proxy hands on what it got: nothing is null in an answer, and left out of a request."""
    desk = Desk(with_header=False)
    desk.on("echo", echo)
    desk.says({"id": 1, "method": "echo"})
    desk.peer.notify("told", Raw())

    assert {await desk.sent_bytes(), await desk.sent_bytes()} == {
        b'{"id":1,"result":null}',
        b'{"method":"told"}',
    }


async def test_an_id_in_use_is_refused_and_the_first_request_is_still_answered() -> None:
    """One id, two requests: the second cannot be told apart, so it is not served."""
    desk = Desk()
    gate = Gate()
    desk.on("slow", gate)
    desk.says({"id": 1, "method": "slow"}, {"id": 1, "method": "slow"})

    assert (await desk.sent())["error"] == {"code": -32600, "message": "This request id is in use"}
    gate.opened.set()
    assert await desk.sent() == {"jsonrpc": "2.0", "id": 1, "result": "opened"}
    desk.says({"id": 1, "method": "slow"})
    assert await desk.sent() == {"jsonrpc": "2.0", "id": 1, "result": "opened"}


async def test_one_request_too_many_is_refused_not_queued() -> None:
    """The bound on what is served at once; every one of them is answered."""
    desk = Desk()
    gate = Gate()
    desk.on("slow", gate)
    desk.says(*({"id": number, "method": "slow"} for number in range(MAX_IN_FLIGHT + 1)))

    refused = await desk.sent()
    assert (refused["id"], refused["error"]["code"]) == (MAX_IN_FLIGHT, -32000)
    gate.opened.set()
    assert {(await desk.sent())["id"] for _ in range(MAX_IN_FLIGHT)} == set(range(MAX_IN_FLIGHT))


async def test_a_reader_that_fell_behind_loses_notifications_only() -> None:
    """They are counted; requests, answers and cancel notices still go out."""
    backlog = MAX_BACKLOG_BYTES + 1
    desk = Desk(backlog_bytes=lambda: backlog, cancel_notice=cancel_notice, with_header=False)
    desk.on("echo", echo)
    assert [desk.peer.notify("lost", number) for number in range(5)] == [False] * 5
    desk.says({"id": 7, "method": "echo", "params": 1}, {"id": 8, "method": "none"})
    call = asyncio.ensure_future(desk.peer.call("ask"))
    sent = [await desk.sent() for _ in range(3)]
    call.cancel()

    assert await desk.sent() == {"method": "cancelled", "params": {"requestId": 1}}
    assert sorted(message["id"] for message in sent) == [1, 7, 8]
    assert desk.peer.dropped_notifications == 5
    backlog = MAX_BACKLOG_BYTES
    assert desk.peer.notify("heard") is True
    assert await desk.sent() == {"method": "heard"}
