"""Mail through the whole server, as clients and the real Codex behind it have it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.doors.mcp.support import Client, stage
from tests.doors.mcp.views import QUIET
from tests.mail.tools_support import TEAM, TeamFiles, entry

ENV = {**QUIET, "ATM_TEAM": TEAM}
MAIL = {"atm_send", "atm_read", "atm_broadcast", "atm_pending_count"}


@pytest.fixture
def team_files(tmp_path: Path) -> TeamFiles:
    team_files = TeamFiles(tmp_path)
    team_files.create_team(TEAM, "team-lead", "worker")
    return team_files


async def names(client: Client) -> set[str]:
    return {tool["name"] for tool in (await client.ask("tools/list", {}))["result"]["tools"]}


@pytest.mark.covers("FR-4.1", "FR-15.1")
async def test_the_mail_tools_are_listed_beside_codex_before_it_runs(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """And can be left out, because every tool costs tokens."""
    async with stage(tmp_path) as here:
        async with here.server("mcp", env=ENV) as client:
            assert MAIL | {"codex", "codex-reply"} <= await names(client)
            assert (await client.content("agent_status"))["child_alive"] is False
            hello = await client.greet({})
            assert hello["result"]["capabilities"]["resources"] == {"subscribe": True}
        async with here.server("mcp", "--tools", "codex,sessions", env=ENV) as client:
            assert not MAIL & await names(client)


@pytest.mark.covers("FR-4.5", "FR-8.7", "FR-9.1")
async def test_codex_and_its_client_use_one_inbox_each_in_its_own_right(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Codex answers as its session; the client reads as that session, and without a name it does nothing."""
    team_files.drop("dev", entry("worker", "how far are you?"))
    async with (
        stage(tmp_path) as here,
        here.server("mcp", env={**ENV, "LANEWAY_AUTO_MAIL": "false"}) as client,
    ):
        assert (await client.error("atm_read"))["code"] == -32009
        assert (await client.content("atm_pending_count", identity="dev"))["unread"] == 1
        words = json.dumps({"to": "worker", "message": "half-way"})
        session = await client.content("codex", prompt=f"%tool atm_send {words}", identity="dev")
        (found,) = team_files.entries("worker")
        assert (found["from"], found["text"]) == ("dev", "half-way")
        read = await client.content("atm_read", agent_id=session["agent_id"])
        assert [row["message"] for row in read["messages"]] == ["how far are you?"]
        uri = f"mail://{TEAM}/dev"
        resources = (await client.ask("resources/list", {}))["result"]["resources"]
        assert uri in [each["uri"] for each in resources]
        assert (await client.error("atm_send", identity="worker", to="dev", message="x"))["code"] == -32001
    lines = [json.loads(line) for line in (here.sessions / TEAM / "audit.jsonl").read_text().splitlines()]
    mail = [line for line in lines if line["event_type"] in MAIL]
    assert [(line["event_type"], line["identity"]) for line in mail] == [
        ("atm_read", None),
        ("atm_pending_count", "dev"),
        ("atm_send", "dev"),
        ("atm_read", "dev"),
        ("atm_send", "worker"),
    ]
    assert [line["outcome"].partition(":")[0] for line in mail] == [
        "refused",
        "1 unread",
        "delivered",
        "1 read, 0 left",
        "refused",
    ]


async def test_a_request_for_news_does_not_keep_the_server_from_ending(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Its client hangs up; the open request is answered and the process is gone."""
    async with stage(tmp_path) as here, here.server("mcp", env=ENV, greet=False) as client:
        asked = client.stateless(
            "subscriptions/listen", {"notifications": {"resourceSubscriptions": [f"mail://{TEAM}/dev"]}}
        )
        open_request = asyncio.ensure_future(asked)
        await client.wait_heard(lambda m: m["method"] == "notifications/subscriptions/acknowledged")
        assert await client.hang_up() == 0
        assert (await open_request)["result"]["resultType"] == "complete"
