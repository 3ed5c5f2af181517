"""`laneway mcp-server` in the place of the removed server: what was broken there works here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laneway.testing.processes import wait_gone
from tests.doors.mcp.support import FORMS, stage

RUN = "%run! echo outside > granted.txt"


async def test_a_thread_goes_on_and_its_words_come_back_twice(tmp_path: Path) -> None:
    """Text for old clients, structured content for those that read the schema."""
    async with stage(tmp_path) as here, here.server("mcp-server") as client:
        first = await client.result("codex", prompt="%say one")
        thread_id = first["structuredContent"]["threadId"]
        second = await client.result("codex-reply", prompt="%say two", threadId=thread_id)

    assert first == {
        "content": [{"type": "text", "text": "one"}],
        "structuredContent": {"threadId": thread_id, "content": "one"},
    }
    assert second["structuredContent"] == {"threadId": thread_id, "content": "two"}


async def test_a_thread_is_had_back_after_a_restart(tmp_path: Path) -> None:
    """The old server forgot its threads when it ended."""
    async with stage(tmp_path) as here:
        async with here.server("mcp-server") as client:
            thread_id = (await client.content("codex", prompt="%say one"))["threadId"]
        async with here.server("mcp-server") as client:
            again = await client.content("codex-reply", prompt="%say again", conversationId=thread_id)

    assert again == {"threadId": thread_id, "content": "again"}


async def test_calls_at_once_on_a_thread_that_must_be_had_back_are_all_answered(tmp_path: Path) -> None:
    """The first resumes it, the others queue behind: one thread has one turn at a time."""
    async with stage(tmp_path) as here:
        async with here.server("mcp-server") as client:
            thread_id = (await client.content("codex", prompt="%say one"))["threadId"]
        async with here.server("mcp-server") as client:
            calls = [
                client.start("codex-reply", prompt=f"%say {word}", threadId=thread_id)
                for word in ("two", "three", "four")
            ]
            answers = [(await call)["result"]["structuredContent"]["content"] for call in calls]

    assert answers == ["two", "three", "four"]


def always(reply: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda message: reply


REPLIES: list[tuple[dict[str, Any], bool]] = [
    ({"action": "accept"}, True),
    ({"action": "accept", "content": {}}, True),
    ({"decision": "approved"}, True),
    ({"decision": "approved_for_session"}, True),
    ({"decision": "Approved"}, True),
    ({"action": "decline"}, False),
    ({"action": "cancel"}, False),
    ({"decision": "denied"}, False),
    ({"decision": {"denied": {"rejection": "no"}}}, False),
    ({"decision": "nonsense"}, False),
    ({"decision": None}, False),
    ({"action": "ACCEPT"}, False),
    ({}, False),
]


async def test_a_yes_in_either_dialect_is_a_yes_and_nothing_else_is(tmp_path: Path) -> None:
    """The old server took the standard yes for a no. Each is the answer to a thread of its own."""
    async with stage(tmp_path) as here, here.server("mcp-server", capabilities=FORMS) as client:
        granted = here.work / "granted.txt"
        for reply, is_granted in REPLIES:
            client.on_ask = always(reply)
            await client.result("codex", prompt=RUN)
            assert granted.exists() == is_granted, reply
            granted.unlink(missing_ok=True)


async def test_a_cancelled_call_leaves_thread_and_process_healthy(tmp_path: Path) -> None:
    """The old thread hung for ever, and the process no longer ended."""
    async with stage(tmp_path) as here, here.server("mcp-server") as client:
        thread_id = (await client.content("codex", prompt="%say one"))["threadId"]
        client.heard.clear()
        hanging = client.start("codex-reply", prompt="%hang", threadId=thread_id)
        await client.wait_event("task_started")
        client.tell("notifications/cancelled", {"requestId": client.last_id})
        await client.wait_event("turn_aborted")
        after = await client.content("codex-reply", prompt="%say after", threadId=thread_id)

        assert after["content"] == "after"
        assert not hanging.done()
        assert await client.hang_up() == 0


async def test_the_end_of_input_ends_everything_even_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    """Nobody is left who could want the answer."""
    async with stage(tmp_path) as here, here.server("mcp-server") as client:
        client.start("codex", prompt="%run echo $PPID > parent.txt; sleep 600")
        await client.wait_event("exec_command_begin")
        assert client.process.pid is not None
        await client.hang_up()
        await wait_gone(client.process.pid)


async def test_every_standard_method_is_answered(tmp_path: Path) -> None:
    """The old server left some of these without an answer, and clients waiting."""
    async with stage(tmp_path) as here, here.server("mcp-server") as client:
        for method in (
            "resources/list",
            "resources/templates/list",
            "prompts/list",
            "logging/setLevel",
            "ping",
        ):
            assert "result" in await client.ask(method, {}), method
        assert (await client.ask("no/such", {}))["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ],
)
async def test_versions_are_negotiated(tmp_path: Path, asked: str, spoken: str) -> None:
    """The old server repeated whatever it was told."""
    async with stage(tmp_path) as here, here.server("mcp-server", greet=False) as client:
        answer = await client.greet({}, version=asked)
        assert answer["result"]["protocolVersion"] == spoken


async def test_flags_hold_on_either_side_of_the_word(tmp_path: Path) -> None:
    """The old binary took them and did nothing with them."""
    seen = []
    async with stage(tmp_path) as here:
        for words in (("-m", "gpt-5.4", "mcp-server"), ("mcp-server", "-m", "gpt-5.4")):
            async with here.server(*words) as client:
                await client.result("codex", prompt="%say x")
                seen.append(here.requests[-1]["model"])

    assert seen == ["gpt-5.4", "gpt-5.4"]
