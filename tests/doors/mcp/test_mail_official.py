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
from tests.doors.mcp.mail_support import house
from tests.mail.tools_support import Town

ANN = "mail://crew/ann"


@pytest.fixture
def town(tmp_path: Path) -> Town:
    town = Town(tmp_path / "home")
    town.found(TEAM, "worker")
    return town


@asynccontextmanager
async def client(place: Place, era: str, **more: Any) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as web:
        transport = streamable_http_client(place.url, http_client=web)
        async with Client(transport, mode=era, **more) as connected:
            yield connected


async def test_a_client_of_the_stateless_era_listens_and_is_told(tmp_path: Path, town: Town) -> None:
    """What it may not hear of is not honoured; a graceful end ends its loop."""
    async with house(tmp_path, town) as home, serving(home.server) as place, client(place, "auto") as peer:
        async with peer.listen(resource_subscriptions=[ANN, "mail://crew/team-lead"]) as listening:
            assert listening.honored.resource_subscriptions == [ANN]
            home.room.news.notify("ann")
            event = await anext(listening)
            assert getattr(event, "uri", None) == ANN
            home.server.end_news()
            assert [later async for later in listening] == []
        assert home.room.news.keys() == frozenset()


async def test_a_client_that_leaves_listens_no_more(tmp_path: Path, town: Town) -> None:
    """Its connection is its request."""
    async with house(tmp_path, town) as home, serving(home.server) as place:
        async with client(place, "auto") as peer, peer.listen(resource_subscriptions=[ANN]):
            assert home.room.news.keys() == {"ann"}
        await until(lambda: home.room.news.keys() == frozenset())


async def test_a_client_with_a_handshake_subscribes_and_is_told_on_its_own_stream(
    tmp_path: Path, town: Town
) -> None:
    """Each of its requests is a connection of its own; what it subscribed to ends with its session."""
    told: asyncio.Queue[Any] = asyncio.Queue()

    async def hear(message: Any) -> None:
        if isinstance(message, mcp_types.ResourceUpdatedNotification):
            told.put_nowait(message.params.uri)

    async with house(tmp_path, town) as home, serving(home.server) as place:
        async with client(place, "legacy", message_handler=hear) as peer:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the client calls its own old way deprecated
                await peer.subscribe_resource(ANN)
            await until(lambda: home.room.news.notify("ann") == 1)
            assert await told.get() == ANN
        await until(lambda: home.room.news.keys() == frozenset())
