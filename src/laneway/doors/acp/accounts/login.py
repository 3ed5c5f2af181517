"""Logging in to Codex from an editor: by key, in a browser, by device code, in a terminal.

Codex does it and keeps what comes of it; we start it, show what a person has to do, and wait. One
`EditorLogin` for all clients of a process. A key goes to Codex and nowhere else.

A device code is shown by whatever the client offers: a URL or a form for its request, a permission
request in an open session, the conversation itself; else the error says where to go and what to
enter, the login goes on meanwhile, and the next `authenticate` of that client waits for it.

Codex has one login under way at a time, and all clients that choose the same way share it. Each is
shown the code, and each may leave; with the last one goes the login.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from laneway.base.errors import EngineLost, EngineRefused, RemoteError, WireBroken, WireClosed
from laneway.core.offers import Account, Accounts, LoginWay, StartedLogin
from laneway.doors.acp.accounts.auth_methods import (
    AGENT_METHODS,
    API_KEY,
    BROWSER,
    DEVICE_CODE,
    TERMINAL,
    methods,
)
from laneway.doors.acp.accounts.browser import open_browser
from laneway.doors.acp.accounts.login_prompt import LoginAsker, LoginPrompt, Shown, show
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.faults import AUTH_REQUIRED, bad_params, fault

log = logging.getLogger(__name__)

KEY_VARIABLES = ("CODEX_API_KEY", "OPENAI_API_KEY")
"""Where a key is looked for when the request has none; the first wins."""
CANCEL_S = 2.0
"""For Codex to take a login back: nobody waits longer for that, least of all our own end."""
_WAYS: dict[str, LoginWay] = {BROWSER: "browser", DEVICE_CODE: "device_code"}
_CANCELLED = "the login was cancelled."
_ANOTHER_WAY = "another way to log in was chosen."
_LOGGED_OUT = "somebody logged out."


class _Pending:
    """A login that the engine is waiting for. Ends by the engine's word, or with the engine."""

    def __init__(self, started: StartedLogin, method: str) -> None:
        self.started = started
        self.method = method
        self.signpost = LoginPrompt(started.page.login_id, started.page.url, started.page.code)
        self.outcome = started.outcome
        """None: somebody is logged in; else why not."""
        self.is_superseded = False
        """Whether it ended by what somebody else did: an account may be there all the same."""
        self.waiting = 0
        """Requests that wait for it."""
        self.told: set[ClientChannel] = set()
        """Clients that know where to go, by their lines. One that knows it by an error waits as well."""
        self.telling: defaultdict[ClientChannel, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Held while a client is shown the way: a second request of it need not show it again."""

    @property
    def is_wanted(self) -> bool:
        return self.waiting > 0 or bool(self.told)


class EditorLogin:
    def __init__(
        self,
        accounts: Accounts | None,
        program: Sequence[str],
        environment: Mapping[str, str],
        open_browser: Callable[[str, Mapping[str, str]], Awaitable[bool]] = open_browser,
    ) -> None:
        """`program` is the command that starts this agent; `environment` is ours, not Codex's.

        An engine without accounts needs no login, and has none.
        """
        self._accounts = accounts
        self._program = tuple(program)
        self._environment = environment
        self._open_browser = open_browser
        self._pending: _Pending | None = None
        self._changing = asyncio.Lock()
        """Who is logged in, or is about to be, is changed by one at a time, in the order of requests."""

    def methods(self, client: EditorClient) -> list[dict[str, Any]]:
        return methods(client, self._program, self._environment)

    def required(self, client: EditorClient, why: str = "") -> RemoteError:
        """What a request gets that cannot be served before somebody has logged in."""
        reason = f": {why}" if why else "."
        return fault(AUTH_REQUIRED, f"Log in to Codex first{reason}", authMethods=self.methods(client))

    async def is_needed(self) -> bool:
        return (await self._read()).is_login_needed

    async def is_possible(self) -> bool:
        """Whether the model's provider is one that Codex logs in to, and not one with a key of the user's."""
        return (await self._read()).is_login_possible

    async def _read(self) -> Account:
        return Account() if self._accounts is None else await self._accounts.read()

    def _need_accounts(self) -> Accounts:
        if self._accounts is None:
            raise bad_params("There is nothing to log in to here.")
        return self._accounts

    async def authenticate(self, params: dict[str, Any], asker: LoginAsker) -> dict[str, Any]:
        """Return when somebody is logged in; raise with a sentence when that did not come to pass."""
        method = params.get("methodId")
        if method == API_KEY:
            await self._by_key(params)
        elif method == TERMINAL:
            await self._check_terminal(asker.client)
        elif method in (BROWSER, DEVICE_CODE):
            await self._by_person(str(method), asker)
        else:
            known = ", ".join(AGENT_METHODS)
            raise bad_params(f"There is no such way to log in. methodId can be one of: {known}.")
        return {}

    async def logout(self) -> dict[str, Any]:
        async with self._changing:  # a login that is just starting ends, too
            await self._supersede(_LOGGED_OUT)
            await self._need_accounts().log_out()
        return {}

    async def aclose(self) -> None:
        """Nobody waits any more: a login that is under way ends."""
        if self._pending is not None:
            await self._cancel(self._pending, _CANCELLED)

    # ── with a key ─────────────────────────────────────────────────────────

    async def _by_key(self, params: dict[str, Any]) -> None:
        key = _key_of(params, self._environment)
        if key is None:
            if await self._account() == "apiKey":
                return  # some editors ask for it at every start
            raise bad_params(
                f"There is no API key. Set {' or '.join(KEY_VARIABLES)} in the environment that your editor"
                " starts this agent with, or run `laneway login --with-api-key`."
            )
        async with self._changing:
            await self._supersede(_ANOTHER_WAY)
            try:
                await self._need_accounts().log_in_with_key(key)
            except EngineRefused as refused:
                # Codex's own words might repeat the key.
                log.info("Codex refused a login with an API key (code %d)", refused.code)
                raise fault(AUTH_REQUIRED, "Codex did not take this API key.") from None

    async def _check_terminal(self, client: EditorClient) -> None:
        """The client has run a terminal for it: see whether that helped."""
        if await self.is_needed():
            raise self.required(client, "nobody has logged in in the terminal yet")

    # ── with a person ──────────────────────────────────────────────────────

    async def _by_person(self, method: str, asker: LoginAsker) -> None:
        async with self._changing:
            pending = self._pending
            if pending is None or pending.outcome.done() or pending.method != method:
                if await self._account() == "chatgpt":
                    return  # a new one would only replace it
                await self._supersede(_ANOTHER_WAY)
                pending = self._pending = await self._start(method)
            pending.waiting += 1
        try:
            why = await self._outcome(pending, asker)
        except (asyncio.CancelledError, WireClosed, WireBroken):
            pending.told.discard(asker.line)  # it has taken its request back, or is gone
            raise
        finally:
            pending.waiting -= 1
            if not pending.is_wanted:
                await asyncio.shield(self._cancel(pending, _CANCELLED))
        if why is None or (pending.is_superseded and await self._is_somebody_there()):
            return
        raise fault(AUTH_REQUIRED, f"Nobody is logged in: {why}", kind="login_failed")

    async def _outcome(self, pending: _Pending, asker: LoginAsker) -> str | None:
        telling = asyncio.ensure_future(self._tell(pending, asker))
        try:
            # Who knows the way need not wait for being asked: the login may end first.
            await asyncio.wait((telling, pending.outcome), return_when=asyncio.FIRST_COMPLETED)
        finally:
            shown = await _ended(telling)
        if pending.outcome.done():
            return pending.outcome.result()
        if shown is None:
            # The login goes on. There is no other way to tell a person than the error.
            raise fault(AUTH_REQUIRED, pending.signpost.then_again, kind="login_pending")
        if shown == "declined":
            return _CANCELLED  # for this one: others may be typing the code
        try:
            return await asyncio.shield(pending.outcome)
        finally:
            if shown == "link":
                asker.line.notify("elicitation/complete", {"elicitationId": pending.signpost.login_id})

    async def _tell(self, pending: _Pending, asker: LoginAsker) -> Shown | None:
        """Show a client the way, once; if that request is taken back, it is the turn of its next one."""
        async with pending.telling[asker.line]:
            if asker.line not in pending.told:
                shown = await self._show(pending.signpost, asker)
                if shown != "declined":
                    pending.told.add(asker.line)
                return shown
        if asker.say is not None:
            asker.say(pending.signpost.text)  # whoever asks in a conversation looks there
        return "told"

    async def _show(self, signpost: LoginPrompt, asker: LoginAsker) -> Shown | None:
        """How a person took it; None if nobody could be told."""
        # Without a code it is for a browser on this machine: Codex waits for it here.
        is_local = not signpost.code and not asker.client.takes_urls
        if is_local and await self._open_browser(signpost.url, self._environment):
            return "told"
        return await show(signpost, asker)

    async def _account(self) -> str | None:
        """What kind of login works already, if one does."""
        try:
            return (await self._need_accounts().read(refresh=True)).kind
        except EngineRefused as refused:
            log.info("the login that is there does not work: %s", refused)
            return None

    async def _is_somebody_there(self) -> bool:
        """When whoever ended our login is through with what they wanted instead."""
        async with self._changing:
            return await self._account() is not None

    async def _start(self, method: str) -> _Pending:
        try:
            return _Pending(await self._need_accounts().begin_login(_WAYS[method]), method)
        except EngineRefused as refused:
            raise fault(
                AUTH_REQUIRED, f"Codex could not begin a login: {refused.message}", kind="login_failed"
            ) from refused

    async def _supersede(self, why: str) -> None:
        if self._pending is not None and not self._pending.outcome.done():
            self._pending.is_superseded = True
            await self._cancel(self._pending, why)

    async def _cancel(self, pending: _Pending, why: str) -> None:
        if pending.outcome.done():
            return
        pending.started.end(why)
        try:
            async with asyncio.timeout(CANCEL_S):
                await pending.started.cancel()
        except (EngineRefused, EngineLost, TimeoutError) as problem:
            log.info("a login could not be cancelled: %r", problem)


async def _ended(showing: asyncio.Future[Shown | None]) -> Shown | None:
    """What came of it, or nothing if it had to be stopped."""
    showing.cancel()
    try:
        return await showing
    except asyncio.CancelledError:
        if not showing.cancelled():
            raise
        return None


def _key_of(params: dict[str, Any], environment: Mapping[str, str]) -> str | None:
    meta = params.get("_meta")
    given = meta.get(API_KEY) if isinstance(meta, dict) else None
    key = given.get("apiKey") if isinstance(given, dict) else None
    found = [key, *(environment.get(name) for name in KEY_VARIABLES)]
    for each in found:
        if isinstance(each, str) and each.strip():
            return each.strip()
    return None
