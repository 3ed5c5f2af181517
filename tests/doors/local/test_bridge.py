"""The bridge as a process of its own: whom it lets through, as whom, and how it ends."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.app.mail import TeamMail
from laneway.core.named.opening import Opening
from laneway.core.ports import ThreadSpec
from laneway.doors.local.bridge_keys import BRIDGE, KEY_VARIABLE, SOCKET_VARIABLE, BridgeKeys
from laneway.doors.local.server import LocalServer
from laneway.doors.mcp.names import AGENTS
from tests.core.named.support import TEAM, Stage, stage
from tests.doors.local.support import Stranger
from tests.mail.tools_support import TeamFiles


class Crossing:
    """Codex's side of a bridge: an MCP client that sees everything."""

    def __init__(self, process: Process) -> None:
        self.process = process

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": 0, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        line = await self.process.stdout.readline()
        if not line:
            raise EOFError
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def send(self, message: str, **meta: Any) -> dict[str, Any]:
        arguments = {"to": "worker", "message": message}
        return await self.ask("tools/call", name="atm_send", arguments=arguments, _meta=meta)


class Place:
    def __init__(self, here: Stage, team_files: TeamFiles, team_mail: TeamMail, door: LocalServer) -> None:
        self.here = here
        self.team_files = team_files
        self.team_mail = team_mail
        self.door = door

    async def key(self, identity: str) -> tuple[str, str]:
        """A new session, its id and its key."""
        opening = Opening(spec=ThreadSpec(cwd=self.here.root), identity=identity)
        agent_id = (await self.here.sessions.open("me", opening)).agent_id
        return agent_id, self.team_mail._keys.key(agent_id)

    @asynccontextmanager
    async def crossing(self, key: str) -> AsyncIterator[Crossing]:
        process = await bridge({SOCKET_VARIABLE: str(self.door.path), KEY_VARIABLE: key})
        try:
            yield Crossing(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            async with asyncio.timeout(20):
                assert await process.wait() == 0


async def bridge(env: dict[str, str]) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", BRIDGE, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env
    )


@asynccontextmanager
async def place(root: Path, run: Path) -> AsyncIterator[Place]:
    team_files = TeamFiles(root / "home")
    team_files.create_team(TEAM, "worker")
    async with stage(root / "state") as here:
        team_mail = TeamMail(TEAM, places=lambda: team_files.places)
        environment = {"XDG_RUNTIME_DIR": str(run), "XDG_STATE_HOME": str(run / "state")}
        async with LocalServer(
            here.sessions, here.clock, environment=environment, open_bridge=team_mail.serve_bridge
        ) as door:
            team_mail.open(here.sessions, AGENTS, door)
            yield Place(here, team_files, team_mail, door)


@pytest.mark.covers("FR-20.5")
async def test_whoever_crosses_is_the_session_whose_key_it_has(tmp_path: Path, run: Path) -> None:
    """The tools are the four, without a way to name oneself; the ids that Codex tells are audited."""
    async with place(tmp_path, run) as there:
        ann, ann_key = await there.key("ann")
        _, bob_key = await there.key("bob")
        async with there.crossing(ann_key) as as_ann, there.crossing(bob_key) as as_bob:
            hello = await as_ann.ask("initialize", protocolVersion="2025-06-18", capabilities={})
            assert hello["result"]["serverInfo"]["name"] == "laneway_mail"
            tools = (await as_ann.ask("tools/list"))["result"]["tools"]
            assert [tool["name"] for tool in tools] == [
                "atm_send",
                "atm_read",
                "atm_broadcast",
                "atm_pending_count",
            ]
            assert not [tool for tool in tools if "identity" in tool["inputSchema"]["properties"]]
            metadata = {"x-codex-turn-metadata": {"thread_id": "child", "turn_id": "turn-7"}}
            assert "isError" not in (await as_ann.send("I am ann", **metadata))["result"]
            assert "isError" not in (await as_bob.send("I am bob"))["result"]
        assert [found["from"] for found in there.team_files.entries("worker")] == ["ann", "bob"]
        await there.here.sessions._audit.flush()
        line = next(line for line in there.here.audit() if line["event_type"] == "atm_send")
        assert (line["agent_id"], line["identity"]) == (ann, "ann")
        assert (line["thread_id"], line["turn_id"]) == ("child", "turn-7")


