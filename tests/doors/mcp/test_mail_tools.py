"""The mail tools as MCP clients have them: in whose name they may act, and what is refused (FR-4.5)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from laneway.doors.mcp.names import CODEX
from laneway.store.store import Store
from laneway.testing.engine import HandEngine
from tests.core.named.support import TEAM
from tests.core.support import until
from tests.doors.mcp.mail_support import mail_stage
from tests.mail.tools_support import TeamFiles, entry

TOOLS = ["atm_send", "atm_read", "atm_broadcast", "atm_pending_count"]


@pytest.fixture
def team_files(tmp_path: Path) -> TeamFiles:
    team_files = TeamFiles(tmp_path / "home")
    team_files.create_team(TEAM, "team-lead", "worker")
    return team_files


@pytest.mark.covers("FR-4.1")
async def test_the_four_tools_are_listed_and_ask_in_whose_name(tmp_path: Path, team_files: TeamFiles) -> None:
    """Before any session, and before mail itself was even loaded."""
    async with mail_stage(tmp_path, team_files) as home:
        listed = (await home.client().ask("tools/list"))["tools"]
        assert [tool["name"] for tool in listed] == TOOLS
        for tool in listed:
            assert {"identity", "agent_id"} <= tool["inputSchema"]["properties"].keys()
            assert "identity" not in tool["inputSchema"].get("required", [])
        assert home.team_mail._mail is None


@pytest.mark.covers("FR-4.5", "NFR-6/-32009", "FR-4.6")
@pytest.mark.parametrize("nothing", [{}, {"identity": None}, {"identity": ""}])
async def test_without_a_name_every_mail_tool_is_refused(
    tmp_path: Path, team_files: TeamFiles, nothing: dict[str, Any]
) -> None:
    """Never the configured identity in its place, even where that one is held by this very process."""
    async with mail_stage(tmp_path, team_files) as home:
        await home.here.sessions.reserve("codex")
        client, words = home.client(), {"to": "worker", "message": "hi"}
        for tool, arguments in zip(TOOLS, (words, {}, {"message": "hi"}, {}), strict=True):
            error = await client.error(tool, **arguments, **nothing)
            assert (error.code, error.data["error_source"]) == (-32009, "proxy")
            assert "identity" in error.message
        assert team_files.entries("worker") == []
        lines = await home.audit()
        assert [line["event_type"] for line in lines] == TOOLS
        assert all(line["outcome"].startswith("refused: ") and line["identity"] is None for line in lines)


@pytest.mark.covers("FR-4.5", "FR-9.1", "FR-4.6")
async def test_a_client_acts_as_its_own_session_by_name_or_by_id(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """And every line in the audit log says which."""
    async with mail_stage(tmp_path, team_files) as home:
        agent_id = await home.session("ann")
        client = home.client()
        await client.good("atm_send", to="worker", message="by name", identity="ann")
        await client.good("atm_send", to="worker", message="by id", agent_id=agent_id)
        await client.good("atm_send", to="worker", message="by both", agent_id=agent_id, identity="ann")
        assert await client.code("atm_read", agent_id=agent_id, identity="bob") == -32007
        assert await client.code("atm_read", agent_id="agent-gone") == -32002
        assert [found["from"] for found in team_files.entries("worker")] == ["ann"] * 3
        sent = [line for line in await home.audit() if line["event_type"] == "atm_send"]
        assert [(line["agent_id"], line["identity"], line["recipient"]) for line in sent] == [
            (agent_id, "ann", "worker@crew")
        ] * 3
        assert [line["message_summary"] for line in sent] == ["by name", "by id", "by both"]


@pytest.mark.covers("FR-8.7", "FR-4.7")
async def test_mail_can_be_read_before_any_session_is_started(tmp_path: Path, team_files: TeamFiles) -> None:
    """Under a name that is free: it is claimed while the call lasts and free again behind it."""
    team_files.drop("codex", entry("worker", "are you there?"))
    async with mail_stage(tmp_path, team_files) as home:
        client = home.client()
        assert (await client.good("atm_pending_count", identity="codex"))["unread"] == 1
        result = await client.tool("atm_read", identity="codex")
        (row,) = json.loads(result["content"][0]["text"])
        assert (row["from"], row["message"], row["text"]) == (
            "worker",
            "are you there?",
            "are you there?",
        )
        assert result["structuredContent"]["messages"] == [row]
        assert home.here.engine.threads == {}
        Store(home.here.root, TEAM).claim("codex").release()


@pytest.mark.covers("FR-4.5")
async def test_nobody_acts_as_another_clients_session(tmp_path: Path, team_files: TeamFiles) -> None:
    """Neither by its name nor by its id, of which it is told nothing."""
    async with mail_stage(tmp_path, team_files) as home:
        agent_id = await home.session("ann", "me")
        stranger = home.client("somebody else")
        words = {"to": "worker", "message": "I am ann"}
        assert await stranger.code("atm_send", identity="ann", **words) == -32001
        assert await stranger.code("atm_read", identity="ann") == -32001
        assert await stranger.code("atm_send", agent_id=agent_id, **words) == -32002
        assert team_files.entries("worker") == []


@pytest.mark.covers("FR-4.5")
async def test_nor_as_one_that_is_only_beginning(tmp_path: Path, team_files: TeamFiles) -> None:
    """The name is bound before the session is there for anybody."""
    engine = HandEngine()
    engine.hold_starts = asyncio.Event()
    async with mail_stage(tmp_path, team_files, engine=engine) as home:
        beginning = asyncio.ensure_future(home.session("ann", "me"))
        await until(lambda: home.here.sessions.holder("ann"))
        assert await home.client("somebody else").code("atm_read", identity="ann") == -32001
        engine.hold_starts.set()
        await beginning
        assert (await home.client("me").good("atm_read", identity="ann"))["count"] == 0


@pytest.mark.covers("FR-4.5", "FR-20.2")
async def test_a_name_that_another_process_holds_is_refused(tmp_path: Path, team_files: TeamFiles) -> None:
    """It is that one's mail to read. Both work on the same inboxes: what one sends the other gets."""
    async with mail_stage(tmp_path, team_files) as home, mail_stage(tmp_path / "second", team_files) as other:
        team_files.enrol(
            TEAM,
            "team-lead",
            "worker",
            "ann",
            "bob",
            ann={"laneway": {"pid": 1}},
            bob={"laneway": {"pid": 1}},
        )
        claim = Store(home.here.root, TEAM).claim("zoe")
        error = await home.client().error("atm_read", identity="zoe")
        assert (error.code, error.data["identity"]) == (-32001, "zoe")
        claim.release()
        assert (await home.client().good("atm_read", identity="zoe"))["count"] == 0

        await home.session("ann")
        await other.session("bob")
        await home.client().good("atm_send", identity="ann", to="bob", message="hello from the first")
        (row,) = (await other.client().good("atm_read", identity="bob"))["messages"]
        assert (row["from"], row["text"]) == ("ann", "hello from the first")


