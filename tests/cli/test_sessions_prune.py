"""`laneway sessions --prune` before a person: what goes is said first, and asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.store.layout import sessions_root
from laneway.store.registry import Entry
from laneway.store.store import Store
from laneway.testing.terminal import Terminal, terminal
from tests.cli.ask.support import given, shell
from tests.cli.support import LANEWAY, laneway

ASKS = "y or n; Enter means no:"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "ATM_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "CODEX_HOME": str(tmp_path / "codex"),
    }


@pytest.fixture
def store(env: dict[str, str]) -> Store:
    store = Store(sessions_root(environment=env), "default")
    for identity in ("ann", "bob"):
        with store.claim(identity) as claim:
            claim.registry.update(
                Entry(agent_id=f"agent-{identity}", identity=identity, team="default", status="closed")
            )
    return store


def kept(store: Store) -> set[str]:
    return {entry.identity for entry in store.view().entries}


@asynccontextmanager
async def pruning(*words: str, env: dict[str, str], cwd: Path) -> AsyncIterator[Terminal]:
    argv = [*LANEWAY, "sessions", "--prune", *words]
    async with terminal(argv, env=given(**env), cwd=cwd) as screen:
        yield screen


async def test_a_person_is_shown_what_goes_and_asked(
    store: Store, env: dict[str, str], tmp_path: Path
) -> None:
    """Only a clear yes removes anything."""
    for answer in ("n\n", "\n", "\x04"):
        async with pruning(env=env, cwd=tmp_path) as screen:
            await screen.wait_for(ASKS)
            assert "2 sessions will be removed from the list" in screen.text
            screen.type(answer)
            assert (await screen.wait_end()).code == 0
            assert "Nothing was removed." in screen.text
        assert kept(store) == {"ann", "bob"}
    async with pruning("--identity", "ann", env=env, cwd=tmp_path) as screen:
        await screen.wait_for(ASKS)
        assert "1 session will be removed" in screen.text
        screen.type("perhaps\n")
        await screen.wait_until(lambda: screen.text.count(ASKS) == 2, "second question on")
        screen.type("y\n")
        assert (await screen.wait_end()).code == 0
        assert "1 session removed: ann." in screen.text
    assert kept(store) == {"bob"}


async def test_what_was_typed_before_the_question_is_no_answer(
    store: Store, env: dict[str, str], tmp_path: Path
) -> None:
    """Somebody who types ahead has not read what goes."""
    line = "read -r go; LANEWAY sessions --prune"
    async with shell(line, cwd=tmp_path, **env) as screen:
        screen.type("go\ny\ny\ny\n")
        await screen.wait_for(ASKS)
        screen.type("\n")
        await screen.wait_for("Nothing was removed.")
    assert kept(store) == {"ann", "bob"}


async def test_nobody_is_asked_who_has_said_yes_or_is_no_person(
    store: Store, env: dict[str, str], tmp_path: Path
) -> None:
    """A dry run removes nothing and says what would go."""
    dry = await laneway("sessions", "--prune", "--dry-run", "--identity", "ann", env=env)
    assert dry.code == 0
    assert "1 session would be removed" in dry.out
    assert kept(store) == {"ann", "bob"}
    async with pruning("--yes", "--identity", "ann", env=env, cwd=tmp_path) as screen:
        assert (await screen.wait_end()).code == 0
        assert "1 session removed: ann." in screen.text
        assert ASKS not in screen.text
    assert kept(store) == {"bob"}
    script = await laneway("sessions", "--prune", env=env)
    assert (script.code, script.out) == (0, "1 session removed: bob.\n")
