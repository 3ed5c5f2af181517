"""Logging in by device code: by whatever channel the client has, and however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from laneway.base.errors import RemoteError, WireBroken
from laneway.doors.acp.accounts import login as login_module
from laneway.doors.acp.accounts.login import EditorLogin
from laneway.doors.acp.accounts.login_prompt import LoginRequest
from laneway.doors.acp.client import EditorClient
from tests.doors.acp.accounts.support import (
    BROWSER,
    CODE,
    DEVICE,
    FORMS,
    URL,
    URLS,
    Accounts,
    Visitor,
    login_at,
    refusal,
)
from tests.doors.acp.hand import SESSION, Hand


@pytest.fixture(autouse=True)
async def _deadline() -> AsyncIterator[None]:
    async with asyncio.timeout(60):
        yield


async def test_a_device_code_is_shown_as_a_link_of_the_request() -> None:
    """Where the client can: it opens the page, the message has the code, and the end is told."""
    codex, visitor = Accounts(), Visitor(URLS)
    asking = visitor.starts(login_at(codex), DEVICE)
    asked = await visitor.hand.asked()
    assert asked.params == {
        "mode": "url",
        "requestId": 21,
        "elicitationId": "login-1",
        "url": URL,
        "message": f"Log in to Codex and enter this code there: {CODE}",
    }
    asked.reply.set_result({"action": "accept"})
    codex.end()
    assert await asking == {}
    assert not codex.is_watched
    assert codex.cancelled == []
    visitor.hand.lint.assert_clean()


async def test_a_device_code_is_shown_in_a_form_where_there_are_no_links() -> None:
    """And in a permission request of an open session where there are no forms either."""
    codex, visitor = Accounts(), Visitor(FORMS)
    asking = visitor.starts(login_at(codex), DEVICE)
    asked = await visitor.hand.asked()
    assert asked.params["mode"] == "form"
    assert URL in asked.params["message"]
    assert CODE in asked.params["message"]
    asked.reply.set_result({"action": "accept"})
    codex.end()
    assert await asking == {}
    visitor.hand.lint.assert_clean()


@pytest.mark.parametrize(("choice", "status"), [("done", "completed"), ("cancel", "failed")])
async def test_a_device_code_is_shown_in_an_open_session(choice: str, status: str) -> None:
    """As a permission request about a call of its own, which ends with it."""
    codex, visitor = Accounts(), Visitor(session=SESSION)
    asking = visitor.starts(login_at(codex), DEVICE)
    asked = await visitor.hand.asked()
    assert asked.method == "session/request_permission"
    call = asked.params["toolCall"]
    assert call["title"] == f"Open {URL} and enter the code {CODE} to log in to Codex."
    assert call["content"][0]["content"]["text"] == call["title"]
    asked.reply.set_result({"outcome": {"outcome": "selected", "optionId": choice}})
    if choice == "done":
        await asyncio.sleep(0)
        codex.end()
        assert await asking == {}
    else:
        assert "cancelled" in (await refusal(asking)).message
        assert codex.cancelled == ["login-1"]
    assert visitor.hand.updates[-1]["status"] == status
    visitor.hand.lint.assert_clean()


async def test_a_client_that_refuses_a_rung_gets_the_next() -> None:
    """Some declare what they do not serve."""
    codex = Accounts()
    visitor = Visitor({"elicitation": {"url": {}, "form": {}}}, session=SESSION)
    asking = visitor.starts(login_at(codex), DEVICE)
    for method in ("elicitation/create", "elicitation/create", "session/request_permission"):
        asked = await visitor.hand.asked()
        assert asked.method == method
        asked.reply.set_exception(RemoteError(-32601, "no such method"))
    error = await refusal(asking)
    assert CODE in error.message
    assert visitor.hand.open_calls() == set()


async def test_without_any_channel_the_error_names_the_way_and_the_next_request_waits() -> None:
    """The login goes on meanwhile; the second request starts no other."""
    codex, visitor = Accounts(), Visitor()
    login = login_at(codex)
    error = await refusal(visitor.starts(login, DEVICE))
    assert (error.code, error.data) == (-32000, {"kind": "login_pending"})
    assert URL in error.message
    assert CODE in error.message
    waiting = visitor.starts(login, DEVICE)
    await asyncio.sleep(0)
    assert not waiting.done()
    codex.end()
    assert await waiting == {}
    assert [method for method, _ in codex.calls].count("account/login/start") == 1


async def test_in_a_conversation_the_way_is_said() -> None:
    """For a command: no request of the client is open."""
    codex, hand, said = Accounts(), Hand(), list[str]()
    request = LoginRequest(EditorClient(), hand, session_id=SESSION, send_message=said.append)
    asking = asyncio.ensure_future(login_at(codex).authenticate({"methodId": DEVICE}, request))
    await codex.begun.wait()
    while not said:
        await asyncio.sleep(0)
    codex.end()
    assert await asking == {}
    assert said == [f"Open {URL} and enter the code {CODE} to log in to Codex."]


async def test_a_login_that_ends_before_anybody_answers_takes_the_question_back() -> None:
    """Somebody had the page open already."""
    codex, visitor = Accounts(), Visitor(URLS)
    asking = visitor.starts(login_at(codex), DEVICE)
    await visitor.hand.asked()
    codex.end()
    assert await asking == {}
    assert visitor.hand.cancelled == ["elicitation/create"]
    visitor.hand.lint.assert_clean()


@pytest.mark.parametrize(
    ("end", "says"),
    [
        (lambda codex: codex.end("code expired"), "Nobody is logged in: code expired."),
        (lambda codex: codex.end(""), "Nobody is logged in: Codex did not say why."),
        (lambda codex: codex.die(), "Codex ended meanwhile"),
    ],
)
async def test_a_login_that_fails_is_told_and_can_be_tried_again(
    end: Callable[[Accounts], None], says: str
) -> None:
    """Also when Codex dies over it."""
    codex, visitor = Accounts(), Visitor()
    login = login_at(codex)
    await refusal(visitor.starts(login, DEVICE))
    waiting = visitor.starts(login, DEVICE)
    await asyncio.sleep(0)
    end(codex)
    assert says in (await refusal(waiting)).message
    assert not codex.is_watched
    await refusal(visitor.starts(login, DEVICE))
    assert [method for method, _ in codex.calls].count("account/login/start") == 2


async def test_the_end_of_another_login_is_not_taken_for_ours() -> None:
    """Codex tells of all of them."""
    codex, visitor = Accounts(), Visitor()
    login = login_at(codex)
    await refusal(visitor.starts(login, DEVICE))
    waiting = visitor.starts(login, DEVICE)
    codex.end(login_id="somebody else's")
    await asyncio.sleep(0)
    assert not waiting.done()
    codex.end()
    assert await waiting == {}


async def test_a_request_that_the_client_takes_back_cancels_the_login() -> None:
    """And the question that was open for it."""
    codex, visitor = Accounts(), Visitor(URLS)
    asking = visitor.starts(login_at(codex), DEVICE)
    await visitor.hand.asked()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert codex.cancelled == ["login-1"]
    assert visitor.hand.cancelled == ["elicitation/create"]
    assert not codex.is_watched


async def test_a_request_right_behind_one_that_is_taken_back_shows_the_code_in_its_place() -> None:
    """It wants the login of the first one, whose question is gone."""
    codex, visitor = Accounts(), Visitor(URLS)
    login = login_at(codex)
    first = visitor.starts(login, DEVICE)
    await visitor.hand.asked()
    second = visitor.starts(login, DEVICE)
    first.cancel()
    asked = await visitor.hand.asked()
    assert (asked.params["elicitationId"], asked.params["requestId"]) == ("login-1", 22)
    assert first.cancelled()
    asked.reply.set_result({"action": "accept"})
    codex.end()
    assert await second == {}
    assert codex.cancelled == []


async def test_another_way_takes_the_place_of_the_one_before() -> None:
    """Somebody changed their mind: only one login is under way."""
    codex, visitor = Accounts(), Visitor()
    login = login_at(codex)
    await refusal(visitor.starts(login, BROWSER))
    assert CODE in (await refusal(visitor.starts(login, DEVICE))).message
    assert codex.cancelled == ["login-1"]


async def test_a_codex_that_does_not_take_a_login_back_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither at our own end, nor by somebody who logs out."""
    monkeypatch.setattr(login_module, "CANCEL_S", 0.01)
    codex, visitor = Accounts(), Visitor()
    codex.leaves_open = "account/login/cancel"
    login = login_at(codex)
    await refusal(visitor.starts(login, DEVICE))
    assert await login.logout() == {}
    await refusal(visitor.starts(login, DEVICE))
    await login.aclose()
    assert codex.cancelled == ["login-1", "login-2"]


