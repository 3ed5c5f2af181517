"""The stage of the ACP tests: `laneway acp` as a real process, the real Codex, a scripted model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.base.ids import new_id
from laneway.rehearsal.answer import answer
from laneway.rehearsal.server import Answerer
from tests.doors.acp.client import CANCELLED, DEADLINE_S, END_S, Client, Refused, select
from tests.doors.acp.views import Update, text
from tests.doors.stage import Message, Scene, scene

__all__ = [
    "CANCELLED",
    "DEADLINE_S",
    "FULL",
    "UNSTABLE",
    "ZED",
    "Client",
    "Message",
    "Refused",
    "Stage",
    "Update",
    "select",
    "stage",
    "text",
]

MAX_LAST_WORDS = 4000
"""Characters of standard error that a failed test shows."""
MARK = "ACP_TEST_AGENT"
"""In the environment of an agent and of all that it starts, so that what is left of it can be found."""

FULL: Message = {
    "auth": {"terminal": True},
    "elicitation": {"form": {}, "url": {}},
    "session": {"compaction": {}, "configOptions": {"boolean": {}}, "notices": {}},
}
"""The capabilities of a client that takes all that the stable protocol has to show."""
ZED: Message = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "auth": {"terminal": True},
    "elicitation": {"form": {}, "url": {}},
    "session": {"configOptions": {"boolean": {}}},
    "_meta": {"terminal_output": True, "terminal-auth": True},
}
"""What Zed sends."""
UNSTABLE: Message = {"_meta": {"laneway": {"unstable": True}}}
"""A client that asks for what is not stable yet; `agent` is told by `unstable` what it may meet."""


class Stage(Scene):
    """A scene on which ACP agents come and go."""

    @asynccontextmanager
    async def agent(
        self,
        *words: str,
        capabilities: Message | None = None,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        greet: bool = True,
        unstable: Collection[str] = (),
        program: tuple[str, ...] = ("-m", "laneway", "acp"),
        kind: type[Client] = Client,
    ) -> AsyncIterator[Client]:
        """`laneway acp <words>` with a client that has shaken hands.

        At the end it is gone with all that it started, left no traceback, and neither side
        has said anything that the protocol does not allow.
        """
        client = await self.start(*words, env=env, cwd=cwd, unstable=unstable, program=program, kind=kind)
        async with ending(client):
            if greet:
                await client.initialize(capabilities)
            yield client

    async def start(
        self,
        *words: str,
        env: dict[str, str] | None,
        cwd: Path | None,
        unstable: Collection[str],
        program: tuple[str, ...],
        kind: type[Client],
    ) -> Client:
        """The process with a client that has said nothing. Whoever calls ends it: see `ending`."""
        mark = new_id("agent")
        process = await self.spawn(*program, *words, env={**(env or {}), MARK: mark}, cwd=cwd)
        client = kind(process, self.work, self.places, unstable)
        client.mark = mark
        return client

    @property
    def places(self) -> dict[str, str]:
        """Folders by the names that traces have for them."""
        own = {self.home: "/home", self.work: "/work", self.state: "/state", self.home.parent: "/beside"}
        return {str(path): name for path, name in own.items()}


@asynccontextmanager
async def stage(state: Path, extra_config: str = "", answerer: Answerer = answer) -> AsyncIterator[Stage]:
    async with scene(state, extra_config, answerer) as parts:
        yield Stage(*parts)


@asynccontextmanager
async def ending(client: Client, *, may_go_on: bool = False) -> AsyncIterator[None]:
    """An agent's last block: at its end it is gone, and all that was said was in order.

    One that may go on only loses its sessions, if neither side owes the other anything.
    """
    process, goes_on = client.process, False
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield
            if may_go_on and client.is_settled:
                await client.let_go()
                assert_in_order(client)
                goes_on = True
            elif process.returncode is None:
                assert await client.hang_up() == 0, client.stderr
    except Exception as failure:
        await client.aclose()  # so that its exit code and all that it said are known
        words = client.stderr[-MAX_LAST_WORDS:]
        failure.add_note(f"The agent's exit code: {process.returncode}; its last words:\n{words}")
        raise
    finally:
        if not goes_on:
            await client.aclose()
    if not goes_on:
        assert_in_order(client)
        await assert_gone(client.mark)


def assert_in_order(client: Client) -> None:
    """Neither side has said anything that the protocol does not allow, and no traceback was left."""
    client.lint.assert_clean()
    assert "Traceback" not in client.stderr, client.stderr


# ── what is left ───────────────────────────────────────────────────────────


async def assert_gone(mark: str) -> None:
    """Nothing that an agent started may outlive it; what is about to end may."""
    for pid in await asyncio.to_thread(marked, mark):
        try:
            async with asyncio.timeout(END_S):
                await _wait_gone(pid)
        except TimeoutError:
            raise AssertionError(f"left running: {_words(pid)}") from None


def marked(mark: str) -> list[int]:
    """The processes of an agent and of all that it started. Empty where there is no /proc."""
    wanted = f"{MARK}={mark}".encode()
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except FileNotFoundError:
        return []
    return [pid for pid in pids if wanted in _read(pid, "environ").split(b"\0")]


async def _wait_gone(pid: int) -> None:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    gone = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(fd, gone.set)
    try:
        await gone.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


def _words(pid: int) -> str:
    return _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace") or f"process {pid}"


def _read(pid: int, file: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:
        return b""  # gone meanwhile
