"""A server that is not open yet: what it answers all the same, what waits, and what if it stays so."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway import __version__
from laneway.app import mcp as app_mcp
from laneway.app import mcp_server as app_mcp_server
from laneway.cli import mcp, mcp_server
from laneway.cli.command_settings import settings_for
from laneway.doors.mcp.definitions import server_info
from laneway.doors.mcp.names import AGENTS, CODEX, Names
from laneway.doors.mcp.schemas import dropin_front
from tests.doors.mcp.support import DEADLINE_S, Client, Message

SLOW_SERVER = str(Path(__file__).with_name("slow_server.py"))


class Slow:
    """A client, and the way to open the house."""

    def __init__(self, client: Client, gate: Path) -> None:
        self.client = client
        self._gate = gate

    async def tell(self, word: str) -> None:
        await asyncio.to_thread(self._gate.write_text, word)

    def call(self, text: str) -> asyncio.Future[Message]:
        return self.client.start("echo", text=text)


@asynccontextmanager
async def slow_server(folder: Path, *flags: str) -> AsyncIterator[Slow]:
    """The house must be told to open, or not to: it waits for that even when its client has gone."""
    gate = folder / "gate"
    os.mkfifo(gate)
    process = await asyncio.create_subprocess_exec(
        sys.executable, SLOW_SERVER, str(gate), *flags, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    client = Client(process)
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield Slow(client, gate)
    finally:
        await client.aclose()


def text(answer: Message) -> str:
    return str(answer["result"]["content"][0]["text"])


async def test_who_we_are_and_what_we_offer_is_answered_before_the_house_is_open(tmp_path: Path) -> None:
    """In both eras, in any order, `initialize` said or not; calls wait, and are served in their order."""
    async with slow_server(tmp_path) as slow:
        client = slow.client
        assert (await client.ask("ping"))["result"] == {}
        calls = [slow.call(str(number)) for number in range(3)]
        greeted = (await client.greet({}))["result"]
        assert greeted["serverInfo"] == {"name": "slow", "version": "1"}
        assert greeted["protocolVersion"] == "2025-06-18"
        assert [tool["name"] for tool in (await client.ask("tools/list"))["result"]["tools"]] == ["echo"]
        assert (await client.stateless("server/discover", {}))["result"]["supportedVersions"]
        assert (await client.stateless("ping", {}))["error"]["code"] == -32601
        assert not any(call.done() for call in calls)
        ended: list[str] = []
        for call in calls:
            call.add_done_callback(lambda call: ended.append(text(call.result())))
        await slow.tell("open")
        await asyncio.gather(*calls)
        assert ended == ["0", "1", "2"]
        assert text(await slow.call("later")) == "later"


async def test_nonsense_is_refused_before_the_house_is_open(tmp_path: Path) -> None:
    """As ever: one error for each line, and the client is served on."""
    async with slow_server(tmp_path) as slow:
        slow.client.strays = []
        assert slow.client.process.stdin is not None
        slow.client.process.stdin.write(b"hello\n[]\n")
        await slow.client.greet({})
        assert [stray["error"]["code"] for stray in slow.client.strays] == [-32700, -32600]
        await slow.tell("open")


async def test_a_call_that_is_cancelled_while_it_waits_is_never_served(tmp_path: Path) -> None:
    """And gets no answer, as the protocol has it."""
    async with slow_server(tmp_path) as slow:
        await slow.client.greet({})
        given_up = slow.call("given up")
        slow.client.tell("notifications/cancelled", {"requestId": slow.client.last_id})
        await slow.client.ask("ping")
        await slow.tell("open")
        assert text(await slow.call("next")) == "next"
        assert not given_up.done()


async def test_a_client_that_hangs_up_before_the_house_is_open_still_gets_its_answers(tmp_path: Path) -> None:
    """Whoever writes its requests and closes its end."""
    async with slow_server(tmp_path) as slow:
        await slow.client.greet({})
        call = slow.call("last")
        hanging_up = asyncio.ensure_future(slow.client.hang_up())
        await slow.tell("open")
        assert text(await call) == "last"
        assert await hanging_up == 0


async def test_a_house_that_cannot_be_opened_is_told_to_all_who_wait_and_ends_us(tmp_path: Path) -> None:
    """Each call says why, and so does the command."""
    async with slow_server(tmp_path) as slow:
        await slow.client.greet({})
        calls = [slow.call(str(number)) for number in range(2)]
        await slow.client.ask("ping")
        await slow.tell("stay")
        for call in calls:
            assert (await call)["error"]["message"] == "The server stays closed."
        assert await slow.client.process.wait() == 7
    assert slow.client.stderr == "The server stays closed.\n"


async def test_where_the_house_comes_first_a_failure_is_told_to_no_client(tmp_path: Path) -> None:
    """What was asked for on the command line fails as a command does: by its exit code, with a sentence."""
    async with slow_server(tmp_path, "first") as slow:
        greeting = slow.client.request("initialize", {"protocolVersion": "2025-06-18"})
        await slow.tell("stay")
        with pytest.raises(EOFError):
            await greeting
        assert await slow.client.process.wait() == 7


# ── what is told before is what is there afterwards ───────────────────────


def options_of(command: str, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    {"mcp": mcp.configure, "mcp-server": mcp_server.configure}[command](parser)
    return parser.parse_args(words)


@pytest.mark.parametrize("names", [AGENTS, CODEX], ids=["agents", "codex"])
@pytest.mark.parametrize(
    "tools", ["codex,sessions,mail", "codex", "sessions", "mail", "jobs", "codex,mail,jobs"]
)
async def test_what_mcp_says_of_itself_is_what_it_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: Names, tools: str
) -> None:
    """Every tool that is listed before anybody is there has somebody to run it, and no other has."""
    monkeypatch.setenv("ATM_HOME", str(tmp_path))
    options = options_of("mcp", "--tools", tools)
    settings = mcp.settings_of(options, tmp_path)
    async with asyncio.timeout(DEADLINE_S):
        # Without the older seed's Codex, which would be started along.
        served = (
            names if names is AGENTS else Names(**{f: getattr(CODEX, f) for f in CODEX.__struct_fields__})
        )
        mcp_options = mcp.mcp_options(options, settings)
        async with app_mcp.opened(mcp_options, settings, served) as behind:
            assert behind.server.server_info == server_info(names, settings.tools, mcp_options.backends)
            await behind.shutdown()


async def test_what_mcp_server_says_of_itself_is_what_it_serves(tmp_path: Path) -> None:
    """The same for the drop-in."""
    options = options_of("mcp-server")
    settings = settings_for(options, tmp_path)
    dropin = mcp_server.dropin_options(options, settings, tmp_path)
    async with (
        asyncio.timeout(DEADLINE_S),
        app_mcp_server.opened(dropin, settings) as behind,
    ):
        assert behind.server.server_info == dropin_front(__version__)
        await behind.shutdown()
