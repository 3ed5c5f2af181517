"""Account, rate limits, login and logout by app-server's account calls, behind the port `Accounts`.

Codex logs in and keeps the credentials. An API key is sent to Codex and nowhere else. A login ends when
Codex reports it, or when the app-server that began it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from laneway.base.errors import EngineRefused
from laneway.codex.provider import is_login_needed
from laneway.core.offers import Account, Limit, LoginPage, LoginWay

_COMPLETED = "account/login/completed"
_TYPES: dict[LoginWay, str] = {"browser": "chatgpt", "device_code": "chatgptDeviceCode"}


class LoginLink(Protocol):
    """The part of `Link` that a login needs."""

    async def call(self, method: str, params: Any = None) -> Any: ...

    def watch(self, method: str, watcher: Callable[[dict[str, Any] | None], None]) -> Callable[[], None]: ...


class AccountCalls(Protocol):
    """The part of `CodexEngine` that accounts need."""

    async def call(self, method: str, params: Any = None) -> Any: ...

    async def link(self) -> LoginLink: ...


class CodexAccounts:
    def __init__(self, codex: AccountCalls) -> None:
        self._codex = codex

    async def read(self, *, refresh: bool = False) -> Account:
        return account(await self._codex.call("account/read", {"refreshToken": refresh}))

    async def limits(self) -> tuple[Limit, ...]:
        return limits(await self._codex.call("account/rateLimits/read", {}))

    async def log_in_with_key(self, key: str) -> None:
        await self._codex.call("account/login/start", {"type": "apiKey", "apiKey": key})

    async def begin_login(self, way: LoginWay) -> CodexLogin:
        return await CodexLogin.begin(await self._codex.link(), way)

    async def log_out(self) -> None:
        await self._codex.call("account/logout")


class CodexLogin:
    """A login that has begun and waits for the person."""

    def __init__(self, link: LoginLink, page: LoginPage, stop: Callable[[], None]) -> None:
        self.page = page
        self.outcome: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._link = link
        self._stop = stop

    @classmethod
    async def begin(cls, link: LoginLink, way: LoginWay) -> CodexLogin:
        early_notifications: list[dict[str, Any] | None] = []
        login: CodexLogin | None = None

        def on_completed(completed: dict[str, Any] | None) -> None:
            if login is None:
                early_notifications.append(completed)
            else:
                login._on_completed(completed)

        stop = link.watch(_COMPLETED, on_completed)
        try:
            page = _page(await link.call("account/login/start", {"type": _TYPES[way]}))
        except BaseException:
            stop()
            raise
        login = cls(link, page, stop)
        for completed in early_notifications:
            login._on_completed(completed)
        return login

    def _on_completed(self, completed: dict[str, Any] | None) -> None:
        if completed is None:
            self._end("Codex ended meanwhile. Try again.")
        elif completed.get("loginId") == self.page.login_id:
            self._end(None if completed.get("success") is True else _reason(completed.get("error")))

    def _end(self, why: str | None) -> None:
        if not self.outcome.done():
            self._stop()
            self.outcome.set_result(why)

    def end(self, why: str) -> None:
        self._end(why)

    async def cancel(self) -> None:
        await self._link.call("account/login/cancel", {"loginId": self.page.login_id})


# ── reading answers: pure ──────────────────────────────────────────────────


def account(answer: Any) -> Account:
    """The answer to `account/read` as the core's value."""
    if not isinstance(answer, dict):
        return Account()
    account_json = answer.get("account")
    kind = str(account_json.get("type")) if isinstance(account_json, dict) else None
    details = (
        (account_json.get(key) for key in ("email", "planType")) if isinstance(account_json, dict) else ()
    )
    return Account(
        kind=kind,
        who=", ".join(str(each) for each in details if each),
        is_login_needed=is_login_needed(answer),
        is_login_possible=answer.get("requiresOpenaiAuth") is True,
    )


def limits(answer: Any) -> tuple[Limit, ...]:
    """The answer to `account/rateLimits/read` as the core's values."""
    windows = answer.get("rateLimits") if isinstance(answer, dict) else None
    if not isinstance(windows, dict):
        return ()
    return tuple(
        Limit(
            used_percent=_number(window.get("usedPercent")),
            window_minutes=_whole(window.get("windowDurationMins")),
            resets_at=_whole(window.get("resetsAt")),
        )
        for key in ("primary", "secondary")
        if isinstance(window := windows.get(key), dict)
    )


class _LoginStarted(msgspec.Struct):
    """The fields that we read of the answer to `account/login/start`."""

    loginId: str
    authUrl: str = ""
    verificationUrl: str = ""
    userCode: str = ""


def _page(answer: Any) -> LoginPage:
    try:
        login_started = msgspec.convert(answer, _LoginStarted)
    except msgspec.ValidationError as problem:
        raise EngineRefused("account/login/start", 0, f"an answer that cannot be read: {problem}") from None
    return LoginPage(
        login_started.loginId, login_started.verificationUrl or login_started.authUrl, login_started.userCode
    )


def _reason(error: Any) -> str:
    return f"{str(error).rstrip('.')}." if error else "Codex did not say why."


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None
