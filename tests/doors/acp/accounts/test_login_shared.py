"""Several who log in at once, by one process: one login at Codex, and nobody ends that of another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import RemoteError, WireBroken
from tests.doors.acp.accounts.support import (
    BROWSER,
    CODE,
    DEVICE,
    KEY,
    URL,
    URLS,
    Accounts,
    Visitor,
    conversation,
    login_at,
    refusal,
)
from tests.doors.acp.accounts.test_point_11_login import BY_CODE, assert_logged_in, fronted, settled
from tests.doors.acp.hand import Call
from tests.doors.acp.sockets import listener
from tests.doors.acp.support import Refused


@pytest.fixture(autouse=True)
async def _deadline() -> AsyncIterator[None]:
    async with asyncio.timeout(60):
        yield


ACCEPTED, DECLINED = {"action": "accept"}, {"action": "decline"}


async def leave(how: str, asking: asyncio.Future[Any], asked: Call) -> None:
    """The ways in which a client can be through with a login that it was asked about."""
    if how == "it takes its request back":
        asking.cancel()
    elif how == "it is gone":
        asked.reply.set_exception(WireBroken("The connection ended"))
    else:
        asked.reply.set_result(DECLINED)
    with pytest.raises((asyncio.CancelledError, WireBroken, RemoteError)):
        await asking


WAYS_TO_LEAVE = ("it takes its request back", "it is gone", "it declines")


# ── several clients ────────────────────────────────────────────────────────


async def test_every_client_is_shown_the_code_once() -> None:
    """By its own request. Codex hears of one login, and all are answered when that succeeds."""
    codex, ann, bob = Accounts(), Visitor(URLS), Visitor(URLS)
    login = login_at(codex)
    asking = [visitor.starts(login, DEVICE) for visitor in (ann, ann, bob, bob)]
    for visitor in (ann, bob):
        asked = (await visitor.hand.asked()).params
        assert (asked["requestId"], asked["url"], CODE in asked["message"]) == (21, URL, True)
    codex.end()
    assert await asyncio.gather(*asking) == [{}] * 4
    assert [method for method, _ in codex.calls].count("account/login/start") == 1
    assert [visitor.hand.cancelled for visitor in (ann, bob)] == [["elicitation/create"]] * 2


@pytest.mark.parametrize("how", WAYS_TO_LEAVE)
@pytest.mark.parametrize("leaver", [0, 1], ids=["who came first", "who came second"])
async def test_a_client_that_leaves_takes_nothing_from_another(how: str, leaver: int) -> None:
    """The other's user may be typing the code just now."""
    codex, visitors = Accounts(), (Visitor(URLS), Visitor(URLS))
    login = login_at(codex)
    asking = [visitor.starts(login, DEVICE) for visitor in visitors]
    asked = [await visitor.hand.asked() for visitor in visitors]
    asked[1 - leaver].reply.set_result(ACCEPTED)
    await leave(how, asking[leaver], asked[leaver])
    assert codex.cancelled == []
    codex.end()
    assert await asking[1 - leaver] == {}


@pytest.mark.parametrize("how", WAYS_TO_LEAVE)
async def test_the_login_goes_with_the_last_one_who_waits(how: str) -> None:
    """Not before, and not twice."""
    codex, visitors = Accounts(), (Visitor(URLS), Visitor(URLS))
    login = login_at(codex)
    asking = [visitor.starts(login, DEVICE) for visitor in visitors]
    for visitor, request, cancelled in zip(visitors, asking, ([], ["login-1"]), strict=True):
        await leave(how, request, await visitor.hand.asked())
        assert codex.cancelled == cancelled
    assert not codex.is_watched


@pytest.mark.parametrize("how", WAYS_TO_LEAVE)
async def test_a_client_that_left_is_asked_when_it_comes_again(how: str) -> None:
    """Into the same login, for which another waits."""
    codex, ann, bob = Accounts(), Visitor(URLS), Visitor(URLS)
    login = login_at(codex)
    waiting, left = ann.starts(login, DEVICE), bob.starts(login, DEVICE)
    await leave(how, left, await bob.hand.asked())
    again = bob.starts(login, DEVICE)
    assert (await bob.hand.asked()).params["elicitationId"] == "login-1"
    codex.end()
    assert [await each for each in (waiting, again)] == [{}, {}]


async def test_a_client_without_a_channel_is_told_the_code_of_a_login_that_another_began() -> None:
    """In the error, as if it had been the first; its next request waits."""
    codex, ann, bob = Accounts(), Visitor(URLS), Visitor()
    login = login_at(codex)
    asking = ann.starts(login, DEVICE)
    await ann.hand.asked()
    error = await refusal(bob.starts(login, DEVICE))
    assert (CODE in error.message, error.data) == (True, {"kind": "login_pending"})
    again = bob.starts(login, DEVICE)
    await asyncio.sleep(0)
    codex.end()
    assert [await each for each in (asking, again)] == [{}, {}]


