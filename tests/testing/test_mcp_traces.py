"""The kit that records MCP servers and compares them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.testing.mcp_compare import differences
from laneway.testing.mcp_scenarios import SCENARIOS
from laneway.testing.mcp_traces import NotReceived, Trace, TraceLine, converse, dump, load, normalise

FIRST = "01a1e3db-bada-7b41-a602-5d6c0ce39460"
SECOND = "01a1e3dc-19f3-7b12-92c8-27dd111008ce"


def event(call: int, thread: str, kind: str, **fields: Any) -> TraceLine:
    params = {"_meta": {"requestId": call, "threadId": thread}, "msg": {"type": kind, **fields}, "id": ""}
    return TraceLine("server", str(call), {"method": "codex/event", "params": params})


def call_of(number: int, thread: str) -> list[TraceLine]:
    answer = {"id": number, "result": {"structuredContent": {"threadId": thread}}}
    return [
        event(number, thread, "task_started", started_at=1794824190 + number),
        event(number, thread, "agent_message", message="Hi."),
        TraceLine("server", str(number), answer),
    ]


@given(st.permutations([1, 1, 1, 2, 2, 2]))
def test_the_order_in_which_two_calls_are_told_of_makes_no_difference(order: list[int]) -> None:
    """Calls run side by side; only the order within each is meant."""
    asked = [TraceLine("client", str(n), {"id": n, "method": "tools/call"}) for n in (1, 2)]
    waiting = {1: iter(call_of(1, FIRST)), 2: iter(call_of(2, SECOND))}
    mixed = [next(waiting[number]) for number in order]
    apart = [*call_of(1, FIRST), *call_of(2, SECOND)]
    assert normalise([*asked, *mixed], "", {}) == normalise([*asked, *apart], "", {})


def test_what_differs_from_run_to_run_gets_the_same_name() -> None:
    """Ids, times, durations, places and ports."""
    lines = [
        event(
            1,
            FIRST,
            "exec_command_end",
            thread_id=FIRST,
            completed_at_ms=1794824190795,
            duration={"secs": 3, "nanos": 9},
            cwd="file:///somewhere/work",
            process_id="32805",
            output="Wall time: 0.1234 seconds at http://127.0.0.1:4711 for call_88 of " + SECOND,
        )
    ]
    (line,) = normalise(lines, "", {"/somewhere/work": "/work"}).lines
    assert line.message["params"]["msg"] == {
        "type": "exec_command_end",
        "thread_id": "thread-1",
        "completed_at_ms": 0,
        "duration": {"secs": 0, "nanos": 0},
        "cwd": "file:///work",
        "process_id": "0",
        "output": "Wall time: 0.0000 seconds at http://127.0.0.1:0 for call-1 of uuid",
    }


def test_a_trace_comes_back_from_its_file_as_it_was() -> None:
    """One message to a line, for people; all of it, for the comparison."""
    trace = normalise(call_of(1, FIRST), "exit code 0", {})
    assert load(dump(trace)) == trace
    assert dump(trace).count(b"\n") == len(trace.lines) + 2


def test_every_difference_is_said_and_nothing_else() -> None:
    """Missing, new, other: each by its place."""
    old = Trace(tuple(call_of(1, FIRST)), "exit code 0")
    new_lines = [
        call_of(1, FIRST)[0],
        event(1, FIRST, "warning"),
        TraceLine("server", "1", {"id": 1, "result": {}}),
    ]
    assert differences(old, old) == []
    assert differences(old, Trace(tuple(new_lines), "killed by SIGTERM")) == [
        "end: exit code 0 → killed by SIGTERM",
        "call 1 agent_message is missing",
        "call 1 warning is new",
        f'call 1 answer.result.structuredContent is missing: {{"threadId":"{FIRST}"}}',
    ]


async def test_a_server_that_ends_early_is_told_with_its_last_words() -> None:
    """A script must not wait for somebody who is gone."""
    command = [sys.executable, "-c", "import sys; sys.exit('no such thing')"]
    with pytest.raises(NotReceived, match="no such thing"):
        await converse(command, SCENARIOS[0], repaired=True)
