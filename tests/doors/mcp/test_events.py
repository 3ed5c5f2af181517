"""What a client hears while sessions work: all of it, with whose it is, and never in the way (FR-19)."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.doors.mcp.support import DEADLINE_S, Message, Stage, stage
from tests.doors.mcp.views import QUIET, audit


@pytest.mark.covers("FR-19.1", "FR-19.2", "FR-19.5", "FR-9.3")
async def test_every_event_names_its_session_from_the_first_one_on(tmp_path: Path) -> None:
    """Two at once; beside the id an event is what the removed server told."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        calls = [
            client.start("codex", prompt=f"%think hm\n%run echo {n}\n%say {n}", cwd=str(tmp_path))
            for n in (1, 2)
        ]
        found = [(await call)["result"]["structuredContent"] for call in calls]
        events = client.events()

    threads = {one["threadId"]: one["agent_id"] for one in found}
    assert len(threads) == 2
    for event in events:
        thread_id = event["_meta"]["threadId"]
        assert (event["agent_id"], event["_meta"]["agent_id"]) == (threads[thread_id], threads[thread_id])
    for number, one in enumerate(found, 1):
        own = [event["msg"] for event in events if event["agent_id"] == one["agent_id"]]
        kinds = [body["type"] for body in own]
        assert kinds[0] == "session_configured"
        assert kinds[-1] == "task_complete"
        for kind in ("task_started", "agent_reasoning", "exec_command_begin", "exec_command_end"):
            assert kind in kinds
        assert own[-1]["last_agent_message"] == str(number)


@pytest.mark.parametrize(
    ("how", "some", "none"), [("compact", True, "raw_response_item"), ("off", False, "")]
)
async def test_a_client_hears_as_much_as_it_wants(tmp_path: Path, how: str, some: bool, none: str) -> None:
    """`--events compact|off`; answers are the same."""
    async with stage(tmp_path) as here, here.server("mcp", "--events", how, env=QUIET) as client:
        result = await client.result("codex", prompt="%stream 50 words", _meta={"progressToken": "p"})
        kinds = {event["msg"]["type"] for event in client.events()}
        progress = [m for m in client.heard if m["method"] == "notifications/progress"]

    assert result["structuredContent"]["content"].split()[:2] == ["one", "two"]
    assert bool(kinds) is some
    assert none not in kinds
    assert progress, "progress does not depend on events"


WORDS = 30_000
"""One event each: more than a server keeps for a client that does not read (8 MiB)."""
LOUD = f"%stream {WORDS} words"


@pytest.mark.covers("FR-19.3", "FR-19.4")
async def test_a_client_that_does_not_read_loses_events_counted_and_no_answer(tmp_path: Path) -> None:
    """Two sessions end their turns while nothing is read; what was not heard later was counted."""
    async with stage(tmp_path) as here, _unread(here) as (process, reading):
        assert process.stdin is not None
        process.stdin.write(
            _request(0, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
            + _call(1, "codex", prompt=LOUD, identity="loud")
            + _call(2, "codex", prompt="%say x", identity="calm")
        )
        while not {"loud", "calm"} <= {line["identity"] for line in _turns_done(here)}:
            await asyncio.sleep(0)
        process.stdin.write(_call(3, "agent_sessions"))
        answers, events = await asyncio.to_thread(_until_answered, reading, 3)
        process.stdin.close()
        assert await process.wait() == 0

    assert set(answers) == {0, 1, 2, 3}
    assert len(answers[1]["structuredContent"]["content"].split()) == WORDS
    rows = {row["identity"]: row for row in answers[3]["structuredContent"]["sessions"]}
    dropped = rows["loud"]["dropped_events"]
    assert dropped > 0
    assert dropped == answers[1]["_meta"]["droppedEvents"]
    heard = sum(event["agent_id"] == rows["loud"]["agent_id"] for event in events)
    assert WORDS < dropped + heard < WORDS + 50, "every word, and a few events around them"


@asynccontextmanager
async def _unread(here: Stage) -> AsyncIterator[tuple[Process, int]]:
    """A server, and the end of its standard output that nobody reads yet."""
    reading, writing = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "laneway", "mcp"),
        stdin=PIPE,
        stdout=writing,
        env={**here.environment, **QUIET},
        cwd=here.work,
    )
    os.close(writing)
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield process, reading
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(reading)


def _call(number: int, tool: str, **arguments: str) -> bytes:
    return _request(number, "tools/call", {"name": tool, "arguments": arguments})


def _request(number: int, method: str, params: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def _turns_done(here: Stage) -> list[Message]:
    try:
        return [line for line in audit(here) if line["event_type"] == "turn_done"]
    except FileNotFoundError:
        return []


def _until_answered(reading: int, last: int) -> tuple[dict[int, Message], list[Message]]:
    """Results by number, and all events, up to the last answer."""
    answers: dict[int, Message] = {}
    events: list[Message] = []
    with open(reading, "rb", closefd=False) as pipe:
        while last not in answers:
            message = json.loads(pipe.readline())
            if "result" in message:
                answers[message["id"]] = message["result"]
            elif message.get("method") == "codex/event":
                events.append(message["params"])
    return answers, events
