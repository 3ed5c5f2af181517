"""A command that Codex runs reaches for the socket of the user's other terminals: it gets nowhere."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.doors.local.bridge_keys import KEY_VARIABLE, SOCKET_VARIABLE
from laneway.doors.local.shapes import FROM_AGENT
from laneway.doors.local.socket_files import live_sockets
from tests.adversary.reach_socket import METHODS, open_bridge
from tests.cli.support import LANEWAY, laneway
from tests.cli.watching import places
from tests.codex.mail_support import environment_of
from tests.doors.mcp.support import Client, Stage, stage
from tests.wire.support import linux_only

pytestmark = linux_only

WITH_NETWORK = "[sandbox_workspace_write]\nnetwork_access = true\n"
ATTACK = Path(__file__).parent / "reach_socket.py"


class Scene:
    """A server with a session of Bob's, which is not to be touched."""

    def __init__(self, here: Stage, client: Client, run: Path) -> None:
        self.here = here
        self.client = client
        self.environment = {**places(run), "ATM_HOME": str(here.state)}
        (self.socket_file,) = live_sockets(places(run))

    async def attack(self, sandbox: str, how: str, key: str = "no-key.0") -> list[dict[str, Any]]:
        """What a command of Ann's is answered, method by method; last what the key opens."""
        script, report = self.here.work / ATTACK.name, self.here.work / "report"
        shutil.copy(ATTACK, script)
        words = [
            sys.executable,
            "-I",
            "-S",
            os.fspath(script),
            os.fspath(self.socket_file.path),
            os.fspath(report),
            key,
            how,
        ]
        await self.run(sandbox, shlex.join(words))
        return [json.loads(line) for line in report.read_text().splitlines()]

    async def run(self, sandbox: str, command: str) -> dict[str, Any]:
        prompt = f"%run {command}\n%say done"
        return await self.client.content("codex", identity="ann", sandbox=sandbox, prompt=prompt)

    async def bob_lives(self) -> bool:
        rows = (await self.client.content("agent_sessions"))["sessions"]
        return [row["status"] for row in rows if row["identity"] == "bob"] == ["active"]

    def keys(self) -> list[str]:
        """Of the bridges that stand, as somebody reads them who may look at every process."""
        found = (
            environment_of(pid).split(b"\0") for pid in map(int, filter(str.isdecimal, os.listdir("/proc")))
        )
        here, name = f"{SOCKET_VARIABLE}={self.socket_file.path}".encode(), f"{KEY_VARIABLE}=".encode()
        return [
            word.removeprefix(name).decode()
            for words in found
            if here in words
            for word in words
            if word.startswith(name)
        ]


@asynccontextmanager
async def scene(state: Path, run: Path, *words: str) -> AsyncIterator[Scene]:
    async with (
        stage(state, extra_config=WITH_NETWORK) as here,
        here.server("mcp", *words, env=places(run)) as client,
    ):
        await client.content("codex", identity="bob", prompt="%say I am Bob.")
        yield Scene(here, client, run)


@pytest.mark.parametrize(
    ("sandbox", "how"),
    [
        ("workspace-write", "plainly"),
        ("workspace-write", "orphaned"),
        ("workspace-write", "by proxy"),
        ("danger-full-access", "plainly"),
        ("danger-full-access", "orphaned"),
        ("danger-full-access", "by proxy"),
    ],
)
async def test_a_command_of_codex_can_neither_see_nor_end_sessions(
    tmp_path: Path, run: Path, sandbox: str, how: str
) -> None:
    """With network access in the sandbox, and without one; whatever becomes of its parents."""
    async with scene(tmp_path, run) as there:
        *answers, bridge = await there.attack(sandbox, how)
        assert [answer["error"]["code"] for answer in answers] == [FROM_AGENT] * len(METHODS), answers
        assert "broken" in bridge
        assert await there.bob_lives()


async def test_a_sandboxed_command_cannot_use_the_key_of_a_session(tmp_path: Path, run: Path) -> None:
    """Though it got hold of one: Codex starts bridges outside of the sandbox."""
    async with scene(tmp_path, run, "--subagents") as there:
        (key,) = there.keys()
        *_, bridge = await there.attack("workspace-write", "plainly", key)
        assert "broken" in bridge
        assert await there.bob_lives()
        assert "result" in open_bridge(
            os.fspath(there.socket_file.path), key, "plainly"
        )  # it is the right one


@pytest.mark.parametrize("words", [["stop", "bob"], ["stop", "bob", "--close"], ["watch", "bob"]])
async def test_laneway_in_a_shell_of_codex_is_refused_with_a_reason(
    tmp_path: Path, run: Path, words: list[str]
) -> None:
    """The sentence says what to do; in the user's own terminal the same command works."""
    async with scene(tmp_path, run) as there:
        said = there.here.work / "said"
        command = shlex.join([*LANEWAY, "sessions", *words]) + f" > {shlex.quote(os.fspath(said))} 2>&1; :"
        inner = " ".join(f"{name}={shlex.quote(value)}" for name, value in there.environment.items())
        python_path = f"PYTHONPATH={shlex.quote(os.pathsep.join(sys.path))}"
        await there.run("workspace-write", f"env {inner} {python_path} {command}")
        assert "was started by an agent" in said.read_text()
        assert "Run it in a terminal of your own." in said.read_text()
        assert await there.bob_lives()
        stopped = await laneway("sessions", "stop", "bob", "--close", env=there.environment)
        assert stopped.code == 0, stopped.err
