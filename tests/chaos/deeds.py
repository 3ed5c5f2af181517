"""What an MCP client may be doing at the moment when something is killed."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any, TypeAlias

from laneway.store.store import Store
from laneway.testing.processes import wait_gone
from laneway.wire.guardian import descendants
from tests.core.support import LOOK_S
from tests.doors.mcp.support import Client, Message

STEADY = "steady"
"""The identity of the session that must survive all of it."""
PROMPTS = (
    "%say at once",
    "%think hm\n%stream 40 words over 0.1 seconds\n%say done",
    "%run echo one; echo two\n%say ran",
    "%run! echo outside\n%say asked",
    "%ask Which? A | B\n%say chosen",
    "%patch f.txt x\n%say patched",
    "%fail 500",
)
ANSWERS: tuple[Message | None, ...] = (
    {"action": "accept", "content": {}},
    {"action": "decline"},
    {"action": "cancel"},
    None,
)
"""To a question of the server; none leaves it open."""
Calls: TypeAlias = list[asyncio.Future[Message]]


class Deeds:
    """Calls of one connection, by chance. `open_question` is set once a question is left unanswered."""

    def __init__(self, client: Client, chance: random.Random, *, has_names: bool) -> None:
        self.calls: Calls = []
        self.open_question = asyncio.Event()
        self._client = client
        self._chance = chance
        self._has_names = has_names
        self._left: list[Any] = []
        client.on_ask = self._answer

    def do(self, count: int, steady: Message) -> None:
        """Start so many calls; `steady` names the session that goes on over all rounds."""
        for _ in range(count):
            tool, arguments = self._pick(steady)
            self.calls.append(self._client.start(tool, **arguments))

    def _pick(self, steady: Message) -> tuple[str, dict[str, Any]]:
        prompt = self._chance.choice(PROMPTS)
        tools = ["codex", "codex", "codex-reply"]
        if self._has_names:
            tools += ["agent_sessions", "agent_status", "agent_close"]
        match self._chance.choice(tools):
            case "codex-reply":
                return "codex-reply", {"prompt": prompt, **steady}
            case "agent_close":
                return "agent_close", {"identity": self._chance.choice(("one", "two"))}
            case "codex" if self._has_names and self._chance.random() < 0.5:
                return "codex", {"prompt": prompt, "identity": self._chance.choice(("one", "two"))}
            case "codex":
                return "codex", {"prompt": prompt}
            case other:
                return other, {}

    def _answer(self, message: Message) -> Message | None:
        answer = self._chance.choice(ANSWERS)
        if answer is None:
            self._left.append(message["id"])
            self.open_question.set()
        return answer

    def decline_the_rest(self) -> None:
        """From now on no question is left open, neither an old one nor a new one."""
        self._client.on_ask = lambda message: {"action": "decline"}
        for request_id in self._left:
            self._client.send({"jsonrpc": "2.0", "id": request_id, "result": {"action": "decline"}})

    async def some_way_in(self, after: int) -> None:
        """Until so many messages were heard, or nothing more will be by itself."""
        waits = (
            asyncio.ensure_future(self._client.wait_heard(lambda _: len(self._client.heard) >= after)),
            asyncio.ensure_future(self.open_question.wait()),
            asyncio.ensure_future(asyncio.wait(self.calls)),
        )
        if after:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)

    async def answers(self) -> list[Message | None]:
        """All of them: a message, or none where the pipe was closed instead."""
        found = await asyncio.gather(*self.calls, return_exceptions=True)
        for one in found:
            assert isinstance(one, dict | EOFError), repr(one)
        return [one if isinstance(one, dict) else None for one in found]


def outside(folder: Path) -> Path:
    """Where servers work: in no repository, else sessions with names would write at the root of this one."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    return work


async def kill_whole(client: Client) -> None:
    """SIGKILL for the server; nothing that it had started is there afterwards."""
    tree = [client.process.pid, *descendants(client.process.pid)]
    client.process.kill()
    await client.process.wait()
    for pid in tree:
        await wait_gone(pid)


async def check_state(sessions: Path, where: str) -> None:
    """Readable registries, whole audit, free locks."""
    store = Store(sessions, "default")
    view = store.view()
    assert view.problems == (), where
    for identity in {entry.identity for entry in view.entries}:
        # A kill between fork and exec leaves the lock with the fork until its exec, an instant later.
        while store.holder(identity) is not None:
            await asyncio.sleep(LOOK_S)
    assert {entry.status for entry in store.view().entries} <= {"stale", "closed", "interrupted"}, where
    assert store.audit.read().damaged == 0, where