async def test_a_client_that_is_gone_leaves_no_login_behind() -> None:
    """Its line breaks while it is being asked."""
    codex, visitor = Accounts(), Visitor(URLS)
    asking = visitor.starts(login_at(codex), DEVICE)
    (await visitor.hand.asked()).reply.set_exception(WireBroken("The connection ended"))
    with pytest.raises(WireBroken):
        await asking
    assert codex.cancelled == ["login-1"]


@pytest.mark.parametrize("end", [EditorLogin.aclose, EditorLogin.logout])
async def test_nothing_goes_on_when_the_connection_ends_or_somebody_logs_out(end: Any) -> None:
    """Nobody would hear of it."""
    codex, visitor = Accounts(), Visitor()
    login = login_at(codex)
    await refusal(visitor.starts(login, DEVICE))
    await end(login)
    assert codex.cancelled == ["login-1"]
    assert not codex.is_watched
    await end(login)
    assert codex.cancelled == ["login-1"]


async def test_somebody_who_is_logged_in_already_need_not_do_it_again() -> None:
    """Unless Codex says that this login does not work any more."""
    codex, visitor = Accounts(), Visitor()
    codex.account = {"account": {"type": "chatgpt"}, "requiresOpenaiAuth": True}
    assert await visitor.starts(login_at(codex), DEVICE) == {}
    codex.refuses = "account/read"
    assert CODE in (await refusal(visitor.starts(login_at(codex), DEVICE))).message
