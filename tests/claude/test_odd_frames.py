"""Frames in odd shapes and in odd orders, as a broken or a future Claude Code might send them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import EngineLost, EngineSilent
from laneway.claude.tool_server import ToolServer
from laneway.core.model import Accepted, Text, TurnDone, TurnStarted
from laneway.core.ports import TextPart
from laneway.core.tools import ToolResult
from tests.claude.pretending import GREETS, LIVES, pretending, session_of
from tests.codex.support import first, only, play, say
from tests.core.support import until

DEADLINE_S = 60


ODD = """
say(type="control_response", response="odd")
say(type="control_response", response={{"request_id": "laneway-1", "response": []}})
say(type="control_request", request_id=1, request="odd")
say(type="control_request", request_id="a", request={{**tool, "tool_name": "Bash", "input": [1]}})
say(type="control_request", request_id="b", request={{**tool, "tool_name": "Write", "input": nowhere}})
say(type="control_request", request_id="c", request={{**tool, "tool_name": "X", "permission_suggestions": 3}})
say(type="control_cancel_request", request_id=["odd"])
say(type="user", isReplay=True, uuid=given["uuid"], message="odd")
say(type="user", isReplay=True, uuid=given["uuid"])
say(type="user", message={{"content": ["odd", {{"type": "tool_result"}}]}})
say(type="assistant", message={{"content": "odd"}})
say(type="assistant", message={{"content": [{{"type": "tool_use", "id": 1, "name": 2, "input": 3}}]}})
say(type="assistant", parent_tool_use_id="x", message="odd")
say(type="stream_event", event={{"type": "message_delta", "usage": {{"input_tokens": "many"}}}})
say(type="stream_event", event={{"type": "content_block_start", "content_block": {{"type": ["odd"]}}}})
say(type="system", subtype="api_retry", retry_delay_ms="soon")
say(type="system", subtype="task_started", task_type="local_agent")
say(type="system", subtype="task_notification", tool_use_id=[])
say(type="system", subtype="background_tasks_changed", tasks={{"a": 1}})
say(type="system", subtype=["odd"])
say(type=["odd"])
say(type="command_lifecycle", command_uuid=given["uuid"], state=["odd"])
say(type="command_lifecycle", command_uuid=["odd"], state="started")
say(type="result", subtype=3, is_error=True, errors=3, modelUsage=[1])
say(type="result", modelUsage="odd", terminal_reason=3)
sys.stdout.buffer.write(b'{{"type": "user", "message": "\\xff\\xfe"}}\\n')
"""
"""One in each line. In braces that are doubled, as in all scripts."""


async def test_messages_of_odd_shapes_neither_end_the_process_nor_the_reader(tmp_path: Path) -> None:
    """After each of them the next turn works as ever, in the same process."""
    lines = ODD.strip().splitlines()
    turns = "".join(
        f'given = begin()\nrecord(given)\n{line}\nend("one")\ngiven = begin()\nend("two")\n' for line in lines
    )
    script = f"""{GREETS}{LIVES}
tool, nowhere = {{{{"subtype": "can_use_tool"}}}}, {{{{"file_path": "\\0"}}}}
{turns}
asked()
"""
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        for line in lines:
            await play(session, "first")
            _, result = await play(session, "second")
            assert (result.status, result.text) == ("completed", "two"), line


async def test_results_and_starts_in_the_wrong_order_make_no_turn_of_a_ticket_end_twice(
    tmp_path: Path,
) -> None:
    """A result before any start, two results, a start that comes twice, and one for an unknown input."""
    script = (
        GREETS
        + """
given = asked()
say(type="result", subtype="success", is_error=False, result="nobody asked")
say(type="command_lifecycle", command_uuid="00000000-0000-4000-8000-000000000000", state="started")
say(type="command_lifecycle", command_uuid=given["uuid"], state="completed")
for _ in range(2):
    say(type="command_lifecycle", command_uuid=given["uuid"], state="started")
end("one")
end("again")
say(type="command_lifecycle", command_uuid=given["uuid"], state="started")
begin()
end("two")
asked()
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        events, result = await play(session, "first")
        assert result.text == "one"
        assert (
            len(only(events, TurnStarted)) == len(only(events, TurnDone)) == len(only(events, Accepted)) == 1
        )
        _, result = await play(session, "second")
        assert result.text == "two"


