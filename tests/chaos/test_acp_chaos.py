"""ACP adapters and their Codex are killed at random instants, in the middle of whatever editors do."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import Any

import pytest

from laneway.store.database import Database
from laneway.store.editor_sessions import EditorSessions
from laneway.testing.processes import wait_gone
from laneway.wire.guardian import descendants
from tests.chaos.test_store_and_codex import shoot_codex
from tests.doors.acp.support import CANCELLED, FULL, ZED, Client, Message, Refused, Stage, select, stage

ROUNDS = 200 if os.environ.get("LANEWAY_CHAOS") else 3
MAX_HEARD = 50
"""Messages after which the kill comes at the latest: about what three prompts tell."""
STEPS = (
    "",
    "%think hm\n%stream 40 words over 0.1 seconds\n",
    "%run echo one; echo two\n",
    "%run! echo outside\n",
    "%run sleep 0.1; seq 2000\n",
    "%ask Which? A | B\n",
    "%patch f{number}.txt x\n",
    "%plan one; two\n",
)
HONEST = {"engine_lost"}
"""What an error may say of a Codex that is no longer there, or not yet again."""


class Editor:
    """What one client does, by chance. `told` are the texts of prompts that were answered, in order."""

    def __init__(self, client: Client, chance: random.Random) -> None:
        self.told: list[str] = []
        self.open_question = asyncio.Event()
        self._client = client
        self._chance = chance
        self._calls: list[asyncio.Future[Any]] = []
        self._left: list[Message] = []
        client.on_permission = self._permit
        client.on_elicitation = lambda params: self._chance.choice(
            ({"action": "accept", "content": {}}, {"action": "decline"}, {"action": "cancel"})
        )

    def _permit(self, params: Message) -> Message | None:
        match self._chance.randrange(4):
            case 0:
                self.open_question.set()
                return None
            case 1:
                return CANCELLED
            case other:
                return select(params, "allow_once" if other == 2 else "reject_once")

    def do(self, count: int, session: str, first: int) -> None:
        """Prompts, and now and then something beside them."""
        for number in range(first, first + count):
            script = self._chance.choice(STEPS).format(number=number)
            self._calls.append(asyncio.ensure_future(self._prompt(session, f"{script}%say answer {number}")))
            match self._chance.randrange(6):
                case 0:
                    mode = self._chance.choice(("code", "ask", "config"))
                    self._beside("session/set_mode", {"sessionId": session, "modeId": mode})
                case 1:
                    self._beside("session/new", {"cwd": str(self._client._work), "mcpServers": []})
                case 2:
                    self._beside("session/list", {})
                case 3:
                    self._client.cancel(session)

    def _beside(self, method: str, params: Message) -> None:
        self._calls.append(self._client.request(method, params))

    async def _prompt(self, session: str, text: str) -> None:
        answer = await self._client.prompt(session, text)
        if answer["stopReason"] == "end_turn":
            self.told.append(text.rpartition("%say ")[2])

    async def some_way_in(self, after: int) -> None:
        """Until so many messages were heard, or nothing more will be by itself."""
        heard = self._client.heard
        waits = (
            asyncio.ensure_future(self._client.wait_heard(lambda _: len(heard) >= after)),
            asyncio.ensure_future(self.open_question.wait()),
            asyncio.ensure_future(asyncio.wait(self._calls)),
        )
        if after:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)

    async def ends(self) -> list[Any]:
        return await asyncio.gather(*self._calls, return_exceptions=True)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_whenever_the_adapter_is_killed_what_was_answered_is_there_in_the_next(tmp_path: Path) -> None:
    """Nothing is left running, the record can be read, the session loads with every answer in its place."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    async with stage(tmp_path) as here:
        async with here.agent(env=env) as client:
            session = await client.new()
            await client.prompt(session, "%say answer 0")
        told, first = ["answer 0"], 1
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            count = chance.randrange(1, 4)
            told += await killed(here, env, chance, session, first, count)
            first += count
            check_record(tmp_path / "state" / "laneway" / "laneway.db", session, where)
            async with here.agent(env=env) as client:
                await client.load(session)
                shown = [text for text in client.messages(session) if text in told]
                assert shown == told, where
                assert client.open_tool_calls() == {}, where


async def killed(
    here: Stage, env: dict[str, str], chance: random.Random, session: str, first: int, count: int
) -> list[str]:
    """One life of an adapter, which may end at any moment; the answers that it gave before."""
    async with here.agent(env=env, capabilities=chance.choice((FULL, ZED, {})), greet=False) as client:
        editor = Editor(client, chance)
        life = asyncio.ensure_future(_live(client, editor, session, first, count, chance))
        if chance.random() < 0.5:
            await asyncio.wait((life,))
        for _ in range(chance.choice((0, 100, 3000))):
            await asyncio.sleep(0)
        tree = [client.process.pid, *descendants(client.process.pid)]
        client.process.kill()
        await client.process.wait()
        await asyncio.gather(life, return_exceptions=True)
        for end in await editor.ends():
            assert end is None or isinstance(end, dict | EOFError | Refused), repr(end)
        for pid in tree:
            await wait_gone(pid)
        return editor.told


async def _live(
    client: Client, editor: Editor, session: str, first: int, count: int, chance: random.Random
) -> None:
    await client.initialize()
    await client.load(session)
    editor.do(count, session, first)
    await editor.some_way_in(chance.randrange(MAX_HEARD))


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_whenever_codex_is_killed_all_is_answered_honestly_and_the_next_prompt_goes_on(
    tmp_path: Path,
) -> None:
    """No tool call stays open, no prompt waits for ever, and the session is had back at once."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with stage(tmp_path) as here:
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            async with here.agent(capabilities=chance.choice((FULL, ZED, {}))) as client:
                session = await client.new()
                await client.prompt(session, "%say hello")
                editor = Editor(client, chance)
                editor.do(chance.randrange(1, 4), session, 0)
                await editor.some_way_in(chance.randrange(MAX_HEARD))
                shoot_codex(client.process.pid)
                client.cancel(session)
                for end in await editor.ends():
                    assert is_honest(end), (where, end)
                assert await client.prompt(session, "%say back") == {"stopReason": "end_turn"}, where
                assert client.text(session).endswith("back"), where
                assert client.open_tool_calls() == {}, where


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_a_session_goes_on_though_codex_died_before_it_wrote_its_thread(
    tmp_path: Path,
) -> None:
    """Codex writes a thread down with its first turn: until then there is another, for the same session."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    async with stage(tmp_path) as here:
        for number in range(ROUNDS):
            where = f"seed {seed}, round {number}"
            async with here.agent(capabilities=FULL) as client:
                session = await client.new()
                going = client.start_prompt(session, "%run echo one\n%say two")
                for _ in range(chance.choice((0, 50, 500, 2000))):
                    await asyncio.sleep(0)
                shoot_codex(client.process.pid)
                (end,) = await asyncio.gather(going, return_exceptions=True)
                assert is_honest(end), (where, end)
                assert await client.prompt(session, "%say back") == {"stopReason": "end_turn"}, where
                assert client.text(session).endswith("back"), where
                assert client.open_tool_calls() == {}, where


def is_honest(end: Any) -> bool:
    """An answer, or an error that says what happened."""
    if not isinstance(end, Refused):
        return end is None or isinstance(end, dict)
    return end.data is not None and end.data["kind"] in HONEST


def check_record(path: Path, session: str, where: str) -> None:
    with Database(path) as database:
        assert database.check() == (), where
        assert database.reports == (), where
        assert EditorSessions(database).get(session) is not None, where
