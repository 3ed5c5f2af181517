"""Peers that mean harm, or behave as if: odd JSON, floods, and one that never reads its answers."""

from __future__ import annotations

import asyncio
import json
import os
import tracemalloc
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from laneway.wire.frames import MAX_FRAME_BYTES
from laneway.wire.messages import MAX_SALVAGE_BYTES, mend
from laneway.wire.outbox import MAX_BACKLOG_BYTES, MAX_UNSENT_BYTES
from laneway.wire.peer import Peer, Raw
from laneway.wire.service import MAX_IN_FLIGHT_BYTES
from tests.wire.support import DEADLINE_S, Desk, Gate, cancel_notice, echo

# ── odd JSON ───────────────────────────────────────────────────────────────


async def decoded(params: Raw) -> Any:
    """A handler that looks at all of its params."""
    return msgspec.json.decode(params)


DEEP = 10_000
TOO_DEEP = {"code": -32600, "message": "The message is nested too deeply"}
NOT_UTF8 = {"code": -32700, "message": "This is not UTF-8"}
NOT_JSON = {"code": -32700, "message": "This is not JSON"}

ODD = {
    "nested arrays": (b'{"id":7,"method":"m","params":' + b"[" * DEEP + b"]" * DEEP + b"}", (7, TOO_DEEP)),
    "nested objects": (
        b'{"params":' + b'{"a":' * DEEP + b'"]}"' + b"}" * DEEP + b', "method" : "m", "id" : "x]" }',
        ("x]", TOO_DEEP),
    ),
    "nested and no request": (b'{"id":7,"result":' + b"[" * DEEP + b"]" * DEEP + b"}", (None, TOO_DEEP)),
    "nested and not closed": (b'{"id":7,"method":"m","params":' + b"[" * DEEP, (None, NOT_JSON)),
    "nested and huge": (
        b'{"id":7,"method":"m","params":' + b"[" * MAX_SALVAGE_BYTES + b"]" * MAX_SALVAGE_BYTES + b"}",
        (None, TOO_DEEP),
    ),
    "bad UTF-8 in params": (b'{"id":7,"method":"m","params":"\xff"}', (None, NOT_UTF8)),
    "bad UTF-8 in the id": (b'{"id":"\xff","method":"m"}', (None, NOT_UTF8)),
    "an encoded surrogate": (b'{"id":7,"method":"m","params":"\xed\xa0\x80"}', (None, NOT_UTF8)),
    "overlong UTF-8": (b'{"id":7,"method":"m","params":"\xc0\xaf"}', (None, NOT_UTF8)),
    "UTF-16": ('{"id":7,"method":"m"}'.encode("utf-16"), (None, NOT_UTF8)),
    "a bare NUL": (b'{"id":7,"method":"m","params":"\x00"}', (None, NOT_JSON)),
    "NaN": (b'{"id":7,"method":"m","params":NaN}', (None, NOT_JSON)),
    "Infinity as id": (b'{"id":Infinity,"method":"m"}', (None, NOT_JSON)),
    "a huge exponent": (
        b'{"id":7,"method":"m","params":[1e999999]}',
        (7, {"code": -32602, "message": "Invalid params: Number out of range - at `$[0]`"}),
    ),
    "100,000 digits": (
        b'{"id":7,"method":"m","params":[' + b"1" * 100_000 + b"]}",
        (7, {"code": -32602, "message": "Invalid params: Integer value out of range - at `$[0]`"}),
    ),
    "no method name": (
        b'{"id":7,"method":{"a":1}}',
        (7, {"code": -32600, "message": "This is not a JSON-RPC message"}),
    ),
}


@pytest.mark.parametrize("name", ODD)
async def test_odd_json_gets_one_answer_under_its_id_where_that_can_be_told(name: str) -> None:
    """A valid request that we cannot take still has somebody waiting for it."""
    frame, (request_id, error) = ODD[name]
    desk = Desk()
    desk.on("m", decoded)
    desk.on("echo", echo)
    desk.says(frame, {"id": "next", "method": "echo", "params": 1})

    answers = {message["id"]: message for message in [await desk.sent(), await desk.sent()]}
    assert answers == {
        request_id: {"jsonrpc": "2.0", "id": request_id, "error": error},
        "next": {"jsonrpc": "2.0", "id": "next", "result": 1},
    }
    await desk.wait_quiet()