@pytest.mark.covers("FR-4.5")
@pytest.mark.parametrize(
    ("identity", "code"),
    [
        ("worker", -32001),
        ("Worker", -32001),
        ("a-b", -32001),
        ("team-lead", -32007),
        ("Team-Lead", -32007),
        ("user", -32007),
        ("system", -32007),
        ("main", -32007),
        ("../ann", -32007),
        ("a@b", -32007),
        (7, -32602),
    ],
)
async def test_names_that_are_somebody_elses_or_no_names_are_refused(
    tmp_path: Path, team_files: TeamFiles, identity: Any, code: int
) -> None:
    """`worker` and `a.b` are members that Claude Code registered; the others are reserved, or paths."""
    team_files.enrol(TEAM, "team-lead", "worker", "a.b")
    async with mail_stage(tmp_path, team_files) as home:
        client = home.client()
        assert await client.code("atm_send", identity=identity, to="worker", message="hi") == code
        assert await client.code("atm_read", identity=identity) == code
        assert team_files.entries("worker") == []


async def test_what_is_wrong_with_a_message_is_a_result_and_with_its_shape_an_error(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Claude Code shows its model the text of either; programs tell them apart."""
    async with mail_stage(tmp_path, team_files) as home:
        client = home.client()
        result = await client.tool("atm_send", identity="ann", to="nobody", message="hi")
        assert result["isError"] is True
        assert "Nobody called nobody" in result["content"][0]["text"]
        assert await client.code("atm_send", identity="ann", to="worker") == -32602
        assert await client.code("atm_send", identity="ann", to="worker", message="x", cc="bob") == -32602
        assert await client.code("atm_read", identity="ann", limit=0) == -32602
        lines = [line["outcome"] for line in await home.audit()]
        assert len(lines) == 1
        assert lines[0].startswith("refused: Nobody called nobody")


async def test_what_did_not_fit_is_told_beside_the_messages(tmp_path: Path, team_files: TeamFiles) -> None:
    """The first text of a result is the array and nothing else."""
    team_files.drop("ann", entry("worker", "one"), entry("worker", "two"))
    async with mail_stage(tmp_path, team_files) as home:
        result = await home.client().tool("atm_read", identity="ann", limit=1)
        assert [row["text"] for row in json.loads(result["content"][0]["text"])] == ["one"]
        assert result["content"][1]["text"].startswith("1 more are unread")


async def test_the_older_seed_calls_a_session_by_its_own_word(tmp_path: Path, team_files: TeamFiles) -> None:
    """`codex_id` there; nothing else differs."""
    async with mail_stage(tmp_path, team_files, CODEX) as home:
        agent_id = await home.session("ann")
        await home.client().good("atm_send", codex_id=agent_id, to="worker", message="hi")
        assert await home.client().code("atm_read", agent_id=agent_id) == -32602
