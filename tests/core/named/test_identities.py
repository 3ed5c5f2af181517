"""Names that belong to somebody outside: who is asked, when, and what a refusal leaves behind."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import IdentityTaken, MemberForeign
from laneway.store.store import Store
from tests.core.named.support import ME, TEAM, stage
from tests.core.support import until


class Team:
    """Names that are somebody else's."""

    def __init__(self, *names: str) -> None:
        self.names = set(names)
        self.asked: list[str] = []

    async def may_take(self, identity: str) -> None:
        self.asked.append(identity)
        if identity in self.names:
            raise MemberForeign(identity, TEAM)


async def test_a_session_is_not_opened_under_a_name_that_is_somebody_elses(tmp_path: Path) -> None:
    """No thread, no entry, and the name is as free for others as it was before."""
    team = Team("bob")
    async with stage(tmp_path, may_take=team.may_take) as here:
        with pytest.raises(MemberForeign, match="registered bob"):
            await here.open("bob")
        assert here.sessions.holder("bob") is None
        assert here.engine.threads == {}
        assert here.entries("bob") == []
        Store(tmp_path, TEAM).claim("bob").release()
        team.names.clear()
        assert (await here.open("bob")).identity == "bob"


async def test_the_default_name_passes_over_numbers_that_are_somebody_elses(tmp_path: Path) -> None:
    """Also where many ask at once."""
    team = Team("codex", "codex-3")
    async with stage(tmp_path, may_take=team.may_take) as here:
        found = await asyncio.gather(*(here.open() for _ in range(3)))
        assert sorted(each.identity for each in found) == ["codex-2", "codex-4", "codex-5"]


async def test_a_session_is_not_resumed_under_a_name_that_has_become_somebody_elses(tmp_path: Path) -> None:
    """By its id, by its thread, by its name; it is kept, and can be had when the name is free again."""
    team = Team()
    async with stage(tmp_path, may_take=team.may_take) as here:
        first = await here.open("ann")
        await here.sessions.close(ME, agent_id=first.agent_id)
        team.names.add("ann")
        asked: list[dict[str, Any]] = [
            {"agent_id": first.agent_id},
            {"thread_id": first.thread_id},
            {"identity": "ann"},
        ]
        for who in asked:
            with pytest.raises(MemberForeign):
                await here.sessions.resume(ME, **who)
        assert [entry["status"] for entry in here.entries("ann")] == ["closed"]
        team.names.clear()
        assert (await here.sessions.resume(ME, identity="ann")).agent_id == first.agent_id


async def test_a_name_that_is_somebody_elses_is_not_reserved_and_not_used_because_it_was(
    tmp_path: Path,
) -> None:
    """Asked when it is reserved, and again for each session: it may have become theirs in between."""
    team = Team("bob")
    async with stage(tmp_path, may_take=team.may_take, default_identity="ann") as here:
        with pytest.raises(MemberForeign):
            await here.sessions.reserve("bob")
        Store(tmp_path, TEAM).claim("bob").release()
        await here.sessions.reserve("ann")
        team.names.add("ann")
        with pytest.raises(MemberForeign):
            await here.open("ann")
        assert (await here.open()).identity == "ann-2"
        team.names.clear()
        assert (await here.open("ann")).identity == "ann"


async def test_the_question_is_asked_while_the_name_is_held(tmp_path: Path) -> None:
    """So that no other Laneway takes it between the question and the claim."""

    async def may_take(identity: str) -> None:
        with pytest.raises(Exception, match="in use by"):
            Store(tmp_path, TEAM).claim(identity)

    async with stage(tmp_path, may_take=may_take) as here:
        assert (await here.open("ann")).identity == "ann"


async def test_whoever_gives_up_while_it_is_asked_leaves_the_name_free(tmp_path: Path) -> None:
    """A cancelled call holds nothing."""
    begun = asyncio.Event()

    async def may_take(identity: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with stage(tmp_path, may_take=may_take) as here:
        opening = asyncio.ensure_future(here.open("ann"))
        await begun.wait()
        opening.cancel()
        await until(opening.done)
        assert here.sessions.holder("ann") is None
        Store(tmp_path, TEAM).claim("ann").release()


async def test_names_that_differ_in_case_alone_are_one_name(tmp_path: Path) -> None:
    """Some disks keep one file for both. Who has it is told; the numbers pass over it."""
    async with stage(tmp_path, default_identity="Ann") as here:
        ann = await here.open("ann")
        with pytest.raises(IdentityTaken) as caught:
            await here.open("ANN")
        assert caught.value.agent_id == ann.agent_id
        assert here.sessions.holder("Ann") == ann.agent_id
        assert (await here.open()).identity == "Ann-2"
        assert "ANN" not in os.listdir(tmp_path / TEAM)