@pytest.mark.parametrize("how", WAYS_TO_LEAVE)
async def test_a_code_that_was_told_in_an_error_outlives_whoever_came_later(how: str) -> None:
    """The one who was told waits by no request, and is there all the same."""
    codex, ann, bob = Accounts(), Visitor(), Visitor(URLS)
    login = login_at(codex)
    await refusal(ann.starts(login, DEVICE))
    asking = bob.starts(login, DEVICE)
    asked = await bob.hand.asked()
    assert CODE in asked.params["message"]
    await leave(how, asking, asked)
    assert codex.cancelled == []
    waiting = ann.starts(login, DEVICE)
    await asyncio.sleep(0)
    codex.end()
    assert await waiting == {}


async def test_in_a_conversation_the_way_is_said_though_the_client_knows_it() -> None:
    """A person who types /login looks there, and not where an earlier request has shown it."""
    codex, visitor, said = Accounts(), Visitor(), list[str]()
    login = login_at(codex)
    await refusal(visitor.starts(login, DEVICE))
    asking = asyncio.ensure_future(login.authenticate({"methodId": DEVICE}, conversation(visitor, said)))
    while not said:
        await asyncio.sleep(0)
    codex.end()
    assert await asking == {}
    assert said == [f"Open {URL} and enter the code {CODE} to log in to Codex."]


async def test_of_two_editors_on_sockets_one_goes_and_the_other_logs_in(tmp_path: Path) -> None:
    """The whole way, with a real process: both are shown the code, and Codex is told of no cancel."""
    async with (
        fronted(tmp_path) as (here, person),
        listener(here) as server,
        server.client(URLS) as ann,
        server.client(URLS) as bob,
    ):
        ann.on_elicitation = lambda params: ACCEPTED
        asking = ann.request("authenticate", BY_CODE)
        await ann.wait_asked("elicitation/create")
        bob.on_elicitation = lambda params: None
        left = bob.request("authenticate", BY_CODE)
        assert CODE in (await bob.wait_asked("elicitation/create"))["params"]["message"]
        bob.cancel_request(bob.last_id)
        with pytest.raises(Refused, match="cancelled"):
            await left
        await settled(ann)
        person.go()
        assert await asking == {}
        await assert_logged_in(ann)
    assert "account/login/cancel" not in (tmp_path / "asked").read_text().split()


# ── another way meanwhile ──────────────────────────────────────────────────


async def test_who_waits_for_a_code_is_served_by_a_key_that_another_brings() -> None:
    """Somebody is logged in: that is what was wanted. It is answered when Codex has the key."""
    codex, ann, bob = Accounts(), Visitor(URLS), Visitor()
    login = login_at(codex, OPENAI_API_KEY="sk-a")
    waiting = ann.starts(login, DEVICE)
    (await ann.hand.asked()).reply.set_result(ACCEPTED)
    codex.begun.clear()
    codex.may_begin.clear()
    by_key = bob.starts(login, KEY)
    await codex.begun.wait()
    assert (codex.cancelled, waiting.done()) == (["login-1"], False)
    codex.may_begin.set()
    assert [await each for each in (waiting, by_key)] == [{}, {}]


@pytest.mark.parametrize("way", [BROWSER, KEY])
async def test_a_login_whose_place_another_takes_says_so(way: str) -> None:
    """Where nobody is logged in by then: the other one only begins, or its key is refused."""
    codex, ann, bob = Accounts(), Visitor(URLS), Visitor(URLS)
    login = login_at(codex, OPENAI_API_KEY="sk-a")
    waiting = ann.starts(login, DEVICE)
    await ann.hand.asked()
    codex.refuses = "account/login/start"
    await refusal(bob.starts(login, way))
    error = await refusal(waiting)
    assert error.message == "Nobody is logged in: another way to log in was chosen."


async def test_a_login_that_a_logout_ends_says_so() -> None:
    """Also where an account was there that the login was to replace."""
    codex, visitor = Accounts(), Visitor(URLS)
    codex.account = {"account": {"type": "apiKey"}, "requiresOpenaiAuth": True}
    login = login_at(codex)
    waiting = visitor.starts(login, DEVICE)
    await visitor.hand.asked()
    assert await login.logout() == {}
    assert (await refusal(waiting)).message == "Nobody is logged in: somebody logged out."


async def test_a_logout_ends_a_login_that_is_just_starting() -> None:
    """What was said first happens first: a key, a code, and then nobody is logged in or about to be."""
    codex, visitor = Accounts(), Visitor(URLS)
    login = login_at(codex, OPENAI_API_KEY="sk-a")
    codex.may_begin.clear()
    by_key, by_code = visitor.starts(login, KEY), visitor.starts(login, DEVICE)
    logout = asyncio.ensure_future(login.logout())
    await codex.begun.wait()
    codex.may_begin.set()
    assert [await each for each in (by_key, logout)] == [{}, {}]
    assert (await refusal(by_code)).message == "Nobody is logged in: somebody logged out."
    assert codex.cancelled == ["login-1"]
    assert await login.is_needed()
