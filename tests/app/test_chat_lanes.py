"""The lanes of a process: engines and plugins by name, and no process that outlives them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from laneway.app.chat_lanes import CODEX_LOGIN, ChatLanes, ChosenEngines, codex_kind
from laneway.app.options import ClaudeChoice, CodexChoice
from laneway.base.settings import Settings, load
from laneway.testing.lane_host import HeardLane
from laneway.wire.guardian import descendants
from tests.base.folders import Folders

DEADLINE_S = 90


def settings(tmp_path: Path, **flags: object) -> Settings:
    return load(flags, {}, tmp_path, tmp_path)


def rehearsing() -> ChosenEngines:
    return ChosenEngines(codex=CodexChoice(is_rehearsal=True), claude=ClaudeChoice(is_rehearsal=True))


async def test_all_lanes_rehearse_without_an_account_and_leave_nothing_running(tmp_path: Path) -> None:
    """The real Codex and the real Claude Code, with scripted models."""
    before = set(descendants(os.getpid()))
    async with asyncio.timeout(DEADLINE_S), ChatLanes(rehearsing(), settings(tmp_path)) as lanes:
        assert lanes.names == ("claude", "codex", "rehearse")
        assert lanes.problems == ()
        for name in lanes.names:
            lane = lanes.make(name, tmp_path)
            assert lane.name == name
            assert await lane.probe() is None
            assert not lane.abilities.resumes, "its home ends with it"
            heard = HeardLane(lane)
            await lane.open(tmp_path, heard)
            assert (await heard.play("%say hello")).text == "hello"
            await lane.close()
        assert set(descendants(os.getpid())) - before == set()


async def test_a_lane_that_is_left_open_ends_with_the_program(tmp_path: Path) -> None:
    """Whoever forgot it."""
    before = set(descendants(os.getpid()))
    async with asyncio.timeout(DEADLINE_S), ChatLanes(rehearsing(), settings(tmp_path)) as lanes:
        lane = lanes.make("rehearse", tmp_path)
        heard = HeardLane(lane)
        await lane.open(tmp_path, heard)
        await heard.play("%say hello")
    assert set(descendants(os.getpid())) - before == set()


async def test_a_lane_that_is_not_there_is_a_key_error(tmp_path: Path) -> None:
    """And so is one that could not be loaded, which is told."""
    async with ChatLanes(rehearsing(), settings(tmp_path, **{"chat.lanes": ["no_such_module"]})) as lanes:
        with pytest.raises(KeyError):
            lanes.make("aider", tmp_path)
        (problem,) = lanes.problems
        assert "no_such_module" in problem


async def test_a_codex_that_is_not_there_is_told_by_its_lanes_and_by_no_other(tmp_path: Path) -> None:
    """Nothing is started for that."""
    chosen = ChosenEngines(
        codex=CodexChoice(str(tmp_path / "none")), claude=ClaudeChoice(str(tmp_path / "none"))
    )
    async with ChatLanes(chosen, settings(tmp_path)) as lanes:
        for name in lanes.names:
            problem = await lanes.make(name, tmp_path).probe()
            assert problem is not None
            assert "none" in problem
    assert CODEX_LOGIN == "Codex not authenticated. Run 'codex' in terminal to log in."


@pytest.mark.parametrize(
    ("flags", "is_remote", "expected"),
    [
        ({}, True, None),
        ({"chat.codex_approvals": "never"}, True, "never"),
        ({"chat.codex_approvals": "never"}, False, "never"),
        ({"approval_policy": "never"}, True, "never"),
    ],
)
def test_what_the_user_has_said_about_approvals_holds_everywhere(
    tmp_path: Path, flags: dict[str, object], is_remote: bool, expected: str | None
) -> None:
    """Their own word is a flag, the environment or their own file."""
    kind = codex_kind(settings(tmp_path, **flags), is_rehearsal=False, is_remote=is_remote)
    assert kind.approval_policy == expected


@pytest.mark.parametrize(("is_remote", "expected"), [(True, "on-request"), (False, "never")])
def test_a_trusted_repository_cannot_keep_codex_from_asking_where_others_write(
    tmp_path: Path, *, is_remote: bool, expected: str
) -> None:
    folders = Folders(tmp_path)
    folders.own_repo_file.write_text('[laneway]\napproval_policy = "never"\n')
    folders.trust()
    trusted = folders.load()
    assert trusted.approval_policy == "never"
    assert codex_kind(trusted, is_rehearsal=False, is_remote=is_remote).approval_policy == expected
