"""What an agent leaves behind: when a session cannot be opened, and when its client has gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.base.errors import LanewayError, RemoteError
from laneway.core.hub import Hub
from laneway.doors.acp.agent import Agent
from laneway.doors.acp.shared import Shared
from laneway.store.database import Database
from laneway.store.editor_sessions import EditorSessions
from laneway.testing.clock import HandClock
from laneway.testing.engine import HandEngine
from tests.doors.acp.accounts.support import DEVICE, Accounts, Visitor, login_at, refusal


@asynccontextmanager
async def agents(folder: Path, codex: Accounts, *visitors: Visitor) -> AsyncIterator[list[Agent]]:
    """The agents of these clients, in one process."""
    engine, clock = HandEngine(), HandClock()
    with Database(folder / "sessions.sqlite") as database:
        async with Hub(engine, clock) as hub:
            shared = Shared(
                hub, engine, EditorSessions(database), login_at(codex), clock, version="0", codex_home="/home"
            )
            yield [
                Agent(shared, f"client {number}", visitor.client, visitor.hand)
                for number, visitor in enumerate(visitors)
            ]


def begins(agent: Agent) -> asyncio.Future[RemoteError]:
    """A login whose page the client is told in the error."""
    return asyncio.ensure_future(
        refusal(asyncio.ensure_future(agent.serve("authenticate", {"methodId": DEVICE}, b"21")))
    )


async def test_a_session_that_cannot_be_opened_leaves_no_work_behind(tmp_path: Path) -> None:
    """Whether a login is needed is asked at the same time; that is over, too, when the error is sent."""
    codex, visitor = Accounts(), Visitor()
    codex.leaves_open = "account/read"
    async with agents(tmp_path, codex, visitor) as (agent,):
        before = asyncio.all_tasks()
        with pytest.raises(LanewayError, match="does not tell how far"):
            await agent.serve("session/new", {"cwd": str(tmp_path), "mcpServers": []}, b"1")
        assert asyncio.all_tasks() == before
        assert [method for method, _ in codex.calls] == ["account/read"]


async def test_the_login_of_a_client_that_has_gone_is_cancelled(tmp_path: Path) -> None:
    """It has the page, and will never come back for its outcome."""
    codex = Accounts()
    async with agents(tmp_path, codex, Visitor()) as (agent,):
        assert (await begins(agent)).data == {"kind": "login_pending"}
        assert codex.cancelled == []
        await agent.aclose()
        assert (codex.cancelled, codex.is_watched) == (["login-1"], False)


async def test_a_login_stays_for_the_client_that_is_still_there(tmp_path: Path) -> None:
    """Both have the page; it goes with the second."""
    codex = Accounts()
    async with agents(tmp_path, codex, Visitor(), Visitor()) as (ann, bob):
        await begins(ann)
        await begins(bob)
        await ann.aclose()
        assert codex.cancelled == []
        await bob.aclose()
        assert codex.cancelled == ["login-1"]
