"""The page as its settings say: each of them has an effect that is seen from outside."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from laneway.app.page import PageServer
from laneway.base.errors import UsageError
from laneway.base.settings import load

DEADLINE_S = 30.0
HIDDEN = "a-token-of-mine-0123456789"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@asynccontextmanager
async def served(folder: Path, **settings: str) -> AsyncIterator[str]:
    """The address that is printed. Settings come from the environment."""
    environment = {f"LANEWAY_PAGE_{name.upper()}": value for name, value in settings.items()}
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    server = PageServer(load({}, environment, folder, folder), announce=ready.set_result)
    serving = asyncio.create_task(server.serve([]))
    try:
        async with asyncio.timeout(DEADLINE_S):
            waited: set[asyncio.Future[Any]] = {serving, ready}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            await serving
        yield ready.result()
    finally:
        serving.cancel()
        await asyncio.wait({serving})


async def asks(address: str, *, token: str, host: str | None = None, origin: str = "") -> int:
    """The status of one request to the page, under a name of its."""
    url = urlsplit(address)
    headers = {"authorization": f"Bearer {token}", "host": host or url.netloc}
    if origin:
        headers["origin"] = origin
    async with httpx2.AsyncClient(timeout=DEADLINE_S) as web:
        return (await web.get(f"http://127.0.0.1:{url.port}/api/page", headers=headers)).status_code


async def test_port_token_and_further_names_are_those_of_the_settings(tmp_path: Path) -> None:
    port = free_port()
    async with served(tmp_path, port=str(port), token=HIDDEN, names="desk.example.org") as address:
        assert address == f"http://127.0.0.1:{port}/#token={HIDDEN}"
        assert await asks(address, token=HIDDEN) == 200
        assert await asks(address, token=HIDDEN, host=f"desk.example.org:{port}") == 200
        assert await asks(address, token=HIDDEN, host=f"other.example.org:{port}") == 421
        assert await asks(address, token="another-token-0123456789") == 401


async def test_a_proxy_with_tls_in_front_of_the_page_is_called_by_its_name_alone(tmp_path: Path) -> None:
    """The same name without TLS is another server, on another port, whose pages may not speak to us."""
    async with served(tmp_path, token=HIDDEN, names="Desk.example.org") as address:
        port, name = urlsplit(address).port, "desk.example.org"
        for origin, status in (
            (f"https://{name}", 200),
            (f"http://{name}:{port}", 200),
            (f"http://{name}", 403),
            (f"https://{name}:444", 403),
        ):
            assert await asks(address, token=HIDDEN, host=name, origin=origin) == status, origin


async def test_each_start_has_a_token_of_its_own(tmp_path: Path) -> None:
    """And by default no other name for this machine is answered."""
    async with served(tmp_path) as one, served(tmp_path) as other:
        tokens = [urlsplit(address).fragment.removeprefix("token=") for address in (one, other)]
        assert tokens[0] != tokens[1]
        assert await asks(one, token=tokens[0]) == 200
        assert await asks(one, token=tokens[1]) == 401
        assert await asks(one, token=tokens[0], host="desk.example.org") == 421


async def test_an_address_that_others_can_reach_is_refused_or_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The token stands in no line of the log."""
    with pytest.raises(UsageError, match=r"page\.remote"):
        async with served(tmp_path, host="0.0.0.0"):
            pass
    assert caplog.records == []
    async with served(tmp_path, host="0.0.0.0", remote="true", token=HIDDEN) as address:
        assert urlsplit(address).hostname == "127.0.0.1"  # which can be opened, as 0.0.0.0 cannot everywhere
        assert await asks(address, token=HIDDEN) == 200
        assert await asks(address, token=HIDDEN, host="desk.example.org") == 421
    (warning,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "can be reached from other machines at 0.0.0.0" in warning
    assert HIDDEN not in caplog.text
    async with served(tmp_path, host="0.0.0.0", remote="true", names="desk.example.org") as address:
        assert urlsplit(address).hostname == "desk.example.org"
