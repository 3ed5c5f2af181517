"""What the model is told of its session: on every turn, by whatever git says then (FR-2)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doors.mcp.support import stage
from tests.doors.mcp.views import QUIET, base_of, git, outputs, registry, repository, texts, told

BASE = "You are a test.\n\tNothing of this may change: é 😀 <tag>"


@pytest.mark.covers("FR-2.1", "FR-2.2", "FR-2.3", "FR-2.6", "FR-2.8")
@pytest.mark.needs("turn_context")
async def test_every_turn_is_told_who_and_where_it_is_behind_the_callers_words(tmp_path: Path) -> None:
    """The branch may change between two turns; base instructions are the caller's, byte for byte."""
    repo = repository(tmp_path / "project", "one")
    async with stage(tmp_path / "state") as here, here.server("mcp", "--team", "crew", env=QUIET) as client:
        session = await client.content(
            "codex",
            prompt="%say hello",
            identity="dev",
            cwd=str(repo),
            **{"developer-instructions": "The caller's own.", "base-instructions": BASE},
        )
        first = here.requests[-1]
        git(repo, "switch", "--quiet", "--create", "two")
        await client.content("codex-reply", prompt="%say again", agent_id=session["agent_id"])
        second = here.requests[-1]
        git(repo, "switch", "--quiet", "--detach")
        await client.content("codex-reply", prompt="%say again", threadId=session["threadId"])
        third = here.requests[-1]

    facts = {"identity": "dev", "team": "crew", "repo_root": str(repo), "repo_name": "project"}
    assert told(first) == {**facts, "branch": "one", "cwd": str(repo)}
    assert told(second) == {**facts, "branch": "two", "cwd": str(repo)}
    commit = git(repo, "rev-parse", "--short=12", "HEAD")
    assert told(third) == {**facts, "branch": None, "cwd": str(repo), "commit": commit}
    assert [base_of(request) for request in (first, second, third)] == [BASE] * 3
    words = texts(first)
    callers = next(number for number, text in enumerate(words) if "The caller's own." in text)
    assert callers < next(number for number, text in enumerate(words) if '"dev"' in text)


@pytest.mark.covers("FR-2.4")
@pytest.mark.needs("turn_context")
async def test_a_session_works_in_the_root_unless_it_is_asked_elsewhere(tmp_path: Path) -> None:
    """From a folder below, in a worktree, and outside of git, where nothing is made up."""
    repo = repository(tmp_path / "project", "one")
    below = repo / "src" / "deep"
    below.mkdir(parents=True)
    worktree = repo.parent / "beside"
    git(repo, "worktree", "add", "--quiet", "-b", "side", str(worktree))
    outside = repo.parent / "elsewhere"
    outside.mkdir()
    async with stage(tmp_path / "state") as here, here.server("mcp", cwd=below, env=QUIET) as client:
        await client.content("codex", prompt="%run pwd")
        at_root, printed = told(here.requests[-1]), outputs(here.requests[-1])
        await client.content("codex", prompt="%say x", cwd=".")
        relative = told(here.requests[-1])
        await client.content("codex", prompt="%say x", cwd=str(worktree))
        beside = told(here.requests[-1])
        await client.content("codex", prompt="%say x", cwd=str(outside))
        nowhere = told(here.requests[-1])

    assert f"{repo}\n" in printed
    assert (at_root["cwd"], at_root["branch"]) == (str(repo), "one")
    assert (relative["cwd"], relative["repo_root"]) == (str(below), str(repo))
    assert (beside["cwd"], beside["repo_root"], beside["branch"]) == (str(worktree), str(worktree), "side")
    assert nowhere == {
        "identity": "codex-4",
        "team": "default",
        "repo_root": None,
        "repo_name": None,
        "branch": None,
        "cwd": str(outside),
    }


@pytest.mark.covers("FR-2.7", "FR-16.3")
@pytest.mark.needs("turn_context")
async def test_a_session_works_where_it_did_after_a_restart(tmp_path: Path) -> None:
    """Its folder is kept with it, and so is its name."""
    folder = tmp_path / "there"
    folder.mkdir()
    async with stage(tmp_path / "state") as here:
        async with here.server("mcp", env=QUIET) as client:
            session = await client.content("codex", prompt="%say x", identity="dev", cwd=str(folder))
            assert registry(here, "dev")[0]["cwd"] == str(folder)
        async with here.server("mcp", env=QUIET) as client:
            await client.content("codex", prompt="%run pwd", agent_id=session["agent_id"])

        assert f"{folder}\n" in outputs(here.requests[-1])
        assert (told(here.requests[-1])["cwd"], told(here.requests[-1])["identity"]) == (str(folder), "dev")