@pytest.mark.parametrize(
    ("params", "result"),
    [
        (b'"\\u0000"', "\0"),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b"123456789012345678901234567890", 123456789012345678901234567890),
        (b"-0.0", -0.0),
        (b'"cut in an emoji: \\ud83d"', "cut in an emoji: \ufffd"),
        (b'"\\udc00\\ud83d\\ud83d\\ude00"', "\ufffd\ufffd😀"),
        (b'"\\\\ud83d \\\\\\ud83d \\uD83D\\uDE00"', "\\ud83d \\\ufffd 😀"),
        (b"[" * 900 + b"]" * 900, ...),
    ],
)
async def test_what_json_allows_is_served(params: bytes, result: Any) -> None:
    """The last of two keys counts; half an emoji, which JavaScript sends, is no reason to fail."""
    desk = Desk()
    desk.on("m", decoded)
    desk.says(b'{"id":1,"id":2,"method":"no","method":"m","params":' + params + b"}")

    answer = await desk.sent()
    assert answer["id"] == 2
    assert answer["result"] == (json.loads(params) if result is ... else result)


def test_mending_leaves_whole_text_alone() -> None:
    """Pairs, escaped backslashes and everything else come back byte for byte."""
    for text in (b"", b'{"a":"\\ud83d\\ude00 \\\\ud83d \\u00e9 \\n"}', "é 😀".encode(), b"\\ud", b"\\"):
        assert mend(text) == text


async def test_a_notification_with_half_an_emoji_is_heard_in_a_batch_or_alone() -> None:
    """Notifications are not answered, so nobody would ever learn that one was lost."""
    desk = Desk()
    desk.says(b'{"method":"a","params":"\\ud83d"}', b'[{"method":"b","params":"\\ud83d"}]')

    assert desk.notified == [("a", b'"\\ufffd"'), ("b", b'"\\ufffd"')]


@pytest.mark.parametrize("place", ["params", "id", "method", "key"])
async def test_a_string_of_many_megabytes_is_served_like_any_other(place: str) -> None:
    """Fifty as a parameter, five wherever else it stands; in an id it comes back whole."""
    long = "x" * (50_000_000 if place == "params" else 5_000_000)
    message: dict[str, Any] = {"id": 1, "method": "none", "params": None}
    if place == "key":
        message["params"] = {long: 1}
    else:
        message[place] = long
    desk = Desk()
    desk.on("none", echo)
    desk.on(long, echo)
    desk.says(message)

    answer = await desk.sent()
    assert (answer["id"], answer["result"]) == (message["id"], message["params"])


@pytest.mark.parametrize("frame", [b'{"method":"n","params":"\xff"}', b'[{"method":"n","params":"\xff"}]'])
async def test_a_notification_that_is_no_text_is_told_as_such(frame: bytes) -> None:
    """Its listener cannot read it; that is the sender's mistake, and nothing for our log."""

    def read(method: str, params: Raw, frame: bytes) -> None:
        msgspec.json.decode(params)

    sent: list[bytes] = []
    peer = Peer(sent.append, on_request=lambda *_: echo(Raw()), on_notification=read)
    peer.feed(frame + b"\n")
    await peer.aclose()

    assert [json.loads(answer)["error"] for answer in sent] == [NOT_UTF8]


# ── both framings at the peer ──────────────────────────────────────────────


async def test_answers_come_in_the_framing_of_the_last_message() -> None:
    """Content-Length for who speaks it, lines for who goes on in lines; headers that lie are told."""
    sent: list[bytes] = []

    async def serve(method: str, params: Raw, request_id: bytes) -> Any:
        return "é"

    peer = Peer(sent.append, on_request=serve, on_notification=lambda *_: None, with_lengths=True)
    body = b'{"id":1,"method":"a"}'

    async def says(data: bytes) -> bytes:
        peer.feed(data)
        async with asyncio.timeout(DEADLINE_S):
            while not sent:
                await asyncio.sleep(0)
        return sent.pop()

    answer = '{"jsonrpc":"2.0","id":1,"result":"é"}'.encode()
    assert await says(b"Content-Length: %d\r\n\r\n%b" % (len(body), body)) == (
        b"Content-Length: %d\r\n\r\n%b" % (len(answer), answer)
    )
    assert await says(body + b"\n") == answer + b"\n"
    assert json.loads(await says(b"Content-Length: x\r\n\r\n")) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32700, "message": "The Content-Length is not a number of bytes"},
    }
    assert await says(b"Content-Length: 0\r\n\r\n") != answer


# ── floods ─────────────────────────────────────────────────────────────────


async def test_a_flood_of_tiny_notifications_leaves_nothing_behind() -> None:
    """All are heard, in order, and nothing of them is kept."""
    heard = 0

    def count(method: str, params: Raw, frame: bytes) -> None:
        nonlocal heard
        heard += 1

    async def none(method: str, params: Raw, request_id: bytes) -> Any:
        raise NotImplementedError

    peer = Peer(lambda data: None, on_request=none, on_notification=count)
    chunk = b'{"method":"n"}\n' * 10_000
    for _ in range(10):
        peer.feed(chunk)
    tracemalloc.start()
    for _ in range(10):
        peer.feed(chunk)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert heard == 200_000
    assert kept < 100_000


