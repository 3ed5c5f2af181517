"""Sessions without names (an editor's, a chat's) through the local socket: listed, watched and stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from laneway.base.errors import RemoteError
from laneway.core.model import Answer
from laneway.doors.local.api import LocalApi
from laneway.doors.local.client import connect
from laneway.doors.local.live import HubSessions
from laneway.doors.local.scan import ask
from laneway.doors.local.server import LocalServer
from laneway.doors.local.shapes import ANSWER, CLOSE, STOP, Stopped
from laneway.doors.local.socket_files import live_sockets
from laneway.wire.messages import Raw, encode
from tests.core.support import Stage, stage, until, words
from tests.doors.local.support import onlooker


class Door:
    """The local server of a hub."""

    def __init__(self, here: Stage, path: Path, environment: dict[str, str]) -> None:
        self.here = here
        self.path = path
        self.environment = environment

    async def call(self, method: str, reply: Any, **params: str) -> Any:
        async with connect(self.path) as visitor:
            return await visitor.call(method, params, reply=reply)


@asynccontextmanager
async def door(run: Path) -> AsyncIterator[Door]:
    environment = {"XDG_RUNTIME_DIR": str(run), "XDG_STATE_HOME": str(run / "state")}
    async with (
        stage() as here,
        LocalServer(HubSessions(here.hub), here.clock, door="acp", environment=environment) as server,
    ):
        yield Door(here, server.path, environment)


async def test_they_are_listed_with_their_door_and_the_last_thing_that_was_said(run: Path) -> None:
    """Found as a console finds them: by the sockets of this machine."""
    async with door(run) as home:
        session, thread = await home.here.session()
        turn = session.say(words("go on"))
        await until(lambda: thread.turn_id)
        thread.end(text="All tests pass.\nShall I commit?")
        await turn.result()
        scan = await ask(live_sockets(home.environment), 5.0)
        (row,) = [each.info for each in scan.sessions]
        assert (row.agent_id, row.identity, row.team, row.door) == (session.agent_id, "", "", "acp")
        assert (row.state, row.turns, row.cwd) == ("idle", 1, "/")
        assert row.last_text == "All tests pass.\nShall I commit?"


async def test_they_are_watched_and_stopped_by_their_id(run: Path) -> None:
    """The turn ends as a cancelled one."""
    async with door(run) as home:
        session, thread = await home.here.session()
        turn = session.say(words("work"))
        await until(lambda: thread.turn_id)
        async with onlooker(home.path, agent_id=session.agent_id) as looking:
            assert looking.snapshots[0].session.door == "acp"
            stopping = asyncio.ensure_future(home.call(STOP, Stopped, agent_id=session.agent_id))
            stopped: Stopped = await stopping
            assert (stopped.identity, stopped.was, stopped.is_stopped) == (session.agent_id, "busy", True)
            assert (await turn.result()).status == "interrupted"
            await until(lambda: "turn_done" in looking.kinds)


async def test_they_are_not_closed_from_elsewhere(run: Path) -> None:
    """Nobody could get them back by a name."""
    async with door(run) as home:
        session, _ = await home.here.session()
        with pytest.raises(RemoteError, match="has no name"):
            await home.call(CLOSE, Any, agent_id=session.agent_id)
        assert session.status == "idle"


class Person:
    """The channel of a person at a terminal."""

    async def is_person(self) -> bool:
        return True


async def test_a_person_answers_their_question(run: Path) -> None:
    """By the id, as there is no name."""
    async with stage() as here:
        session, thread = await here.session()
        session.say(words("work"))
        await until(lambda: thread.turn_id)
        thread.ask("q1")
        await until(lambda: session.questions)
        params = {"agent_id": session.agent_id, "question_id": "q1", "choice_id": "accept"}
        api = LocalApi(HubSessions(here.hub), here.clock)
        await api.serve(cast(Any, Person()), ANSWER, Raw(encode(params)))
        assert thread.answers["q1"] == Answer(choice_id="accept")
        thread.end()
