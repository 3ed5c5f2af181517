"""Who is logged in to Codex, and how somebody logs in: app-server's account calls behind a port.

Codex does it and keeps what comes of it. A key goes to Codex and nowhere else. A login is over when
Codex says so, or when the Codex that began it is.
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
    """What is needed of a link to Codex."""

    async def call(self, method: str, params: Any = None) -> Any: ...

    def watch(self, method: str, watcher: Callable[[dict[str, Any] | None], None]) -> Callable[[], None]: ...


class AccountCalls(Protocol):
    """What is needed of an engine."""

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
    """A login that Codex waits for."""

    def __init__(self, link: LoginLink, page: LoginPage, stop: Callable[[], None]) -> None:
        self.page = page
        self.outcome: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._link = link
        self._stop = stop

    @classmethod
    async def begin(cls, link: LoginLink, way: LoginWay) -> CodexLogin:
        early: list[dict[str, Any] | None] = []
        login: CodexLogin | None = None

        def on_completed(completed: dict[str, Any] | None) -> None:
            if login is None:
                early.append(completed)
            else:
                login._on_completed(completed)

        stop = link.watch(_COMPLETED, on_completed)
        try:
            page = _page(await link.call("account/login/start", {"type": _TYPES[way]}))
        except BaseException:
            stop()
            raise
        login = cls(link, page, stop)
        for completed in early:
            login._on_completed(completed)
        return login

    def _on_completed(self, completed: dict[str, Any] | None) -> None:
        if completed is None:
            self._end("Codex ended meanwhile. Try again.")
        elif completed.get("loginId") == self.page.login_id:
            self._end(None if completed.get("success") is True else _why(completed.get("error")))

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
    """What `account/read` answered."""
    if not isinstance(answer, dict):
        return Account()
    known = answer.get("account")
    kind = str(known.get("type")) if isinstance(known, dict) else None
    named = (known.get(key) for key in ("email", "planType")) if isinstance(known, dict) else ()
    return Account(
        kind=kind,
        who=", ".join(str(each) for each in named if each),
        is_login_needed=is_login_needed(answer),
        is_login_possible=answer.get("requiresOpenaiAuth") is True,
    )


def limits(answer: Any) -> tuple[Limit, ...]:
    """What `account/rateLimits/read` answered."""
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


class _Started(msgspec.Struct):
    """Codex's answer, as far as we need it."""

    loginId: str
    authUrl: str = ""
    verificationUrl: str = ""
    userCode: str = ""


def _page(answer: Any) -> LoginPage:
    try:
        started = msgspec.convert(answer, _Started)
    except msgspec.ValidationError as problem:
        raise EngineRefused("account/login/start", 0, f"an answer that cannot be read: {problem}") from None
    return LoginPage(started.loginId, started.verificationUrl or started.authUrl, started.userCode)


def _why(error: Any) -> str:
    return f"{str(error).rstrip('.')}." if error else "Codex did not say why."


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None
