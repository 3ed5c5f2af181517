"""The pipe and what goes through it: framings, ids, methods, the child's life (FR-1, NFR-4)."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from laneway.testing.processes import wait_gone
from tests.doors.mcp.support import Client, Message, stage
from tests.doors.mcp.views import QUIET


def lined(message: Message) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def counted(message: Message, header: bytes = b"Content-Length") -> bytes:
    body = json.dumps(message, ensure_ascii=False).encode()
    return header + b": " + str(len(body)).encode() + b"\r\n\r\n" + body


def ping(number: int) -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": "ping", "params": {"_meta": {"é": "😀\u2028"}}}


@pytest.mark.covers("FR-1.2")
async def test_both_framings_are_read_from_one_stream_byte_by_byte(tmp_path: Path) -> None:
    """Header in any case, bodies counted in bytes, messages in two pieces; answers in the framing used last.

    The cut at every single offset is in tests/wire/test_framing.py; here it is the process that reads.
    """
    stream = lined(ping(1)) + counted(ping(2)) + lined(ping(3)) + counted(ping(4), b"content-length")
    async with stage(tmp_path) as here, here.server("mcp", greet=False) as client:
        read = client.process.stdout
        assert read is not None
        client.stop_reading()
        assert client.process.stdin is not None
        for at in range(len(stream)):
            client.process.stdin.write(stream[at : at + 1])
            await client.process.stdin.drain()
        long = {"jsonrpc": "2.0", "id": 5, "method": "ping", "params": {"é": "x" * 2_000_000}}
        client.process.stdin.write(counted(long) + lined({**long, "id": 6}))
        answers: list[tuple[str, int]] = []
        while len(answers) < 6:
            line = await read.readline()
            if line.lower().startswith(b"content-length"):
                length = int(line.split(b":")[1])
                assert await read.readline() == b"\r\n"
                answers.append(("counted", json.loads(await read.readexactly(length))["id"]))
            else:
                answers.append(("line", json.loads(line)["id"]))

    assert [number for _, number in answers] == [1, 2, 3, 4, 5, 6]
    assert answers[3][0] == "counted"


@pytest.mark.covers("FR-1.2", "NFR-2")
async def test_what_is_no_message_is_answered_or_skipped_and_the_next_one_is_served(tmp_path: Path) -> None:
    """Broken JSON, a wrong length, a batch in a version without batches."""
    async with stage(tmp_path) as here, here.server("mcp", greet=False) as client:
        client.stop_reading()
        assert client.process.stdin is not None
        assert client.process.stdout is not None
        client.process.stdin.write(b"{nonsense\n[]\n17\n" + lined({"jsonrpc": "2.0"}) + lined(ping(9)))
        answers: list[Message] = []
        while not answers or answers[-1].get("id") != 9:
            answers.append(json.loads(await client.process.stdout.readline()))

    assert {answer["error"]["code"] for answer in answers[:-1]} <= {-32700, -32600}
    assert answers[-1]["result"] == {}


@pytest.mark.covers("FR-1.3", "FR-1.1", "FR-16.2")
async def test_codex_is_started_by_the_first_call_that_needs_it_once_and_ends_with_us(tmp_path: Path) -> None:
    """Whatever is asked before is answered without it; grandchildren end, too."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        for method in ("ping", "tools/list", "resources/list", "resources/templates/list", "prompts/list"):
            assert "result" in await client.ask(method, {})
        assert await client.content("agent_sessions") == {"sessions": [], "total": 0, "problems": []}
        before = await client.content("agent_status")
        assert (before["child_alive"], before["child_pid"]) == (False, None)
        assert _below(client) == set()

        calls = [client.start("codex", prompt="%say x") for _ in range(5)]
        pids = {(await client.content("agent_status"))["child_pid"] for _ in await asyncio.gather(*calls)}
        (pid,) = pids
        client.start("codex", prompt="%run sleep 600", cwd=str(tmp_path))
        await client.wait_event("exec_command_begin")
        below = _below(client)
        assert pid in below
        await client.hang_up()
        for each in below:
            await wait_gone(each)


def _below(client: Client) -> set[int]:
    """The processes that the server has started, and theirs."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(fields[1])
    found: set[int] = set()
    grown = {client.process.pid}
    while grown:
        grown = {pid for pid, parent in parents.items() if parent in grown} - found
        found |= grown
    return found - {os.getpid()}


@pytest.mark.covers("FR-16.2", "FR-5.4")
async def test_a_result_carries_the_session_its_thread_its_turns_and_its_tokens(tmp_path: Path) -> None:
    """Text for every client, structure for those that read it, numbers in `_meta`."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        first = await client.result("codex", prompt="%usage 1000\n%say one", identity="dev")
        second = await client.result(
            "codex-reply", prompt="%usage 500\n%say two", threadId=first["structuredContent"]["threadId"]
        )

    told = first["structuredContent"]
    assert first["content"] == [{"type": "text", "text": "one"}]
    assert (told["content"], told["identity"]) == ("one", "dev")
    assert (first["_meta"]["agent_id"], first["_meta"]["turns"]) == (told["agent_id"], 1)
    assert first["_meta"]["usage"]["total"] == 1001
    assert (second["_meta"]["turns"], second["_meta"]["usage"]["total"]) == (2, 1502)
    assert second["structuredContent"] == {**told, "content": "two"}


@pytest.mark.covers("FR-1.1", "NFR-6/isError")
async def test_a_turn_that_fails_is_a_result_of_the_tool_and_no_error_of_the_protocol(tmp_path: Path) -> None:
    """The model's own failure, with the session named so that it can go on."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        failed = (await client.call("codex", prompt="%fail 400 not today"))["result"]
        told = failed["structuredContent"]
        after = await client.content("codex-reply", prompt="%say after", agent_id=told["agent_id"])

    assert failed["isError"] is True
    assert "not today" in failed["content"][0]["text"]
    assert told["agent_id"] in failed["content"][0]["text"]
    assert after["content"] == "after"


async def test_a_rehearsal_serves_as_ever_and_leaves_no_sessions_behind(tmp_path: Path) -> None:
    """`--rehearse`: real Codex, scripted model, and a list of sessions of its own."""
    async with stage(tmp_path) as here, here.server("mcp", "--rehearse", env=QUIET) as client:
        session = await client.content("codex", prompt="%say rehearsed")
        (row,) = (await client.content("agent_sessions"))["sessions"]

    assert (session["content"], row["agent_id"]) == ("rehearsed", session["agent_id"])
    assert here.requests == []
    assert not here.sessions.exists()
