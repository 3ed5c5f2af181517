"""Logging in from an editor: what is offered, with a key, in a browser, in a terminal."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from laneway.base.errors import RemoteError
from laneway.codex.account import CodexAccounts
from laneway.codex.provider import is_login_needed as is_needed
from laneway.doors.acp.accounts.auth_methods import methods
from laneway.doors.acp.accounts.login import EditorLogin
from laneway.doors.acp.accounts.login_prompt import LoginRequest
from laneway.doors.acp.client import EditorClient
from laneway.testing.rehearse import Rehearsal, rehearsal
from tests.doors.acp.accounts.support import (
    BROWSER,
    DEVICE,
    FORMS,
    KEY,
    PROGRAM,
    URLS,
    Accounts,
    Visitor,
    login_at,
    no_browser,
    refusal,
)
from tests.doors.acp.hand import Hand


@pytest.fixture(autouse=True)
async def _deadline() -> AsyncIterator[None]:
    async with asyncio.timeout(60):
        yield


# ── what is offered ────────────────────────────────────────────────────────


def ids(client: EditorClient, **environment: str) -> list[str]:
    return [method["id"] for method in methods(client, PROGRAM, environment)]


def test_every_client_is_offered_ways_that_need_nothing_of_it() -> None:
    """The registry's rule: at least one method. A machine without a browser is not offered one."""
    assert ids(EditorClient()) == [BROWSER, DEVICE, KEY]
    assert ids(EditorClient(), NO_BROWSER="1") == [DEVICE, KEY]


def test_a_terminal_is_offered_to_those_who_have_one() -> None:
    """By the protocol's own type, or by what Zed used before there was one."""
    (new,) = [each for each in methods(EditorClient(logs_in_by_terminal=True), PROGRAM, {}) if "type" in each]
    assert (new["type"], new["id"], new["args"]) == ("terminal", "terminal", ["--login"])
    old = methods(EditorClient(shows_terminal_logins=True), PROGRAM, {})[-1]
    assert "type" not in old
    assert old["_meta"]["terminal-auth"] == {
        "command": "/usr/bin/python3",
        "args": ["-m", "laneway", "acp", "--login"],
        "label": "Codex login",
    }


@pytest.mark.parametrize("capabilities", [{}, {"auth": {"terminal": True}}])
def test_what_is_offered_fits_the_schema(capabilities: dict[str, Any]) -> None:
    """In `initialize`, whose answer is the first thing that a client reads."""
    hand = Hand()
    hello = {"protocolVersion": 1, "clientCapabilities": capabilities}
    offered = methods(EditorClient(logs_in_by_terminal="auth" in capabilities), PROGRAM, {})
    hand.lint.check("client", {"jsonrpc": "2.0", "id": 5, "method": "initialize", "params": hello})
    answer = {"protocolVersion": 1, "authMethods": offered}
    hand.lint.check("agent", {"jsonrpc": "2.0", "id": 5, "result": answer})
    hand.lint.assert_clean()


