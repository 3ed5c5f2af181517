"""Where a connection comes from, and what it may do: a user's terminal, an agent's command, or unknown."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.doors.local import origin
from laneway.doors.local.origin import TERMINAL, of_process
from laneway.doors.local.shapes import FROM_AGENT
from laneway.wire.child import Child
from tests.adversary import reach_socket
from tests.doors.local.support import LocalStage, local_stage
from tests.doors.local.test_bridge import place
from tests.wire.support import Heard, linux_only, start
from tests.wire.test_process_tree import CONFINED, PLAIN, running

pytestmark = linux_only

LOOK = """
import json, subprocess, sys
from laneway.doors.local.origin import of_process
with subprocess.Popen([sys.executable, "-I", "-S", "-c", "print(flush=True); input()"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE) as below:
    below.stdout.readline()
    for pid in (int(sys.argv[1]) if len(sys.argv) > 1 else below.pid,):
        found = of_process(pid)
        print(json.dumps([found.kind, found.may_ask, found.may_bridge]), flush=True)
    below.stdin.close()
"""
"""Says where a process comes from, as this one sees it: the one that is named, or one of its own."""


@asynccontextmanager
async def agents_command(script: str = PLAIN, *words: str) -> AsyncIterator[tuple[Child, bytes]]:
    """A program below a guardian of ours, and the first line that it said."""
    heard = Heard()
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    child = await Child.spawn([sys.executable, "-c", script, *words], on_stdout=heard.on_stdout, env=env)
    try:
        yield child, await heard.wait_line()
    finally:
        child.kill()
        await child.wait()


def test_a_command_of_the_users_may_ask() -> None:
    """Also one that we started ourselves: what counts is an agent in between."""
    with running(PLAIN) as pid:
        assert of_process(pid) == TERMINAL
    assert of_process(os.getppid()) == TERMINAL


async def test_a_command_of_our_own_agent_may_only_open_a_bridge() -> None:
    """And is told why, with the process that it belongs to."""
    async with agents_command() as (child, _):
        found = of_process(child.pid)
        assert (found.kind, found.may_ask, found.may_bridge) == ("agent", False, True)
        assert found.agent is not None
        assert f"process {found.agent.pid})" in found.refusal


async def test_a_command_of_another_laneways_agent_may_not_even_do_that() -> None:
    """Our keys are for our own sessions."""
    async with agents_command() as (child, _):
        ran = await asyncio.create_subprocess_exec(
            sys.executable, "-c", LOOK, str(child.pid), stdout=subprocess.PIPE
        )
        out, _ = await ran.communicate()
        assert json.loads(out) == ["agent", False, False]


async def test_what_stands_above_ourselves_does_not_count() -> None:
    """A Laneway that an agent started, and a terminal of that same agent."""
    async with agents_command(LOOK) as (_, line):
        assert json.loads(line) == ["terminal", True, True]


def test_a_command_in_a_sandbox_may_nothing() -> None:
    """Whoever started it: it may have lost its parents, but never that."""
    with running(CONFINED) as pid:
        found = of_process(pid)
        assert (found.kind, found.may_ask, found.may_bridge) == ("unknown", False, False)
        assert "runs in a sandbox" in found.refusal


def test_of_whom_nothing_is_told_that_one_may_only_open_a_bridge() -> None:
    """It has ended, or it is outside of the container that we are in."""
    with running(PLAIN) as pid:
        pass
    for found in (of_process(pid), origin.UNKNOWN):
        assert (found.kind, found.may_ask, found.may_bridge) == ("unknown", False, True)
        assert "cannot be told" in found.refusal


# ── at the door ────────────────────────────────────────────────────────────


async def answers(home: LocalStage, folder: Path, how: str, *, by_agent: bool) -> list[dict[str, Any]]:
    """What a program is answered that tries everything."""
    report = folder / "report"
    words = [reach_socket.__file__, os.fspath(home.door.path), os.fspath(report), "no.key", how]
    if by_agent:
        heard = Heard()
        child = await start([sys.executable, "-I", "-S", *words], heard)
        await child.wait()
    else:
        process = await asyncio.create_subprocess_exec(sys.executable, "-I", "-S", *words)
        await process.wait()
    return [json.loads(line) for line in report.read_text().splitlines()]


@pytest.mark.parametrize("how", ["plainly", "orphaned", "by proxy"])
async def test_an_agents_command_is_refused_whatever_it_asks(tmp_path: Path, run: Path, how: str) -> None:
    """And the session that it meant goes on."""
    async with local_stage(tmp_path / "state", run) as home:
        bob = await home.here.open("bob")
        *asked, bridge = await answers(home, tmp_path, how, by_agent=True)
        assert [answer["error"]["code"] for answer in asked] == [FROM_AGENT] * len(reach_socket.METHODS)
        assert "broken" in bridge
        assert bob.state == "idle"


async def test_the_same_from_a_command_of_the_users_is_served(tmp_path: Path, run: Path) -> None:
    """Seen, watched, stopped and closed."""
    async with local_stage(tmp_path / "state", run) as home:
        bob = await home.here.open("bob")
        *asked, _ = await answers(home, tmp_path, "plainly", by_agent=False)
        assert not [answer for answer in asked if "error" in answer]
        assert bob.state == "closed"


CONNECT = "import socket, sys; socket.socket(fileno=int(sys.argv[1])).connect(sys.argv[2])"


async def test_a_connection_whose_maker_has_ended_is_nobodys(tmp_path: Path, run: Path) -> None:
    """Its number may be another's by now."""
    async with local_stage(tmp_path, run) as home:
        with socket.socket(socket.AF_UNIX) as ours:
            words = [sys.executable, "-I", "-S", "-c", CONNECT, str(ours.fileno()), os.fspath(home.door.path)]
            # The door is in this process, and looks at nobody before this one is gone.
            subprocess.run(words, pass_fds=[ours.fileno()], check=True)  # noqa: ASYNC221
            ours.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(ours, b'{"jsonrpc":"2.0","id":1,"method":"sessions/list"}\n')
            answer = json.loads(await loop.sock_recv(ours, 65536))
            assert answer["error"]["code"] == FROM_AGENT
            assert "cannot be told" in answer["error"]["message"]


async def test_the_bridge_of_our_own_agent_is_let_in_with_its_key(tmp_path: Path, run: Path) -> None:
    """It stands below Codex, as any command does."""
    async with place(tmp_path, run) as there:
        _, key = await there.key("ann")
        script = f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
from tests.adversary.reach_socket import open_bridge
print("result" in open_bridge({os.fspath(there.door.path)!r}, {key!r}, "plainly"), flush=True)
"""
        async with agents_command(script) as (_, line):
            assert line.strip() == b"True"
