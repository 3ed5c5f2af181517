"""Slash commands and logins on an engine that has nothing beyond threads and turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from laneway.base.errors import RemoteError
from laneway.commands import slash
from laneway.core.offers import Offers
from laneway.doors.acp.accounts.login import EditorLogin
from laneway.doors.acp.accounts.login_prompt import LoginRequest
from tests.commands.hand_session import HandSession
from tests.doors.acp.accounts.support import BROWSER, DEVICE, KEY, PROGRAM, Visitor, no_browser

PLAIN = Offers()
COMMANDS = {"init", "diff", "status", "model", "help"}


@pytest.fixture
async def session(tmp_path: Path) -> HandSession:
    made = HandSession(tmp_path)
    made.offers = PLAIN
    return made


def test_only_commands_that_the_engine_has_something_for_are_listed() -> None:
    """The others would only fail."""
    assert {command.name for command in slash.available(PLAIN)} == COMMANDS


@pytest.mark.parametrize("name", sorted(set(slash.COMMANDS) - COMMANDS))
async def test_a_command_that_is_not_listed_is_refused_in_the_engines_name(
    session: HandSession, name: str
) -> None:
    """Nothing is asked of the engine, and no wrong name suggests it."""
    session.engine_name = "Claude"
    assert await slash.run(session, slash.Invocation(name)) is None
    assert session.said == [f"Claude cannot do /{name}. See all commands with /help."]
    await slash.run(session, slash.Invocation(f"{name}x"))
    assert f"/{name}?" not in session.said[-1]
    assert session.done == []


async def test_what_is_said_of_the_engine_says_its_name(session: HandSession) -> None:
    """Codex or another one."""
    session.engine_name = "Claude"
    for name, arguments in (("status", ""), ("model", "nonsense")):
        await slash.run(session, slash.Invocation(name, arguments))
    status, model = session.said
    assert "**Versions**: Claude 0.163.0, Laneway" in status
    assert model.startswith("Claude names no model nonsense.")


async def test_the_status_leaves_out_what_the_engine_does_not_know(session: HandSession) -> None:
    """No account, no limits, no access."""
    await slash.run(session, slash.Invocation("status"))
    (said,) = session.said
    assert "**Model**" in said
    assert "**Account**" not in said
    assert "**Limits**" not in said
    assert "**Mode**" not in said


async def test_the_help_names_just_these(session: HandSession) -> None:
    """In the order of the whole list."""
    await slash.run(session, slash.Invocation("help"))
    (said,) = session.said
    assert [line.split("`")[1].split()[0] for line in said.splitlines()] == [
        f"/{name}" for name in ("init", "diff", "status", "model", "help")
    ]


@pytest.mark.parametrize("method", [BROWSER, DEVICE, KEY])
async def test_there_is_nothing_to_log_in_to(method: str) -> None:
    """So no session waits for a login, and whoever tries is told."""
    login, visitor = EditorLogin(None, PROGRAM, {"OPENAI_API_KEY": "k"}, no_browser), Visitor()
    assert not await login.is_needed()
    assert not await login.is_possible()
    request = LoginRequest(visitor.client, visitor.hand, 1)
    with pytest.raises(RemoteError, match="There is nothing to log in to here"):
        await login.authenticate({"methodId": method}, request)