async def test_text_that_nobody_asked_for_is_a_turn_of_nobody(tmp_path: Path) -> None:
    """Also before the first input."""
    script = (
        GREETS
        + """
say(type="assistant", message={{"id": "m", "content": [{{"type": "text", "text": "unasked"}}]}}, uuid="u")
say(type="result", subtype="success", is_error=False, result="unasked")
begin()
end("asked")
asked()
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        events, result = await play(session, "hello")
        assert result.text == "asked"
        assert [event.text for event in only(events, Text)] == []


class Answers:
    """What a tool server answered, by the id of the request."""

    def __init__(self) -> None:
        self.given: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, request_id: str, response: Mapping[str, Any]) -> None:
        self.given.append((request_id, response["mcp_response"]))

    def ids(self) -> list[str]:
        return sorted(request_id for request_id, _ in self.given)


def mcp(method: str, call_id: Any = None, **params: Any) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return {"server_name": "laneway", "message": message | ({} if call_id is None else {"id": call_id})}


async def test_every_request_for_a_tool_has_one_answer_whatever_its_id() -> None:
    """Ids that are no ids, the same id twice, and a call that is cancelled before it has begun."""
    answers = Answers()

    async def run(name: str, arguments: Any) -> ToolResult:
        if name == "wait":
            await asyncio.Event().wait()
        return ToolResult("done")

    server = ToolServer((), run, answers)
    server.take("list", mcp("tools/call", ["odd"], name="do"))
    server.take("none", mcp("tools/call", name="do"))
    server.take("twice-1", mcp("tools/call", 7, name="wait"))
    server.take("twice-2", mcp("tools/call", 7, name="do"))
    server.take("early", mcp("tools/call", 8, name="wait"))
    server.take("cancel", mcp("notifications/cancelled", requestId=8))
    server.take("cancel-odd", mcp("notifications/cancelled", requestId=[8]))
    server.take("cancel-twice", mcp("notifications/cancelled", requestId=7))
    wanted = ["cancel", "cancel-odd", "cancel-twice", "early", "list", "none", "twice-1", "twice-2"]
    async with asyncio.timeout(DEADLINE_S):
        await until(lambda: answers.ids() == wanted)
        await server.aclose()
    assert answers.ids() == wanted


async def test_a_flood_of_calls_is_refused_beyond_a_bound_and_leaves_nothing() -> None:
    """Each is answered; those that run are cancelled at the end."""
    answers = Answers()
    running: set[int] = set()

    async def run(name: str, arguments: Any) -> ToolResult:
        running.add(arguments["n"])
        try:
            await asyncio.Event().wait()
        finally:
            running.discard(arguments["n"])
        raise AssertionError

    server = ToolServer((), run, answers)
    for number in range(1000):
        server.take(str(number), mcp("tools/call", number, name="wait", arguments={"n": number}))
    await until(lambda: len(running) == 64)
    assert len(answers.given) == 936
    assert all("More than 64 calls at once" in str(answer) for _, answer in answers.given)
    await server.aclose()
    assert running == set()
    assert len(answers.given) == 1000


async def test_a_steer_that_is_never_taken_up_ends_with_its_turn(tmp_path: Path) -> None:
    """Whoever waits for it is told; nobody waits for ever."""
    script = (
        GREETS
        + """
given = begin()
asked()
os._exit(5)
"""
    )
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script) as (_, hub):
        session = await session_of(hub, tmp_path)
        turn = say(session, "hello")
        await first(turn, TurnStarted)
        with pytest.raises(EngineLost):
            await session.steer((TextPart("and this"),))
        assert (await turn.result()).status == "failed"


async def test_a_steer_that_nobody_answers_is_given_up(tmp_path: Path) -> None:
    """By a Claude Code that hangs."""
    script = GREETS + "begin()\nasked()\ntime.sleep(600)\n"
    async with asyncio.timeout(DEADLINE_S), pretending(tmp_path, script, take_s=0.5, stop_s=0.1) as (_, hub):
        session = await session_of(hub, tmp_path)
        turn = say(session, "hello")
        await first(turn, TurnStarted)
        with pytest.raises(EngineSilent, match="the input was not taken within"):
            await session.steer((TextPart("and this"),))