async def test_a_key_is_worth_nothing_once_its_session_is_closed(tmp_path: Path, run: Path) -> None:
    """Neither over a bridge that stands nor over a new one."""
    async with place(tmp_path, run) as there:
        ann, key = await there.key("ann")
        async with there.crossing(key) as standing:
            await standing.send("while it lives")
            await there.here.sessions.close("me", agent_id=ann)
            assert (await standing.send("too late"))["error"]["code"] == -32003
            async with there.crossing(key) as later:
                assert (await later.send("too late"))["error"]["code"] == -32003
        assert [found["text"] for found in there.team_files.entries("worker")] == ["while it lives"]


@pytest.mark.parametrize("wrong", ["", "x", "{agent}", "{agent}.", "{agent}.0" * 3, "other.{seal}", '"}}'])
async def test_with_a_wrong_key_the_door_stays_shut(tmp_path: Path, run: Path, wrong: str) -> None:
    """The connection is closed, and nothing behind it was served."""
    async with place(tmp_path, run) as there:
        agent_id, key = await there.key("ann")
        shown = wrong.replace("{agent}", agent_id).replace("{seal}", key.rpartition(".")[2])
        with Stranger(there.door.path) as stranger:
            opening = {"jsonrpc": "2.0", "method": "bridge/open", "params": {"key": shown}}
            asking = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            await stranger.send(json.dumps(opening).encode() + b"\n" + json.dumps(asking).encode() + b"\n")
            with pytest.raises((EOFError, ConnectionError)):
                await stranger.lines_until(lambda message: "result" in message)


async def test_a_terminal_without_a_key_has_no_mail(tmp_path: Path, run: Path) -> None:
    """It has the methods of the local door, as ever."""
    async with place(tmp_path, run) as there:
        with Stranger(there.door.path) as stranger:
            asking = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "atm_read"}}
            await stranger.send(json.dumps(asking).encode() + b"\n")
            (answer,) = await stranger.lines_until(lambda message: message.get("id") == 1)
            assert answer["error"]["code"] == -32601


async def test_a_bridge_ends_when_we_do(tmp_path: Path, run: Path) -> None:
    """Codex is told by the end of its pipe."""
    async with place(tmp_path, run) as there:
        _, key = await there.key("ann")
        process = await bridge({SOCKET_VARIABLE: str(there.door.path), KEY_VARIABLE: key})
        await Crossing(process).ask("tools/list")
    async with asyncio.timeout(20):
        assert await process.wait() == 0


@pytest.mark.parametrize(
    ("env", "code", "sentence"),
    [
        ({}, 2, "started by Laneway"),
        ({SOCKET_VARIABLE: "/nowhere.sock", KEY_VARIABLE: "k"}, 1, "does not answer"),
    ],
)
async def test_a_bridge_to_nowhere_says_so(env: dict[str, str], code: int, sentence: str) -> None:
    """In one sentence, which Codex shows as the server's own words."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", BRIDGE, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=env
    )
    async with asyncio.timeout(20):
        out, err = await process.communicate()
    assert (process.returncode, out) == (code, b"")
    assert sentence in err.decode()


@given(st.text(max_size=30), st.text(max_size=80))
def test_no_key_but_the_one_that_was_made_opens_anything(agent_id: str, guess: str) -> None:
    """And none of another process, for the same session."""
    keys = BridgeKeys()
    key = keys.key(agent_id)
    assert keys.agent_of(key) == (agent_id or None)
    assert BridgeKeys().agent_of(key) is None
    assert guess == key or keys.agent_of(guess) is None
    assert keys.agent_of(key + "0") is None
    assert keys.agent_of("x" + key) is None
