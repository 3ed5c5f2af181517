"""The official client judges news of mail, over HTTP in both eras: it is told, and told when they end."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.core.named.support import TEAM
from tests.core.support import until
from tests.doors.mcp.http_support import TOKEN, Place, serving
from tests.doors.mcp.mail_support import mail_stage
from tests.mail.tools_support import TeamFiles

ANN = "mail://crew/ann"


@pytest.fixture
def team_files(tmp_path: Path) -> TeamFiles:
    team_files = TeamFiles(tmp_path / "home")
    team_files.create_team(TEAM, "worker")
    return team_files


@asynccontextmanager
async def client(place: Place, era: str, **more: Any) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as web:
        transport = streamable_http_client(place.url, http_client=web)
        async with Client(transport, mode=era, **more) as connected:
            yield connected


async def test_a_client_of_the_stateless_era_listens_and_is_told(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """What it may not hear of is not honoured; a graceful end ends its loop."""
    async with (
        mail_stage(tmp_path, team_files) as home,
        serving(home.server) as place,
        client(place, "auto") as peer,
    ):
        async with peer.listen(resource_subscriptions=[ANN, "mail://crew/team-lead"]) as listening:
            assert listening.honored.resource_subscriptions == [ANN]
            home.team_mail.subscriptions.notify("ann")
            event = await anext(listening)
            assert getattr(event, "uri", None) == ANN
            home.server.end_subscriptions()
            assert [later async for later in listening] == []
        assert home.team_mail.subscriptions.keys() == frozenset()


async def test_a_client_that_leaves_listens_no_more(tmp_path: Path, team_files: TeamFiles) -> None:
    """Its connection is its request."""
    async with mail_stage(tmp_path, team_files) as home, serving(home.server) as place:
        async with client(place, "auto") as peer, peer.listen(resource_subscriptions=[ANN]):
            assert home.team_mail.subscriptions.keys() == {"ann"}
        await until(lambda: home.team_mail.subscriptions.keys() == frozenset())


async def test_a_client_with_a_handshake_subscribes_and_is_told_on_its_own_stream(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Each of its requests is a connection of its own; what it subscribed to ends with its session."""
    told: asyncio.Queue[Any] = asyncio.Queue()

    async def hear(message: Any) -> None:
        if isinstance(message, mcp_types.ResourceUpdatedNotification):
            told.put_nowait(message.params.uri)

    async with mail_stage(tmp_path, team_files) as home, serving(home.server) as place:
        async with client(place, "legacy", message_handler=hear) as peer:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the client calls its own old way deprecated
                await peer.subscribe_resource(ANN)
            await until(lambda: home.team_mail.subscriptions.notify("ann") == 1)
            assert await told.get() == ANN
        await until(lambda: home.team_mail.subscriptions.keys() == frozenset())
