"""Sessions without a prompt: Codex writes none of them down, and the next agent opens them all the same."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from pathlib import Path
from typing import Any

import pytest

from laneway.doors.acp.ids import session_id
from laneway.doors.acp.sessions.session_factory import MAX_EMPTY
from tests.doors.acp.sessions.test_sessions_kept import NOT_FOUND, listed
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, Client, Refused, Stage, stage
from tests.doors.acp.test_point_03_reopened import EVERYTHING, MODES, NARROW, WIDE, allowed
from tests.doors.acp.witness import choose, configure, tried, turns, untouched


def where(here: Stage, session: str) -> dict[str, Any]:
    return {"sessionId": session, "cwd": str(here.work), "mcpServers": []}


async def left_empty(here: Stage, count: int = 1, **agent: Any) -> list[str]:
    """Sessions of an agent that is gone."""
    async with here.agent(**agent) as client:
        return [await client.new() for _ in range(count)]


async def test_the_next_agent_opens_it_and_the_one_after_that_finds_what_was_said(tmp_path: Path) -> None:
    """`acpx sessions new` is one process, and `acpx prompt` another. It is one session throughout."""
    async with stage(tmp_path) as here:
        sessions = await left_empty(here, 2)
        async with here.agent() as client:
            assert await listed(client, here) == sessions[::-1]
            for session, way in zip(sessions, (client.load, client.resume), strict=True):
                await way(session)
                assert client.of("user_message_chunk", session) == []
                assert await client.prompt(session, f"%say first of {session}") == {"stopReason": "end_turn"}
            assert sorted(await listed(client, here)) == sorted(sessions)
        async with here.agent() as client:
            assert sorted(await listed(client, here)) == sorted(sessions)
            for session in sessions:
                await client.load(session)
                assert client.messages(session) == [f"first of {session}"]
                assert await client.prompt(session, "%say second") == {"stopReason": "end_turn"}
                assert f"first of {session}" in str(here.requests[-1]["input"])


async def test_it_may_stay_empty_over_any_number_of_agents(tmp_path: Path) -> None:
    """Opened and left, closed, or only listed."""
    async with stage(tmp_path) as here:
        (session,) = await left_empty(here)
        for is_closed in (False, True, False):
            async with here.agent() as client:
                assert await listed(client, here) == [session]
                await client.load(session)
                assert await listed(client, here) == []  # it is open
                if is_closed:
                    await client.ask("session/close", {"sessionId": session})
                    assert await listed(client, here) == [session]
        async with here.agent() as client:
            await client.load(session)
            assert await client.prompt(session, "%say first") == {"stopReason": "end_turn"}


async def test_what_was_chosen_comes_back_with_it(tmp_path: Path) -> None:
    """Shown in the answer, and what the first turn runs with."""
    async with stage(tmp_path) as here:
        async with here.agent(capabilities=FULL) as client:
            session = await client.new()
            await choose(client, session, "mode", "code")
            await choose(client, session, "model", "gpt-6-luna")
            await choose(client, session, "thought_level", "high")
            options = await choose(client, session, "network", value=True)
        async with here.agent(capabilities=FULL) as client:
            await client.load(session)
            assert client.opened[session]["configOptions"] == options
            await client.prompt(session, "%say first")
            (turn,) = turns(here, session_id_of(here))
        assert turn[1:] == ("workspace-write", True, "gpt-6-luna", "high")


def session_id_of(here: Stage) -> str:
    """The only thread that Codex has written down, as a session."""
    (path,) = here.home.glob("sessions/**/rollout-*.jsonl")
    return session_id(path.stem[-36:])


async def test_it_never_comes_back_with_more_access(tmp_path: Path) -> None:
    """Whatever config.toml says by then: what the session was shown to have is the most that it has."""
    async with stage(tmp_path) as here:
        sessions = {}
        async with here.agent() as client:
            for lines, mode in itertools.product((WIDE, NARROW), MODES):
                sessions[lines, mode] = session = await client.new()
                if mode != "config":
                    await client.ask("session/set_mode", {"sessionId": session, "modeId": mode})
        for lines in (WIDE, NARROW):
            configure(here, lines)
            with untouched(here):
                async with here.agent() as client:
                    allowed(client)
                    for mode in MODES:
                        await client.load(sessions[lines, mode])
                        could = await tried(here, client, sessions[lines, mode])
                        assert (lines, mode, could) == (lines, mode, MODES[mode])


async def test_one_that_was_wide_by_config_is_not_wider_than_that_and_narrowed_with_it(
    tmp_path: Path,
) -> None:
    """Its mode is what config.toml says: it follows that down, and not up."""
    async with stage(tmp_path) as here:
        configure(here, WIDE)
        (session, other) = await left_empty(here, 2)
        async with here.agent() as client:
            await client.load(session)
            assert await tried(here, client, session) == EVERYTHING
        configure(here, NARROW)
        async with here.agent() as client:
            await client.load(other)
            assert await tried(here, client, other) == set()


async def test_what_was_never_a_session_of_ours_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """An id of the right shape, one of no shape, and one of another Codex home."""
    async with stage(tmp_path) as here:
        (session,) = await left_empty(here)
        other_home = here.home.parent / "other"
        other_home.mkdir()
        (other_home / "config.toml").write_bytes((here.home / "config.toml").read_bytes())
        unknown = session_id(str(uuid.UUID(int=7)))
        async with here.agent() as client:
            for each in (unknown, "sess_x", "x"):
                for method in ("session/load", "session/resume"):
                    error = await client.refusal(method, where(here, each))
                    assert (error["code"], error["message"].count(" ") > 2) == (NOT_FOUND, True), error
            assert await listed(client, here) == [session]
        async with here.agent(env={"CODEX_HOME": str(other_home)}) as client:
            assert await listed(client, here) == []
            error = await client.refusal("session/load", where(here, session))
            assert error["code"] == NOT_FOUND


@pytest.mark.needs("writer_lock")
async def test_one_that_is_open_elsewhere_is_not_begun_a_second_time(shared: Shared) -> None:
    """Codex itself would say that there is no such thread. When it is free, it is had."""
    async with shared.stage() as here, here.agent() as other:
        async with here.agent() as client:
            session = await client.new()
            error = await other.refusal("session/load", where(here, session))
            assert error["data"]["kind"] == "session_in_use", error
        await other.load(session)
        assert await other.prompt(session, "%say first") == {"stopReason": "end_turn"}


@pytest.mark.needs("writer_lock")
async def test_of_several_agents_that_open_it_at_once_one_has_it(shared: Shared) -> None:
    """The others are told that it is in use."""
    async with shared.stage() as here, here.agent() as one, here.agent() as other, here.agent() as third:
        (session,) = await left_empty(here)
        clients: list[Client] = [one, other, third]
        asked = [client.request("session/load", where(here, session)) for client in clients]
        ends = await asyncio.gather(*asked, return_exceptions=True)
        refused = [end.data["kind"] for end in ends if isinstance(end, Refused)]
        assert refused == ["session_in_use"] * 2, ends
        (winner,) = [client for client, end in zip(clients, ends, strict=True) if isinstance(end, dict)]
        assert await winner.prompt(session, "%say first") == {"stopReason": "end_turn"}


async def test_it_can_be_deleted_by_the_next_agent(shared: Shared) -> None:
    """Neither listed nor opened any more."""
    async with shared.stage() as here:
        (session,) = await left_empty(here)
        async with here.agent() as client:
            assert await client.ask("session/delete", {"sessionId": session}) == {}
            assert await listed(client, here) == []
            assert (await client.refusal("session/load", where(here, session)))["code"] == NOT_FOUND


async def test_a_list_begins_with_the_latest_of_them_and_no_more(tmp_path: Path) -> None:
    """Editors open sessions that are never used; those of other folders are in other lists."""
    async with stage(tmp_path) as here:
        async with here.agent() as client:
            spoken = await client.new()
            await client.prompt(spoken, "%say first")
        empty = await left_empty(here, MAX_EMPTY + 2)
        elsewhere = here.home.parent / "elsewhere"
        elsewhere.mkdir()
        async with here.agent() as client:
            assert await listed(client, here) == [*reversed(empty[2:]), spoken]
            assert await client.ask("session/list", {"cwd": str(elsewhere)}) == {"sessions": []}
            first = (await client.ask("session/list", {}))["sessions"][0]
            assert (set(first), first["cwd"]) == ({"sessionId", "cwd", "updatedAt"}, str(here.work))


async def test_one_that_its_client_never_heard_of_is_not_kept(tmp_path: Path) -> None:
    """Somebody must log in first: nobody was told its id."""
    async with stage(tmp_path) as here:
        path = here.home / "config.toml"
        path.write_text(
            path.read_text().replace("requires_openai_auth = false", "requires_openai_auth = true")
        )
        async with here.agent() as client:
            error = await client.refusal("session/new", {"cwd": str(here.work), "mcpServers": []})
            assert error["code"] == -32000, error
            assert await listed(client, here) == []


async def test_the_first_prompt_gives_it_its_title(shared: Shared) -> None:
    """As that of a new session does."""
    async with shared.stage() as here:
        (session,) = await left_empty(here)
        async with here.agent() as client:
            await client.load(session)
            await client.prompt(session, "%say first")
            titles = [update["title"] for update in client.of("session_info_update", session)]
            assert titles == ["%say first"]
