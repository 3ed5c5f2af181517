"""What the engine on `codex mcp-server` passes through, in both directions."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from laneway.base.errors import EngineLost, RemoteError
from laneway.testing.old_server import BEYOND
from laneway.wire.peer import Raw
from tests.codex.relay_support import SPEC, relay, relayed
from tests.codex.support import ME, play


class Client:
    """The client at the other side, as the link sees it."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, bytes]] = []
        self.notifications: list[tuple[str, bytes]] = []
        self._heard = asyncio.Event()

    async def request(self, method: str, params: Raw) -> Raw:
        self.requests.append((method, bytes(params)))
        return Raw(b'{"mine": 1.0e0}')

    def notify(self, method: str, params: Raw) -> None:
        self.notifications.append((method, bytes(params)))
        self._heard.set()

    async def wait_for(self, method: str) -> None:
        while not any(heard == method for heard, _ in self.notifications):
            self._heard.clear()
            await self._heard.wait()


@pytest.mark.covers("FR-1.1")
async def test_a_request_that_laneway_does_not_serve_goes_through_as_it_came() -> None:
    """Byte for byte but for the id; so does the answer."""
    engine = relay()
    async with relayed(engine):
        answer = await engine.forward("brand/new", Raw(BEYOND.encode()))
        line = msgspec.json.decode(answer)["line"]
        assert f'"method":"brand/new","params":{BEYOND}}}' in line
        assert bytes(answer).startswith(b'{"line": "{')
        with pytest.raises(RemoteError) as refused:
            await engine.forward("refused/always", Raw(b"{}"))
        error = refused.value
        assert (error.code, error.message, error.data) == (-32042, "No.", {"why": [1]})


async def test_a_request_that_is_given_up_is_cancelled_in_the_child_under_its_own_id() -> None:
    """By its caller, or because the child never answers it."""
    engine, client = relay(forward_s=0.2), Client()
    engine.connect_client(client)
    async with relayed(engine):
        with pytest.raises(RemoteError, match="did not answer never/answered"):
            await engine.forward("never/answered", Raw(b"{}"))
        await client.wait_for("cancel/seen")
        (_, asked), (_, cancelled) = client.notifications
        assert asked == cancelled


async def test_the_death_of_the_child_answers_what_was_passed_on() -> None:
    """With its cause."""
    engine = relay()
    async with relayed(engine) as hub:
        waiting = asyncio.ensure_future(engine.forward("never/answered", Raw(b"{}")))
        await play(await hub.start(ME, SPEC), "exit 0")
        with pytest.raises(EngineLost, match="exit code 0"):
            await waiting


@pytest.mark.covers("FR-1.1")
async def test_what_the_child_says_beyond_our_knowledge_reaches_the_client_as_it_came() -> None:
    """Requests, notifications, events of nobody's thread; the client's answer goes back untouched."""
    engine, client = relay(), Client()
    engine.connect_client(client)
    async with relayed(engine) as hub:
        session = await hub.start(ME, SPEC)
        _, result = await play(session, "call")
        assert client.requests == [("brand/new", BEYOND.encode())]
        assert result.text == '{"mine": 1.0}'
        await play(session, "news")
        assert client.notifications == [
            ("brand/news", BEYOND.encode()),
            ("codex/event", b'{"msg": {"type": "stray"}, "id": ""}'),
        ]


async def test_without_a_client_an_unknown_request_is_refused() -> None:
    """Never an empty result, never silence."""
    async with relayed(relay()) as hub:
        _, result = await play(await hub.start(ME, SPEC), "call")
        assert '"code": -32601' in result.text


@pytest.mark.covers("FR-1.1")
async def test_a_notification_goes_through_once_there_is_somebody_to_hear_it() -> None:
    """It starts nothing by itself."""
    engine, client = relay(), Client()
    engine.connect_client(client)
    async with relayed(engine):
        engine.forward_notification("say/hello", Raw(BEYOND.encode()))
        assert not engine.is_running
        await engine.link()
        engine.forward_notification("say/hello", Raw(BEYOND.encode()))
        await client.wait_for("said/back")
        (method, params), *rest = client.notifications
        assert (method, rest) == ("said/back", [])
        assert f'"params":{BEYOND}}}' in msgspec.json.decode(params)["line"]
