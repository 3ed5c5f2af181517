"""`laneway mcp --backend mcp-server` on the real child: seed 001's proxy, to the letter (FR-1, FR-19)."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from laneway.codex import binary
from laneway.codex.relay import LAST
from laneway.testing.processes import wait_gone
from tests.doors.mcp.support import FORMS, Message, event_kind, stage
from tests.doors.mcp.views import QUIET
from tests.peers.test_codex_versions import codexes

NEWEST = [path for path in codexes() if (binary.parse_version(path) or LAST) == LAST]

pytestmark = [
    pytest.mark.peers,
    pytest.mark.parametrize(
        "codex", NEWEST, ids=lambda path: binary.spell(binary.parse_version(path) or (0,))
    ),
]


def words(codex: str) -> tuple[str, ...]:
    return ("mcp", "--backend", "mcp-server", "--codex-bin", os.path.abspath(codex))


@pytest.mark.covers("FR-1.1", "FR-1.3", "FR-19.5")
async def test_sessions_run_on_the_real_child_and_its_events_come_untouched(
    codex: str, tmp_path: Path
) -> None:
    """Started by the first call, told whose each event is, and gone with us."""
    async with stage(tmp_path) as here, here.server(*words(codex), env=QUIET) as client:
        before = await client.content("agent_status")
        assert not before["child_alive"]
        first = await client.content("codex", prompt="%run echo hi\n%say One.", cwd=str(here.work))
        again = await client.content("codex-reply", agent_id=first["agent_id"], prompt="%say Two.")
        assert (first["content"], again["content"]) == ("One.", "Two.")
        assert again["threadId"] == first["threadId"] != ""
        events = client.events()
        alive = await client.content("agent_status")
        refused = await client.ask("nonsense/method", {"a": 1})
    kinds = [event["msg"]["type"] for event in events]
    assert (kinds[0], kinds[-1], kinds.count("task_started")) == ("session_configured", "task_complete", 2)
    for event in events:
        assert event["agent_id"] == event["_meta"]["agent_id"] == first["agent_id"]
        assert event["_meta"]["threadId"] == first["threadId"]
    assert {event["_meta"]["requestId"] for event in events} == {3, 4}
    assert refused["error"] == {
        "code": -32601,
        "message": "method not found: nonsense/method",
        "data": {"method": "nonsense/method"},
    }
    await wait_gone(alive["child_pid"])


@pytest.mark.covers("FR-18.1")
async def test_an_approval_is_asked_in_the_childs_own_words(codex: str, tmp_path: Path) -> None:
    """With the session named beside them; standard MCP answers do what they say."""
    asked: list[Message] = []

    def allow(message: Message) -> Message:
        asked.append(message["params"])
        return {"action": "accept", "content": {}}

    async with stage(tmp_path) as here:
        async with here.server(*words(codex), capabilities=FORMS, env=QUIET) as client:
            client.on_ask = allow
            done = await client.content(
                "codex",
                prompt="%patch yes.txt x\n%say Asked.",
                cwd=str(here.work),
                sandbox="read-only",
                **{"approval-policy": "on-request"},
            )
        assert (here.work / "yes.txt").read_text() == "x\n"
        (params,) = asked
        path = str(here.work / "yes.txt")
        wanted: dict[str, Any] = {
            "message": "Allow Codex to apply proposed code changes?",
            "requestedSchema": {"type": "object", "properties": {}},
            "threadId": done["threadId"],
            "codex_elicitation": "patch-approval",
            "codex_mcp_tool_call_id": "2",
            "codex_changes": {path: {"type": "add", "content": "x\n"}},
            "agent_id": done["agent_id"],
        }
        assert {name: params[name] for name in wanted} == wanted


@pytest.mark.covers("FR-11.1", "FR-11.2")
async def test_the_death_of_the_child_is_told_with_its_signal_and_nothing_restarts(
    codex: str, tmp_path: Path
) -> None:
    """To the call that waits, and to the next one."""
    async with stage(tmp_path) as here, here.server(*words(codex), env=QUIET) as client:
        waiting = client.start("codex", prompt="%stream 40 words over 20 seconds", cwd=str(here.work))
        await client.wait_heard(lambda message: event_kind(message) == "agent_message_content_delta")
        pid = (await client.content("agent_status"))["child_pid"]
        os.kill(pid, signal.SIGKILL)
        errors = [(await waiting)["error"], await client.error("codex", prompt="%say Hello.")]
        after = await client.content("agent_status")
    for error in errors:
        assert (error["code"], error["data"]["exit"]) == (-32005, "killed by SIGKILL"), json.dumps(error)
    assert not after["child_alive"]


async def test_a_session_of_an_earlier_process_is_refused_in_a_sentence(codex: str, tmp_path: Path) -> None:
    """The old server cannot resume; nobody is given an empty thread under an old name."""
    async with stage(tmp_path) as here:
        async with here.server(*words(codex), env=QUIET) as client:
            kept = await client.content("codex", prompt="%say One.", cwd=str(here.work))
        async with here.server(*words(codex), env=QUIET) as client:
            error = await client.error("codex", agent_id=kept["agent_id"], prompt="%say Two.")
    assert "another process of it began" in error["message"]
    assert "--backend app-server" in error["message"]


@pytest.mark.covers("FR-6.1", "FR-16.3")
async def test_a_session_of_a_child_that_is_gone_goes_on_with_its_summary(codex: str, tmp_path: Path) -> None:
    """The old server forgets its threads: a new one is told what there was, under the same id."""
    async with stage(tmp_path) as here:
        async with here.server(*words(codex)) as client:
            first = await client.content("codex", prompt="%say One.", cwd=str(here.work))
        async with here.server(*words(codex), env=QUIET) as client:
            again = await client.content("codex", agent_id=first["agent_id"], prompt="%say Two.")
    assert again["content"] == "Two."
    assert again["agent_id"] == first["agent_id"]
    assert again["threadId"] != first["threadId"]


async def test_a_read_only_server_stays_so_on_the_real_child(codex: str, tmp_path: Path) -> None:
    """No program by config, and no escalation, though the client would accept it."""
    mark = tmp_path / "mark"
    evil = {"mcp_servers.evil": {"command": "/bin/sh", "args": ["-c", f"touch {mark}"]}}
    async with (
        stage(tmp_path / "state") as here,
        here.server(*words(codex), "--readonly", capabilities=FORMS, env=QUIET) as client,
    ):
        client.on_ask = lambda message: {"decision": "approved", "action": "accept"}
        error = await client.error("codex", prompt="%say x", config=evil)
        done = await client.content("codex", prompt="%run! touch made\n%say went on", cwd=str(tmp_path))
        assert not [message for message in client.heard if "id" in message]

    assert (error["code"], error["data"]["key"]) == (-32007, "mcp_servers.evil.command")
    assert "Declined, because this server was started with --readonly" in done["content"]
    assert sorted(os.listdir(tmp_path)) == ["state"]
