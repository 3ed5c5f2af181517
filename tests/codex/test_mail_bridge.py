"""Mail from inside the real Codex: by dynamic tools, and over a bridge where those do not reach (FR-20)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import ConfigRefused
from laneway.core.model import Activity
from laneway.testing.processes import wait_gone
from tests.codex.mail_support import ME, bridges, environment_of, stage
from tests.core.support import until
from tests.mail.tools_support import TEAM, entry

STARTS = 12
"""Threads in a row: each used to fail, or to lack the bridge, in seven of ten."""


def left_in(folder: Path) -> list[Path]:
    """What the caller's servers have left behind."""
    return list(folder.glob("theirs-*"))


def call(tool: str, **arguments: Any) -> str:
    return f"%tool {tool} {json.dumps(arguments)}"


@pytest.mark.covers("FR-4.5", "FR-2.8")
async def test_codex_reads_and_answers_mail_under_its_sessions_name(tmp_path: Path, run: Path) -> None:
    """By dynamic tools: nobody is asked, whatever the policy, no process is started for it."""
    async with stage(tmp_path, "gpt-5.5") as here, here.server(run) as server:
        here.team_files.drop("ann", entry("worker", "what is 6 times 7?"))
        ann = await server.open("ann")
        assert ann.session.spec.extras == {}
        await server.play(ann, call("atm_read"))
        assert "what is 6 times 7?" in here.last_tool_output
        await server.play(ann, call("atm_send", to="worker", message="42"))
        (message,) = here.team_files.entries("worker")
        assert (message["from"], message["text"], message["source_team"]) == ("ann", "42", TEAM)
        read, sent = await server.audit()
        assert (read["event_type"], sent["event_type"]) == ("atm_read", "atm_send")
        assert (sent["agent_id"], sent["thread_id"]) == (ann.agent_id, ann.thread_id)
        assert sent["turn_id"]


@pytest.mark.covers("FR-4.5")
async def test_codex_cannot_say_that_it_is_somebody_else(tmp_path: Path, run: Path) -> None:
    """The tools have no such argument, and say so."""
    async with stage(tmp_path) as here, here.server(run) as server:
        ann = await server.open("ann")
        for name in ("identity", "from", "agent_id"):
            await server.play(ann, call("atm_send", to="worker", message="x", **{name: "team-lead"}))
            assert f"atm_send has no argument {name}." in here.last_tool_output
        assert here.team_files.entries("worker") == []


async def test_a_thread_that_was_started_without_tools_gets_them_over_a_bridge(
    tmp_path: Path, run: Path
) -> None:
    """Codex takes no new tools on a resume. Nobody has to approve the bridge's, even where nobody can."""
    async with stage(tmp_path) as here:
        async with here.server(run, with_mail=False) as server:
            ann = await server.open("ann")
            await server.play(ann, "%say hello")
        async with here.server(run) as server:
            again = await server.sessions.resume(ME, agent_id=ann.agent_id)
            assert again.thread_id == ann.thread_id
            assert again.record.config == {}
            events = await server.play(again, call("atm_send", to="worker", message="over the bridge"))
            (message,) = here.team_files.entries("worker")
            assert (message["from"], message["text"]) == ("ann", "over the bridge")
            used = [event for event in events if isinstance(event, Activity)]
            assert {event.title for event in used} == {"laneway_mail.atm_send"}
            (line,) = await server.audit()
            assert (line["agent_id"], line["identity"], line["thread_id"]) == (
                ann.agent_id,
                "ann",
                ann.thread_id,
            )
            assert line["turn_id"] == used[0].turn_id


async def test_a_bridge_does_nothing_under_a_name_that_is_somebody_elses_by_now(
    tmp_path: Path, run: Path
) -> None:
    """A teammate registered it while the session was at work; the model is told why, the log as well."""
    async with stage(tmp_path) as here:
        async with here.server(run, with_mail=False) as server:
            ann = await server.open("ann")
            await server.play(ann, "%say hello")
        async with here.server(run) as server:
            again = await server.sessions.resume(ME, agent_id=ann.agent_id)
            here.team_files.enrol(TEAM, "team-lead", "worker", "Ann")
            here.team_files.drop("ann", entry("worker", "for the other one"))
            for tool, arguments in (("atm_send", {"to": "worker", "message": "x"}), ("atm_read", {})):
                events = await server.play(again, call(tool, **arguments))
                assert {event.title for event in events if isinstance(event, Activity)} == {
                    f"laneway_mail.{tool}"
                }
                assert "registered Ann in the team crew" in here.last_tool_output
            assert here.team_files.entries("worker") == []
            assert [message["read"] for message in here.team_files.entries("ann")] == [False]
            lines = await server.audit()
            assert [line["outcome"].partition(":")[0] for line in lines] == ["refused", "refused"]