@pytest.mark.parametrize(
    ("account", "needed"),
    [
        ({"account": None, "requiresOpenaiAuth": True}, True),
        ({"account": None, "requiresOpenaiAuth": False}, False),
        ({"account": {"type": "apiKey"}, "requiresOpenaiAuth": True}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_login_is_needed_only_where_codex_says_so(account: Any, needed: bool) -> None:
    """An older Codex that does not tell is not in the way; the turn will."""
    assert is_needed(account) is needed


async def test_the_error_names_the_ways_to_log_in() -> None:
    """So that a client can offer them where it stands."""
    error = login_at(Accounts()).required(EditorClient(), "the token is expired")
    assert (error.code, error.message) == (-32000, "Log in to Codex first: the token is expired")
    assert error.data == {"authMethods": methods(EditorClient(), PROGRAM, {})}


@pytest.mark.parametrize("method", ["telepathy", None, 7])
async def test_an_unknown_way_is_refused(method: Any) -> None:
    """With the ways that there are."""
    login, visitor = login_at(Accounts()), Visitor()
    with pytest.raises(RemoteError, match="chat-gpt-device-code") as refused:
        await login.authenticate({"methodId": method}, LoginRequest(visitor.client, visitor.hand))
    assert refused.value.code == -32602


# ── with a key ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("environment", "params", "key"),
    [
        ({"CODEX_API_KEY": " sk-a\n", "OPENAI_API_KEY": "sk-b"}, {}, "sk-a"),
        ({"CODEX_API_KEY": "", "OPENAI_API_KEY": "sk-b"}, {}, "sk-b"),
        ({"OPENAI_API_KEY": "sk-b"}, {"_meta": {"api-key": {"apiKey": "sk-c"}}}, "sk-c"),
    ],
)
async def test_a_key_comes_from_the_request_or_from_our_environment(
    environment: dict[str, str], params: dict[str, Any], key: str
) -> None:
    """In the order of the official adapter."""
    codex = Accounts()
    assert await Visitor().starts(login_at(codex, **environment), KEY, **params) == {}
    assert codex.calls == [("account/login/start", {"type": "apiKey", "apiKey": key})]


@pytest.mark.parametrize("params", [{}, {"_meta": {"api-key": {"apiKey": " "}}}, {"_meta": {"api-key": 7}}])
async def test_without_a_key_nothing_is_sent_and_the_remedy_is_said(params: dict[str, Any]) -> None:
    """Codex would take an empty key and call it a login."""
    codex = Accounts()
    error = await refusal(Visitor().starts(login_at(codex), KEY, **params))
    assert error.code == -32602
    assert "OPENAI_API_KEY" in error.message
    assert [method for method, _ in codex.calls] == ["account/read"]


async def test_without_a_key_the_one_that_codex_has_will_do() -> None:
    """Some editors authenticate at every start, with the way that was used first."""
    codex = Accounts()
    codex.account = {"account": {"type": "apiKey"}, "requiresOpenaiAuth": True}
    assert await Visitor().starts(login_at(codex), KEY) == {}
    assert [method for method, _ in codex.calls] == ["account/read"]


async def test_a_refused_key_is_repeated_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    """Not in the error, not in the log, though Codex's own words may."""
    codex = Accounts()
    codex.refuses = "account/login/start"
    secret = "hunter2-is-my-key"
    with caplog.at_level(logging.DEBUG):
        error = await refusal(Visitor().starts(login_at(codex, OPENAI_API_KEY=secret), KEY))
    assert error.code == -32000
    assert secret not in f"{error.message} {error.data} {error.__cause__} {caplog.text}"


# ── in a browser, in a terminal ────────────────────────────────────────────


async def test_a_browser_is_opened_here_for_a_client_that_cannot() -> None:
    """Codex waits on this machine for what the browser brings back."""
    codex, visitor, opened = Accounts(), Visitor(FORMS), list[str]()

    async def browser(url: str, environment: Mapping[str, str]) -> bool:
        opened.append(url)
        return True

    login = EditorLogin(CodexAccounts(codex), PROGRAM, {}, browser)
    asking = visitor.starts(login, BROWSER)
    while not opened:
        await asyncio.sleep(0)
    codex.end()
    assert await asking == {}
    assert opened == ["https://auth.test/go"]


async def test_without_a_browser_the_page_is_shown_like_any_other() -> None:
    """No code is made up for it."""
    error = await refusal(Visitor().starts(login_at(Accounts()), BROWSER))
    assert error.message.startswith("Open https://auth.test/go in a browser on the machine where Codex runs")


async def test_after_a_terminal_we_only_look() -> None:
    """Old Zed asks for the method when its terminal is done."""
    codex, visitor = Accounts(), Visitor()
    error = await refusal(visitor.starts(login_at(codex), "terminal"))
    assert (error.code, "authMethods" in error.data) == (-32000, True)
    codex.account = {"account": {"type": "apiKey"}, "requiresOpenaiAuth": True}
    assert await visitor.starts(login_at(codex), "terminal") == {}


# ── the real Codex ─────────────────────────────────────────────────────────


@asynccontextmanager
async def strict() -> AsyncIterator[Rehearsal]:
    """A Codex whose model provider wants a login."""
    async with rehearsal() as here:
        config = here.home / "config.toml"
        config.write_text(
            config.read_text().replace("requires_openai_auth = false", "requires_openai_auth = true")
        )
        yield here


async def test_the_real_codex_takes_a_key_and_forgets_it() -> None:
    """Needed, not needed, needed again."""
    async with strict() as here:
        login = EditorLogin(
            here.engine.offers.accounts, PROGRAM, {"OPENAI_API_KEY": "sk-rehearsal-0123456789"}, no_browser
        )
        assert await login.is_needed()
        assert await Visitor().starts(login, KEY) == {}
        assert not await login.is_needed()
        assert await login.logout() == {}
        assert await login.is_needed()


async def test_the_real_codex_gives_up_a_login_that_somebody_declines() -> None:
    """Its own page, its own port; and its death is heard by whoever waits for the next one."""
    async with strict() as here:
        login, visitor = EditorLogin(here.engine.offers.accounts, PROGRAM, {}, no_browser), Visitor(URLS)
        asking = visitor.starts(login, BROWSER)
        asked = await visitor.hand.asked()
        assert asked.params["url"].startswith("https://")
        asked.reply.set_result({"action": "decline"})
        assert (await refusal(asking)).code == -32000
        asking = visitor.starts(login, BROWSER)
        asked = await visitor.hand.asked()
        assert here.engine.pid is not None
        os.kill(here.engine.pid, signal.SIGKILL)
        assert "Codex ended meanwhile" in (await refusal(asking)).message
        visitor.hand.lint.assert_clean()
