"""Bytes that are no message: told, skipped, and never a reason for the reader to stop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.support import CUTS, DEADLINE_S, Desk, chunks_of, echo

NONSENSE = [
    (b"not json", -32700),
    (b"{", -32700),
    (b'{"method":"x"} trailing', -32700),
    (b'\xef\xbb\xbf{"method":"x"}', -32700),
    (b'{"method":"\xff"}', -32700),
    (b"\x00", -32700),
    (b'{"a":' * 100_000, -32700),
    (b'{"method":"x","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}", -32600),
    (b"[" * 100_000 + b"]" * 100_000, -32600),
    (b"null", -32600),
    (b"17", -32600),
    (b'"text"', -32600),
    (b"[]", -32600),
    (b'[{"method":"x"}', -32700),
    (b'"text', -32700),
    (b'{"method":17,', -32700),
    (b"{}", -32600),
    (b'{"jsonrpc":"2.0"}', -32600),
    (b'{"method":null}', -32600),
    (b'{"result":1}', -32600),
    (b'{"id":1}', -32600),
    (b'{"method":17}', -32600),
]


@pytest.mark.parametrize(("line", "code"), NONSENSE, ids=range(len(NONSENSE)))
async def test_nonsense_is_answered_and_the_stream_goes_on(line: bytes, code: int) -> None:
    """Good messages before and behind it, in the same chunk, are untouched."""
    desk = Desk()
    desk.peer.feed(b'{"method":"before"}\n' + line + b'\n{"method":"behind"}\n')

    answer = await desk.sent()
    assert (answer["id"], answer["error"]["code"]) == (None, code)
    assert desk.notified == [("before", b""), ("behind", b"")]
    await desk.wait_quiet()


async def test_nonsense_goes_to_its_listener_instead_if_there_is_one() -> None:
    """A child that prints a warning to its standard output is not lectured about JSON."""
    garbage: list[bytes] = []

    def on_garbage(frame: bytes, problem: str) -> None:
        garbage.append(frame)
        raise RuntimeError("a listener may fail, too")

    desk = Desk(on_garbage=on_garbage)
    for line, _ in NONSENSE:
        desk.says(line)
    desk.says({"method": "behind"})

    assert garbage == [line for line, _ in NONSENSE]
    assert desk.notified == [("behind", b"")]
    await desk.wait_quiet()


@pytest.mark.parametrize("options", [{}, {"on_garbage": lambda frame, problem: None}])
async def test_a_malformed_request_is_answered_under_its_own_id(options: dict[str, Any]) -> None:
    """Every request gets an answer, even one whose method is no name."""
    desk = Desk(**options)
    desk.says({"id": "mine", "method": 17})

    assert await desk.sent() == {
        "jsonrpc": "2.0",
        "id": "mine",
        "error": {"code": -32600, "message": "This is not a JSON-RPC message"},
    }


async def test_empty_lines_and_carriage_returns_are_no_nonsense() -> None:
    """Windows writes them; nobody is told."""
    desk = Desk()
    desk.on("echo", echo)
    desk.peer.feed(b'\n\r\n  \r\n{"method":"a"}\r\n\t\n{"id":1,"method":"echo","params":[]}\r\n')

    assert await desk.sent_bytes() == b'{"jsonrpc":"2.0","id":1,"result":[]}'
    assert desk.notified == [("a", b"")]
    await desk.wait_quiet()


@pytest.mark.parametrize("cuts", [[], [70], list(range(0, 400, 7))])
async def test_a_message_that_is_too_long_is_told_once_and_the_stream_goes_on(cuts: list[int]) -> None:
    """In one chunk with good ones or over many."""
    stream = b'{"method":"a"}\n{"method":"' + b"x" * 300 + b'"}\n{"method":"b"}\n'
    desk = Desk(max_bytes=64)
    told: list[tuple[bytes, str]] = []
    listened = Desk(max_bytes=64, on_garbage=lambda frame, problem: told.append((frame, problem)))
    for chunk in chunks_of(stream, cuts):
        desk.peer.feed(chunk)
        listened.peer.feed(chunk)

    assert await desk.sent() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": "The message is too long and was skipped"},
    }
    assert desk.notified == listened.notified == [("a", b""), ("b", b"")]
    assert [frame for frame, _ in told] == [b""]
    await desk.wait_quiet()


@settings(max_examples=200)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from([line for line, _ in NONSENSE if len(line) < 100]),
            st.builds(
                lambda key, value: b'{"%s":%s}' % (key, value),
                st.sampled_from([b"id", b"method", b"error", b"result", b'id":1,"error', b'id":1,"method']),
                st.sampled_from([b"null", b"1", b"1e999", b'"x"', b"[]", b'{"code":"x"}', b'"\xff"', b"{"]),
            ),
        ),
        max_size=10,
    ),
    CUTS,
)
async def test_no_bytes_whatever_make_the_reader_raise(lines: list[bytes], cuts: list[int]) -> None:
    """And the next good message is still understood."""
    desk = Desk(max_bytes=64)
    call = asyncio.ensure_future(desk.peer.call("open"))
    await asyncio.sleep(0)
    for chunk in chunks_of(b"\n".join([*lines, b'{"method":"the end"}', b""]), cuts):
        desk.peer.feed(chunk)

    assert desk.notified[-1] == ("the end", b"")
    async with asyncio.timeout(DEADLINE_S):
        await desk.peer.aclose()
    await asyncio.gather(call, return_exceptions=True)