async def test_a_burst_of_notifications_in_one_turn_of_the_loop_is_bounded() -> None:
    """What waits for the end of the turn counts as unsent; answers are not dropped."""
    desk = Desk(cancel_notice=cancel_notice)
    desk.on("echo", echo)
    text = "x" * 1_000_000
    told = [desk.peer.notify("n", text) for _ in range(100)]

    kept = MAX_BACKLOG_BYTES // 1_000_000 + 1
    assert told == [True] * kept + [False] * (100 - kept)
    assert desk.peer.dropped_notifications == 100 - kept
    desk.says({"id": 1, "method": "echo"})
    sent = [await desk.sent() for _ in range(kept + 1)]
    assert [message.get("method") for message in sent] == ["n"] * kept + [None]
    assert desk.peer.notify("n") is True


async def test_requests_in_flight_are_bounded_in_bytes_too() -> None:
    """A few huge ones weigh as much as a thousand small ones; one alone is always served."""
    desk = Desk()
    gate = Gate()
    desk.on("slow", gate)
    frame = b'{"id":%d,"method":"slow","params":"' + b"x" * (MAX_FRAME_BYTES - 100) + b'"}'
    several = MAX_IN_FLIGHT_BYTES // MAX_FRAME_BYTES
    for number in range(several + 1):
        desk.says(frame.replace(b"%d", b"%d" % number, 1))

    refused = await desk.sent()
    assert (refused["id"], refused["error"]["code"]) == (several, -32000)
    gate.opened.set()
    for number in range(several):
        assert await desk.sent() == {"jsonrpc": "2.0", "id": number, "result": "opened"}
    desk.says(frame.replace(b"%d", b"98", 1), frame.replace(b"%d", b"99", 1))
    assert [(await desk.sent())["result"] for _ in range(2)] == ["opened", "opened"]


class Door(asyncio.Protocol):
    """A peer on two real pipes, wired as a door on standard input and output is."""

    def __init__(self) -> None:
        self.paused = asyncio.Event()
        self.resumed = asyncio.Event()
        self.most_unsent = 0

    async def open(self, reading: int, writing: int) -> None:
        loop = asyncio.get_running_loop()
        self.writer, _ = await loop.connect_write_pipe(lambda: self, os.fdopen(writing, "wb"))
        self.peer = Peer(
            self._send,
            on_request=self._serve,
            on_notification=lambda *_: None,
            backlog_bytes=self.writer.get_write_buffer_size,
            pause_reading=self._pause,
            resume_reading=self._resume,
        )
        self.reader, _ = await loop.connect_read_pipe(lambda: Ear(self.peer.feed), os.fdopen(reading, "rb"))

    async def aclose(self) -> None:
        await self.peer.aclose()
        self.writer.close()
        self.reader.close()

    async def _serve(self, method: str, params: Raw, request_id: bytes) -> Any:
        return "x" * ANSWER_BYTES

    def _send(self, data: bytes) -> None:
        self.writer.write(data)
        self.most_unsent = max(self.most_unsent, self.writer.get_write_buffer_size())

    def _pause(self) -> None:
        self.reader.pause_reading()
        self.paused.set()

    def _resume(self) -> None:
        self.reader.resume_reading()
        self.resumed.set()

    def resume_writing(self) -> None:
        self.peer.drained()


class Ear(asyncio.Protocol):
    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self._on_data = on_data

    def data_received(self, data: bytes) -> None:
        self._on_data(data)


ANSWER_BYTES = 100_000
REQUEST_BYTES = 10_000
ONE_READ_BYTES = 256 * 1024
"""What asyncio takes from a pipe at most; a pipe holds 64 KiB unless it was widened."""


async def test_who_asks_and_never_reads_is_not_read_until_it_reads() -> None:
    """Answers are never dropped, so reading stops at a bound; then every request has its one answer."""
    numbers = range(400)
    our_input, to_us = os.pipe()
    from_us, our_output = os.pipe()
    door = Door()
    await door.open(our_input, our_output)
    padding = b" " * REQUEST_BYTES

    def ask() -> None:
        with os.fdopen(to_us, "wb", buffering=0) as pipe:
            for number in numbers:
                pipe.write(b'{"id":%d,"method":"m"}%b\n' % (number, padding))

    asking = asyncio.ensure_future(asyncio.to_thread(ask))
    answers: Counter[int] = Counter()
    async with asyncio.timeout(DEADLINE_S):
        await door.paused.wait()
        reader = asyncio.StreamReader(limit=2 * ANSWER_BYTES)
        listening, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(from_us, "rb")
        )
        while answers.total() < len(numbers):
            answers[json.loads(await reader.readline())["id"]] += 1
        await asking
    await door.aclose()
    listening.close()

    assert door.resumed.is_set()
    assert answers == Counter(numbers)
    of_one_read = ONE_READ_BYTES // REQUEST_BYTES * ANSWER_BYTES
    assert MAX_UNSENT_BYTES < door.most_unsent < MAX_UNSENT_BYTES + 2 * of_one_read
