"""Mail as a resource, and news of it: subscriptions of the old eras, open requests of the new."""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import RemoteError
from laneway.doors.mcp.server import McpServer
from tests.core.named.support import TEAM
from tests.core.support import until
from tests.doors.mcp.mail_support import STATELESS, Client, mail_stage
from tests.mail.tools_support import TeamFiles, entry

ANN = "mail://crew/ann"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


@pytest.fixture
def team_files(tmp_path: Path) -> TeamFiles:
    team_files = TeamFiles(tmp_path / "home")
    team_files.create_team(TEAM, "team-lead", "worker")
    return team_files


async def code_of(asking: Any) -> int:
    with pytest.raises(RemoteError) as caught:
        await asking
    return caught.value.code


# ── reading ────────────────────────────────────────────────────────────────


async def test_unread_mail_can_be_read_as_a_resource_and_stays_unread(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Listed for the sessions of whoever asks; a template tells of the others."""
    team_files.drop("ann", entry("worker", "hello"))
    async with mail_stage(tmp_path, team_files) as home:
        await home.session("ann")
        client = home.client()
        listed = (await client.ask("resources/list"))["resources"]
        assert ANN in [each["uri"] for each in listed]
        templates = (await client.ask("resources/templates/list"))["resourceTemplates"]
        assert "mail://{team}/{identity}" in [each["uriTemplate"] for each in templates]
        (content,) = (await client.ask("resources/read", uri=ANN))["contents"]
        assert [row["text"] for row in json.loads(content["text"])] == ["hello"]
        assert [found["read"] for found in team_files.entries("ann")] == [False]
        assert ANN not in [
            each["uri"] for each in (await home.client("x").ask("resources/list"))["resources"]
        ]


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("mail://crew/worker", -32001),
        ("mail://crew/team-lead", -32602),
        ("mail://other/ann", -32602),
        ("mail://crew/../ann", -32602),
        ("mail://crew", -32602),
        ("post://crew/ann", -32602),
    ],
)
async def test_what_is_not_ones_own_cannot_be_read(
    tmp_path: Path, team_files: TeamFiles, uri: str, code: int
) -> None:
    """The same rule as for the tools, for names that are names."""
    async with mail_stage(tmp_path, team_files) as home:
        assert await code_of(home.client().ask("resources/read", uri=uri)) == code


async def test_another_clients_mail_is_neither_read_nor_told_of(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Its session has the name."""
    async with mail_stage(tmp_path, team_files) as home:
        await home.session("ann", "me")
        stranger = home.client("somebody else")
        assert await code_of(stranger.ask("resources/read", uri=ANN)) == -32001
        assert await code_of(stranger.ask("resources/subscribe", uri=ANN)) == -32602


# ── with a handshake ───────────────────────────────────────────────────────


async def test_a_subscribed_client_is_told_until_it_has_heard_enough(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """The capability says that it can; subscribing twice tells it once."""
    async with mail_stage(tmp_path, team_files) as home:
        client, other = home.client(), home.client("other")
        hello = await client.ask("initialize", protocolVersion="2025-11-25", capabilities={})
        assert hello["capabilities"]["resources"] == {"subscribe": True}
        assert home.team_mail.subscriptions.keys() == frozenset()
        for _ in range(2):
            assert await client.ask("resources/subscribe", uri=ANN) == {}
        await other.ask("resources/subscribe", uri="mail://crew/bob")
        assert home.team_mail.subscriptions.keys() == {"ann", "bob"}
        assert home.team_mail.subscriptions.notify("ann") == 1
        assert home.team_mail.subscriptions.notify("zoe") == 0
        assert client.heard == [(UPDATED, {"uri": ANN})]
        assert other.heard == []
        await client.ask("resources/unsubscribe", uri=ANN)
        await client.ask("resources/unsubscribe", uri="mail://crew/never")
        assert home.team_mail.subscriptions.notify("ann") == 0


async def test_a_name_that_became_somebody_elses_is_told_to_nobody_else(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Subscribed to while it was free; then another client opened a session of that name."""
    async with mail_stage(tmp_path, team_files) as home:
        early = home.client("early")
        await early.ask("resources/subscribe", uri=ANN)
        await home.session("ann", "me")
        assert (
            home.team_mail.subscriptions.notify("ann"),
            early.heard,
            home.team_mail.subscriptions.keys(),
        ) == (
            0,
            [],
            frozenset(),
        )


async def test_whoever_hangs_up_takes_its_subscriptions_along(tmp_path: Path, team_files: TeamFiles) -> None:
    """Nothing is kept for a client that is gone."""
    async with mail_stage(tmp_path, team_files) as home:
        client = home.client()
        await client.ask("resources/subscribe", uri=ANN)
        del client
        gc.collect()
        assert home.team_mail.subscriptions.keys() == frozenset()


@pytest.mark.parametrize(
    "uri",
    [
        "laneway://sessions/agent-1/transcript",
        "mail://crew/user",
        "mail://crew/worker",
        "mail://crew/WORKER",
        "x",
        None,
        7,
    ],
)
async def test_only_mail_that_one_may_know_of_can_be_subscribed_to(
    tmp_path: Path, team_files: TeamFiles, uri: Any
) -> None:
    """A transcript changes all the time, and nobody is told."""
    async with mail_stage(tmp_path, team_files) as home:
        assert await code_of(home.client().ask("resources/subscribe", uri=uri)) == -32602


# ── without a handshake ────────────────────────────────────────────────────


async def listening(client: Client, *uris: str) -> asyncio.Future[dict[str, Any]]:
    """An open request, acknowledged."""
    wanted = {"toolsListChanged": True, "resourceSubscriptions": list(uris)}
    open_request = asyncio.ensure_future(
        client.ask("subscriptions/listen", notifications=wanted, _meta=STATELESS)
    )
    await until(lambda: client.heard)
    return open_request


async def test_an_open_request_is_acknowledged_then_told_and_answered_at_the_end(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """What is not offered is left out of the acknowledgement; everything names the request that it is for."""
    async with mail_stage(tmp_path, team_files) as home:
        client = home.client()
        open_request = await listening(client, ANN, "mail://crew/team-lead", "mail://crew/worker")
        meta = {SUBSCRIPTION: 1}
        assert client.heard == [
            (ACKNOWLEDGED, {"notifications": {"resourceSubscriptions": [ANN]}, "_meta": meta})
        ]
        assert home.team_mail.subscriptions.keys() == {"ann"}
        home.team_mail.subscriptions.notify("ann")
        assert client.heard[1:] == [(UPDATED, {"uri": ANN, "_meta": meta})]
        assert not open_request.done()
        home.server.end_subscriptions()
        answer = await open_request
        assert answer["resultType"] == "complete"
        assert answer["_meta"][SUBSCRIPTION] == 1
        assert home.team_mail.subscriptions.notify("ann") == 0


async def test_a_request_that_comes_as_we_end_is_answered(tmp_path: Path, team_files: TeamFiles) -> None:
    """Whether one may know of a resource takes a look at a disk; the end can come meanwhile."""
    async with mail_stage(tmp_path, team_files) as home:
        client = home.client()
        wanted = {"resourceSubscriptions": [ANN]}
        open_request = asyncio.ensure_future(
            client.ask("subscriptions/listen", notifications=wanted, _meta=STATELESS)
        )
        await asyncio.sleep(0)  # it has begun, and looks
        home.server.end_subscriptions()
        assert (await open_request)["resultType"] == "complete"


async def test_a_request_that_is_given_up_is_told_nothing_more(tmp_path: Path, team_files: TeamFiles) -> None:
    """Cancelled by its client, or its connection is gone."""
    async with mail_stage(tmp_path, team_files) as home:
        client = home.client()
        open_request = await listening(client, ANN)
        open_request.cancel()
        await asyncio.gather(open_request, return_exceptions=True)
        assert home.team_mail.subscriptions.notify("ann") == 0


async def test_each_era_has_its_own_way_and_a_server_without_news_has_none(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """A method is offered or it is not found."""
    async with mail_stage(tmp_path, team_files) as home:
        client = home.client()
        assert await code_of(client.ask("resources/subscribe", uri=ANN, _meta=STATELESS)) == -32601
        assert await code_of(client.ask("subscriptions/listen", notifications={})) == -32601
        assert await code_of(client.ask("subscriptions/listen", _meta=STATELESS)) == -32602
        plain = Client(McpServer({"name": "plain"}, (), resources=home.team_mail.resources), "me")
        for method, beside in (("resources/subscribe", {}), ("subscriptions/listen", {"_meta": STATELESS})):
            assert await code_of(plain.ask(method, **beside)) == -32601
        told = (await plain.ask("server/discover", _meta=STATELESS))["capabilities"]
        assert told["resources"] == {}
