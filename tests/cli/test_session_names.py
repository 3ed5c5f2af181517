"""How people name sessions: names, ids and the ends of ids, in every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.base.errors import UsageError
from laneway.cli.live_sessions import find
from laneway.store.layout import sessions_root
from laneway.store.registry import Entry
from laneway.store.store import Store
from tests.cli.support import laneway
from tests.doors.local.support import local_stage
from tests.mail.tools_support import TeamFiles


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"ATM_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def store(env: dict[str, str]) -> Store:
    return Store(sessions_root(environment=env), "default")


def keep(store: Store, identity: str, number: str, summary: str = "") -> str:
    agent_id = f"agent-{number * 16}"
    with store.claim(identity) as claim:
        thread = f"thread-{number * 12}"
        entry = Entry(
            agent_id=agent_id, backend_id=thread, identity=identity, team="default", status="closed"
        )
        claim.registry.update(entry)
        if summary:
            claim.summaries.write(thread, summary)
    return agent_id


async def test_a_summary_is_found_by_name_and_by_the_end_of_an_id(store: Store, env: dict[str, str]) -> None:
    """Of namesakes, that of the only one that left a summary."""
    keep(store, "ann", "1", "All done.\n")
    for who in ("ann", "11111111", "agent-1111", "thread-111111111111"):
        assert (await laneway("summary", who, env=env)).out.strip() == "All done.", who
    keep(store, "ann", "2")
    assert (await laneway("summary", "ann", env=env)).out.strip() == "All done."
    few = await laneway("summary", "11111", env=env)
    assert (few.code, "There is no session 11111" in few.err) == (2, True)


@pytest.mark.parametrize("words", [("summary",), ("sessions", "watch"), ("sessions", "stop")])
async def test_an_empty_name_is_called_empty(
    words: tuple[str, ...], store: Store, env: dict[str, str]
) -> None:
    """As of a shell variable that is not set: no sentence with a gap in it."""
    ran = await laneway(*words, "", env=env)
    assert (ran.code, ran.err.startswith("laneway: The name is empty: give a name, an id")) == (2, True)


async def test_a_name_that_can_mean_several_is_answered_with_the_candidates(
    store: Store, env: dict[str, str]
) -> None:
    """Each with its whole id."""
    ids = [keep(store, "ann", number, f"{number}\n") for number in "12"]
    ran = await laneway("summary", "ann", env=env)
    assert ran.code == 2
    head, *rows = ran.err.splitlines()
    assert head == "laneway: ann can mean 2 sessions. Name one of them by its id:"
    assert [row.split()[:3] for row in rows] == [[each, "ann", "closed"] for each in ids]


async def test_a_live_session_is_found_by_the_end_of_its_id(tmp_path: Path, run: Path) -> None:
    """For `watch` and `stop`; what means two is refused."""
    async with local_stage(tmp_path, run) as home:
        ann, bob = await home.here.open("ann"), await home.here.open("bob")
        for who in (ann.agent_id[-8:], ann.agent_id[:-2], "ann"):
            found = await find(home.here.store, who, environment=home.environment)
            assert found.info.agent_id == ann.agent_id
        with pytest.raises(UsageError) as caught:
            await find(home.here.store, "agent-", environment=home.environment)
        assert ann.agent_id in str(caught.value)
        assert bob.agent_id in str(caught.value)


async def test_mail_reaches_a_session_by_its_id(store: Store, env: dict[str, str], tmp_path: Path) -> None:
    """A member of that very name goes first."""
    team_files = TeamFiles(tmp_path)
    team_files.create_team("default", "ann", "33333333")
    keep(store, "ann", "1")
    keep(store, "zoe", "3")
    for who in ("11111111", "agent-1111111111111111", "33333333"):
        assert (await laneway("mail", "send", who, "hi", "--as", "bob", env=env)).code == 0
    assert len(team_files.entries("ann", "default")) == 2
    assert len(team_files.entries("33333333", "default")) == 1
