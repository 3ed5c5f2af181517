"""Codex's account in a test's hand, and a client that wants to log in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from laneway.base.errors import EngineRefused, RemoteError
from laneway.codex.account import CodexAccounts
from laneway.doors.acp.accounts.login import EditorLogin
from laneway.doors.acp.accounts.login_prompt import LoginRequest
from laneway.doors.acp.client import EditorClient
from tests.doors.acp.hand import SESSION, Hand

PROGRAM = ("/usr/bin/python3", "-m", "laneway", "acp")
URL, CODE = "https://auth.test/device", "ABCD-1234"
DEVICE, BROWSER, KEY = "chat-gpt-device-code", "chat-gpt", "api-key"
URLS: dict[str, Any] = {"elicitation": {"url": {}}}
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}


class Accounts:
    """Codex's account calls in a test's hand: a login ends when the test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.account: dict[str, Any] = {"account": None, "requiresOpenaiAuth": True}
        self.refuses: str | None = None
        self.leaves_open: str | None = None
        """What it never answers."""
        self.begun = asyncio.Event()
        self.may_begin = asyncio.Event()
        """Cleared, a login takes its time to begin."""
        self.may_begin.set()
        self._watchers: list[Callable[[dict[str, Any] | None], None]] = []
        self._logins = 0

    async def link(self) -> Accounts:
        return self

    async def call(self, method: str, params: Any = None) -> Any:
        self.calls.append((method, params))
        if method == self.refuses:
            raise EngineRefused(method, -32603, f"no: {params}")
        if method == self.leaves_open:
            await asyncio.Event().wait()
        if method == "account/read":
            return self.account
        if method == "account/logout":
            self.account = {"account": None, "requiresOpenaiAuth": True}
        if method != "account/login/start":
            return {}
        self.begun.set()
        await self.may_begin.wait()
        if params["type"] == "apiKey":
            self.account = {"account": {"type": "apiKey"}, "requiresOpenaiAuth": True}
            return {}
        self._logins += 1
        login_id = f"login-{self._logins}"
        if params["type"] == "chatgpt":
            return {"type": "chatgpt", "loginId": login_id, "authUrl": "https://auth.test/go"}
        answer = {"type": "chatgptDeviceCode", "loginId": login_id}
        return answer | {"verificationUrl": URL, "userCode": CODE}

    def watch(self, method: str, watcher: Callable[[dict[str, Any] | None], None]) -> Callable[[], None]:
        assert method == "account/login/completed"
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    @property
    def is_watched(self) -> bool:
        return bool(self._watchers)

    def end(self, error: str | None = None, login_id: str = "login-1") -> None:
        told = {"loginId": login_id, "success": error is None, "error": error}
        for watcher in list(self._watchers):
            watcher(told)

    def die(self) -> None:
        for watcher in list(self._watchers):
            watcher(None)

    @property
    def cancelled(self) -> list[Any]:
        return [params["loginId"] for method, params in self.calls if method == "account/login/cancel"]


async def no_browser(url: str, environment: Mapping[str, str]) -> bool:
    return False


def login_at(codex: Accounts, **environment: str) -> EditorLogin:
    return EditorLogin(CodexAccounts(codex), PROGRAM, environment, no_browser)


class Visitor:
    """A client that sends `authenticate`."""

    def __init__(self, capabilities: dict[str, Any] | None = None, *, session: str | None = None) -> None:
        self.hand = Hand(capabilities)
        given = (capabilities or {}).get("elicitation", {})
        self.client = EditorClient(takes_urls="url" in given, takes_forms="form" in given)
        self.session = session
        self._ids = 20

    def starts(self, login: EditorLogin, method: str, **params: Any) -> asyncio.Future[dict[str, Any]]:
        self._ids += 1
        request = {"jsonrpc": "2.0", "id": self._ids, "method": "authenticate"}
        self.hand.lint.check("client", {**request, "params": {"methodId": method, **params}})
        login_request = LoginRequest(self.client, self.hand, self._ids, self.session)
        return asyncio.ensure_future(login.authenticate({"methodId": method, **params}, login_request))


def conversation(visitor: Visitor, said: list[str]) -> LoginRequest:
    """Of the same client: `/login` in one of its sessions."""
    return LoginRequest(visitor.client, visitor.hand, session_id=SESSION, send_message=said.append)


async def refusal(asking: asyncio.Future[Any]) -> RemoteError:
    with pytest.raises(RemoteError) as refused:
        await asking
    return refused.value
