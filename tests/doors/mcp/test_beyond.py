"""What the door does not serve goes to the server behind it, if there is one (FR-1.1)."""

from __future__ import annotations

import pytest

from laneway.base.errors import EngineLost, RemoteError
from laneway.doors.mcp.server import Connection, McpServer, Upstream
from laneway.wire.messages import Raw
from laneway.wire.peer import Peer

ODD = Raw(b'{"n": 1.50e1,"list":[1, 2 ]}')


class Behind:
    """A server that answers everything with what it was asked, until it dies."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, bytes]] = []
        self.is_dead = False

    async def forward(self, method: str, params: Raw) -> Raw:
        if self.is_dead:
            raise EngineLost("exit code 3")
        self.heard.append((method, bytes(params)))
        return params

    def forward_notification(self, method: str, params: Raw) -> None:
        self.heard.append((method, bytes(params)))

    def connect_client(self, client: Upstream | None) -> None:
        pass


def served(behind: Behind | None) -> tuple[McpServer, Connection]:
    async def nobody(method: str, params: Raw, request_id: bytes) -> None:
        raise AssertionError(method)

    line = Peer(lambda data: None, on_request=nobody, on_notification=lambda *told: None)
    return McpServer({"name": "test"}, [], fallback=behind), Connection("me", line)


async def test_an_unknown_method_goes_on_as_it_came_and_a_known_one_does_not() -> None:
    """Its params are not even looked at; no server behind us is -32601, as ever."""
    behind = Behind()
    server, connection = served(behind)
    assert await server.serve(connection, "brand/new", ODD, b"1") == ODD
    assert await server.serve(connection, "other/new", Raw(b"[1, 2 ]"), b"2") == Raw(b"[1, 2 ]")
    assert await server.serve(connection, "ping", ODD, b"3") == {}
    assert behind.heard == [("brand/new", bytes(ODD)), ("other/new", b"[1, 2 ]")]
    server, connection = served(None)
    with pytest.raises(RemoteError) as refused:
        await server.serve(connection, "brand/new", ODD, b"1")
    assert refused.value.code == -32601


async def test_a_dead_server_behind_us_is_told_as_such() -> None:
    """By the seed's code, with its cause."""
    behind = Behind()
    behind.is_dead = True
    server, connection = served(behind)
    with pytest.raises(RemoteError) as refused:
        await server.serve(connection, "brand/new", ODD, b"1")
    assert (refused.value.code, refused.value.data["exit"]) == (-32005, "exit code 3")


async def test_notifications_go_on_but_for_those_about_this_connection() -> None:
    """Ids and handshakes are each pipe's own."""
    behind = Behind()
    server, _ = served(behind)
    for method in (
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/roots/list_changed",
    ):
        server.receive_notification(method, ODD)
    assert behind.heard == [("notifications/roots/list_changed", bytes(ODD))]