@pytest.mark.covers("FR-20.4", "FR-20.5")
@pytest.mark.needs("subagents")
async def test_what_a_subagent_sends_the_session_sends(tmp_path: Path, run: Path) -> None:
    """It has no name, no inbox and no place in the team; the audit log knows which thread it was."""
    async with stage(tmp_path) as here, here.server(run) as server:
        before = here.team_files.places.config(TEAM).read_bytes()
        ann = await server.open("ann", config={"features.multi_agent": True})
        prompt = call("atm_send", to="worker", message="from below") + "\n%say it is done"
        events = await server.play_subagent(ann, call("spawn_agent", message=prompt, agent_type="default"))
        (message,) = here.team_files.entries("worker")
        assert (message["from"], message["text"]) == ("ann", "from below")
        subagents = {event.thread_id for event in events}
        (line,) = await server.audit()
        assert (line["agent_id"], line["identity"]) == (ann.agent_id, "ann")
        assert {line["thread_id"]} == subagents
        assert line["thread_id"] != ann.thread_id
        assert here.team_files.places.config(TEAM).read_bytes() == before
        inboxes = {path.name for path in here.team_files.places.inboxes(TEAM).glob("*.json")}
        assert inboxes == {"worker.json", "ann.json"}  # the session can be answered, its subagent is nobody


@pytest.mark.needs("subagents")
async def test_a_callers_own_servers_start_beside_the_bridge_every_time(tmp_path: Path, run: Path) -> None:
    """Given as a table beside our entry; Codex takes keys in no fixed order, so one run proves nothing."""
    config: dict[str, Any] = {"features.multi_agent": True}
    async with stage(tmp_path) as here, here.server(run) as server:
        for number in range(STARTS):
            theirs = {"command": "/bin/sh", "args": ["-c", f"touch {tmp_path}/theirs-{number}; cat"]}
            dotted = {"mcp_servers.other.command": "/bin/sh", "mcp_servers.other.args": ["-c", "cat"]}
            await server.open(f"ann-{number}", config={**config, "mcp_servers": {"theirs": theirs}, **dotted})
        await until(lambda: min(len(bridges(server.local_server)), len(left_in(tmp_path))) >= STARTS)


async def test_a_callers_server_of_the_bridges_name_is_refused(tmp_path: Path, run: Path) -> None:
    """Neither is mixed with the other, nor may its tools pass for ours; and no session is left behind."""
    async with stage(tmp_path) as here, here.server(run) as server:
        for config in (
            {"mcp_servers": {"laneway_mail": {"command": "true"}}},
            {"mcp_servers.laneway_mail.command": "true", "features.multi_agent": True},
        ):
            with pytest.raises(ConfigRefused, match=r"mcp_servers\.laneway_mail is Laneway's own entry"):
                await server.open("ann", config=config)
        assert server.sessions.live() == []
        await server.open("ann")


@pytest.mark.needs("subagents")
async def test_bridges_end_with_their_session_and_no_secret_is_left_on_the_disk(
    tmp_path: Path, run: Path
) -> None:
    """Two sessions, a bridge each; the key stands neither in our records nor in Codex's home."""
    async with stage(tmp_path) as here:
        async with here.server(run) as server:
            for name in ("ann", "bob"):
                await server.play(
                    await server.open(name, config={"features.multi_agent": True}),
                    call("atm_send", to="worker", message=f"I am {name}"),
                )
            ours = bridges(server.local_server)
            assert len(ours) == 2
            assert server.mail is not None
            keys = [server.mail._keys.key(each.agent_id) for each in server.sessions.live()]
            senders = {message["from"] for message in here.team_files.entries("worker")}
            assert len(senders) == len(set(keys)) == 2
        for pid in ours:
            await wait_gone(pid)
        paths = [*here.state.rglob("*"), *here.rehearsal.home.rglob("*")]
        texts = [path.read_bytes() for path in paths if path.is_file()]
        assert texts
        assert not [key for key in keys if any(key.rpartition(".")[2].encode() in text for text in texts)]


@pytest.mark.needs("subagents")
async def test_a_command_in_the_sandbox_cannot_read_a_key(tmp_path: Path, run: Path) -> None:
    """It runs as the same user, but the kernel shows it no other process's environment."""
    async with stage(tmp_path) as here, here.server(run) as server:
        ann = await server.open("ann", config={"features.multi_agent": True})
        await server.play(ann, call("atm_pending_count"))
        (pid,) = bridges(server.local_server)
        assert b"LANEWAY_BRIDGE_KEY=" in environment_of(pid)
        await server.play(ann, f"%run tr '\\0' '\\n' < /proc/{pid}/environ | grep LANEWAY; echo asked")
        assert "asked" in here.last_tool_output
        assert "LANEWAY_BRIDGE_KEY=" not in here.last_tool_output


@pytest.mark.needs("subagents")
async def test_a_long_message_crosses_the_bridge_both_ways(tmp_path: Path, run: Path) -> None:
    """Longer than a pipe or a read; what comes back is as long as its reader is shown."""
    text = "0123456789" * 20_000
    async with stage(tmp_path) as here, here.server(run) as server:
        here.team_files.drop("ann", entry("worker", text, msg_id="the-long-one"))
        ann = await server.open("ann", config={"features.multi_agent": True})
        await server.play(ann, call("atm_send", to="worker", message=text))
        assert [message["text"] for message in here.team_files.entries("worker")] == [text]
        await server.play(ann, call("atm_read", message_id="the-long-one"))
        await server.play(ann, call("atm_read", message_id="the-long-one", offset=199_990))
        assert here.last_tool_output.count("0123456789") == 1
        assert "Characters 199990 to 200000 of 200000." in here.last_tool_output
