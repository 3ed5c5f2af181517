"""Mail in a server: loaded when it is needed, turned into turns and news while it serves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.app.mail import TeamMail
from laneway.base.settings import load
from laneway.core.ports import ThreadSpec
from tests.core.named.support import TEAM, texts
from tests.core.support import until
from tests.doors.mcp.mail_support import MailStage, mail_stage
from tests.mail.tools_support import TeamFiles, entry

ANN = "mail://crew/ann"
UPDATED = ("notifications/resources/updated", {"uri": ANN})


@pytest.fixture
def team_files(tmp_path: Path) -> TeamFiles:
    team_files = TeamFiles(tmp_path / "home")
    team_files.create_team(TEAM, "team-lead", "worker")
    return team_files


@asynccontextmanager
async def serving(tmp_path: Path, team_files: TeamFiles) -> AsyncIterator[MailStage]:
    settings = load({}, {}, tmp_path, tmp_path)
    async with mail_stage(tmp_path, team_files) as home, home.team_mail.delivering(settings, home.here.clock):
        yield home


async def test_a_server_that_nobody_uses_for_mail_never_loads_it(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """It lists its tools, is polled, and ends."""
    async with serving(tmp_path, team_files) as home:
        await home.client().ask("tools/list")
        home.here.clock.advance(60)
        assert home.team_mail._mail is None
        assert home.team_mail.postman is None


@pytest.mark.covers("FR-8.2")
async def test_mail_for_a_session_becomes_a_turn_and_news(tmp_path: Path, team_files: TeamFiles) -> None:
    """The session joins the team when it begins; whoever subscribed is told that something came."""
    async with serving(tmp_path, team_files) as home:
        client = home.client()
        await client.ask("resources/subscribe", uri=ANN)
        agent_id = await home.session("ann")
        named = home.here.sessions.find("me", agent_id=agent_id)
        await until(lambda: b'"ann"' in team_files.places.config(TEAM).read_bytes())
        await home.client().good("atm_send", identity="bob", to="ann", message="good morning")
        await until(lambda: home.here.thread(named).turn_id)
        assert "good morning" in texts(home.here.thread(named))[0]
        await until(lambda: UPDATED in client.heard)
        home.here.thread(named).end()


async def test_mail_for_a_name_without_a_session_is_news_for_whoever_waits(
    tmp_path: Path, team_files: TeamFiles
) -> None:
    """Found by looking: what is unread at first, and then every time that there is more."""
    team_files.drop("ann", entry("worker", "one"))
    async with serving(tmp_path, team_files) as home:
        client = home.client()
        await client.ask("resources/subscribe", uri=ANN)
        home.here.clock.advance(5)
        await until(lambda: client.heard == [UPDATED])
        home.here.clock.advance(5)
        team_files.drop("ann", *(entry("worker", text) for text in ("one", "two", "three")))
        home.here.clock.advance(5)
        await until(lambda: len(client.heard) > 1)
        assert client.heard == [UPDATED, UPDATED]
        assert [found["read"] for found in team_files.entries("ann")] == [False] * 3


async def test_a_rehearsal_writes_to_nobodys_team(tmp_path: Path) -> None:
    """It has a place of its own."""
    team_mail = TeamMail(None)
    team_mail.stay_in(tmp_path)
    assert team_mail.mail.places.teams_root == tmp_path / ".claude" / "teams"
    assert team_mail.mail.places.spool_root.is_relative_to(tmp_path)


def test_without_a_door_a_thread_gets_no_bridge() -> None:
    """There is nowhere for it to lead; the thread works all the same."""
    team_mail = TeamMail(None)
    spec = ThreadSpec(cwd=Path("/"))
    assert team_mail.equip("agent-1", spec) == spec
