"""Logs in to Codex for ACP clients: by API key, browser, device code or terminal. Also logs out.

Codex performs the login and stores its result; Laneway starts it, shows the user what to do, and waits.
There is one `EditorLogin` for all clients of a process. A key is sent to Codex only.

A device code is shown by whatever the client supports (see `login_prompt`). If it supports nothing, the
error of `authenticate` has the page and the code; the login goes on, and the client's next
`authenticate` waits for it.

Codex has one login in progress at a time, and all clients that choose the same method share it. Each
is shown the code and may cancel its own request; when the last one has, the login is cancelled.
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
from laneway.doors.acp.accounts.login_prompt import LoginPrompt, LoginRequest, PromptOutcome, show_prompt
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.faults import AUTH_REQUIRED, bad_params, fault

log = logging.getLogger(__name__)

KEY_VARIABLES = ("CODEX_API_KEY", "OPENAI_API_KEY")
"""Where a key is read from if the request has none; the first wins."""
CANCEL_S = 2.0
"""For Codex to cancel a login; neither requests nor the shutdown wait longer."""
_LOGIN_WAYS: dict[str, LoginWay] = {BROWSER: "browser", DEVICE_CODE: "device_code"}
_CANCELLED = "the login was cancelled."
_OTHER_METHOD = "another way to log in was chosen."
_LOGGED_OUT = "somebody logged out."


class _PendingLogin:
    """A login in progress. It ends when the engine says so, or with the engine."""

    def __init__(self, started: StartedLogin, method: str) -> None:
        self.started = started
        self.method = method
        self.prompt = LoginPrompt(started.page.login_id, started.page.url, started.page.code)
        self.outcome = started.outcome
        """None if the login succeeded; else why not."""
        self.is_superseded = False
        """Whether a client ended it by another login or a logout: there may be an account all the same."""
        self.waiting = 0
        """The number of requests that wait for it."""
        self.informed: set[ClientChannel] = set()
        """Channels of the clients that have the page, shown to them or in an error."""
        self.prompt_locks: defaultdict[ClientChannel, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Held while a client is shown the page, so that its second request does not show it again."""

    @property
    def is_wanted(self) -> bool:
        return self.waiting > 0 or bool(self.informed)


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
        self._pending: _PendingLogin | None = None
        self._changing = asyncio.Lock()
        """Held while the account or the login in progress changes: one request at a time, in their order."""

    def methods(self, client: EditorClient) -> list[dict[str, Any]]:
        return methods(client, self._program, self._environment)

    def required(self, client: EditorClient, why: str = "") -> RemoteError:
        """The error for a request that needs a login first."""
        reason = f": {why}" if why else "."
        return fault(AUTH_REQUIRED, f"Log in to Codex first{reason}", authMethods=self.methods(client))

    async def is_needed(self) -> bool:
        return (await self._read()).is_login_needed

    async def is_possible(self) -> bool:
        """Whether Codex can log in to the model's provider, as opposed to one with the user's own key."""
        return (await self._read()).is_login_possible

    async def _read(self) -> Account:
        return Account() if self._accounts is None else await self._accounts.read()

    def _need_accounts(self) -> Accounts:
        if self._accounts is None:
            raise bad_params("There is nothing to log in to here.")
        return self._accounts

    async def authenticate(self, params: dict[str, Any], request: LoginRequest) -> dict[str, Any]:
        """Log in by the method of the request; raises an error that says why if that failed."""
        method = params.get("methodId")
        if method == API_KEY:
            await self._by_key(params)
        elif method == TERMINAL:
            await self._check_terminal(request.client)
        elif method in (BROWSER, DEVICE_CODE):
            await self._by_user(str(method), request)
        else:
            known = ", ".join(AGENT_METHODS)
            raise bad_params(f"There is no such way to log in. methodId can be one of: {known}.")
        return {}

    async def logout(self) -> dict[str, Any]:
        async with self._changing:  # also cancels a login that is just starting
            await self._supersede(_LOGGED_OUT)
            await self._need_accounts().log_out()
        return {}

    async def forget(self, channel: ClientChannel) -> None:
        """A client has disconnected: it wants no login any more."""
        pending = self._pending
        if pending is None:
            return
        pending.informed.discard(channel)
        pending.prompt_locks.pop(channel, None)
        if not pending.is_wanted:
            await self._cancel(pending, _CANCELLED)

    async def aclose(self) -> None:
        """Cancel a login in progress: the process shuts down."""
        if self._pending is not None:
            await self._cancel(self._pending, _CANCELLED)

    # ── by key, in a terminal ──────────────────────────────────────────────

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
            await self._supersede(_OTHER_METHOD)
            try:
                await self._need_accounts().log_in_with_key(key)
            except EngineRefused as refused:
                # Not Codex's own message: it might quote the key.
                log.info("Codex refused a login with an API key (code %d)", refused.code)
                raise fault(AUTH_REQUIRED, "Codex did not take this API key.") from None

    async def _check_terminal(self, client: EditorClient) -> None:
        """Check that the login in the client's terminal succeeded."""
        if await self.is_needed():
            raise self.required(client, "nobody has logged in in the terminal yet")

    # ── by browser or device code ──────────────────────────────────────────

    async def _by_user(self, method: str, request: LoginRequest) -> None:
        async with self._changing:
            pending = self._pending
            if pending is None or pending.outcome.done() or pending.method != method:
                if await self._account() == "chatgpt":
                    return  # logged in already: a new login would only replace this one
                await self._supersede(_OTHER_METHOD)
                pending = self._pending = await self._start(method)
            pending.waiting += 1
        try:
            why = await self._outcome(pending, request)
        except (asyncio.CancelledError, WireClosed, WireBroken):
            pending.informed.discard(request.channel)  # it cancelled its request, or disconnected
            raise
        finally:
            pending.waiting -= 1
            if not pending.is_wanted:
                await asyncio.shield(self._cancel(pending, _CANCELLED))
        if why is None or (pending.is_superseded and await self._has_account()):
            return
        raise fault(AUTH_REQUIRED, f"Nobody is logged in: {why}", kind="login_failed")

    async def _outcome(self, pending: _PendingLogin, request: LoginRequest) -> str | None:
        prompting = asyncio.ensure_future(self._show_once(pending, request))
        try:
            # The login may end before the client replies to the prompt.
            await asyncio.wait((prompting, pending.outcome), return_when=asyncio.FIRST_COMPLETED)
        finally:
            outcome = await _outcome_so_far(prompting)
        if pending.outcome.done():
            return pending.outcome.result()
        if outcome is None:
            # The login goes on. Only the error can show the page to the user.
            raise fault(AUTH_REQUIRED, pending.prompt.retry_text, kind="login_pending")
        if outcome == "declined":
            return _CANCELLED  # for this client only: others may be entering the code
        try:
            return await asyncio.shield(pending.outcome)
        finally:
            if outcome == "link":
                request.channel.notify("elicitation/complete", {"elicitationId": pending.prompt.login_id})

    async def _show_once(self, pending: _PendingLogin, request: LoginRequest) -> PromptOutcome | None:
        """Show a client the page, once; if that request is cancelled, its next one shows it."""
        async with pending.prompt_locks[request.channel]:
            if request.channel not in pending.informed:
                outcome = await self._show(pending.prompt, request)
                if outcome != "declined":
                    pending.informed.add(request.channel)
                return outcome
        if request.send_message is not None:
            request.send_message(pending.prompt.text)  # `/login` always answers in its conversation
        return "shown"

    async def _show(self, prompt: LoginPrompt, request: LoginRequest) -> PromptOutcome | None:
        """Open a browser here or show the page to the client; None if neither is possible."""
        # A page without a code must be opened on this machine, where Codex waits for it.
        is_local = not prompt.code and not request.client.takes_urls
        if is_local and await self._open_browser(prompt.url, self._environment):
            return "shown"
        return await show_prompt(prompt, request)

    async def _account(self) -> str | None:
        """The kind of the account that is logged in, if that login works."""
        try:
            return (await self._need_accounts().read(refresh=True)).kind
        except EngineRefused as refused:
            log.info("the login that is there does not work: %s", refused)
            return None

    async def _has_account(self) -> bool:
        """Whether there is an account, once the request that ended our login is done."""
        async with self._changing:
            return await self._account() is not None

    async def _start(self, method: str) -> _PendingLogin:
        try:
            return _PendingLogin(await self._need_accounts().begin_login(_LOGIN_WAYS[method]), method)
        except EngineRefused as refused:
            raise fault(
                AUTH_REQUIRED, f"Codex could not begin a login: {refused.message}", kind="login_failed"
            ) from refused

    async def _supersede(self, why: str) -> None:
        if self._pending is not None and not self._pending.outcome.done():
            self._pending.is_superseded = True
            await self._cancel(self._pending, why)

    async def _cancel(self, pending: _PendingLogin, why: str) -> None:
        if pending.outcome.done():
            return
        pending.started.end(why)
        try:
            async with asyncio.timeout(CANCEL_S):
                await pending.started.cancel()
        except (EngineRefused, EngineLost, TimeoutError) as problem:
            log.info("a login could not be cancelled: %r", problem)


async def _outcome_so_far(prompting: asyncio.Future[PromptOutcome | None]) -> PromptOutcome | None:
    """Cancel a prompt; returns its outcome if it had one already."""
    prompting.cancel()
    try:
        return await prompting
    except asyncio.CancelledError:
        if not prompting.cancelled():
            raise
        return None


def _key_of(params: dict[str, Any], environment: Mapping[str, str]) -> str | None:
    meta = params.get("_meta")
    fields = meta.get(API_KEY) if isinstance(meta, dict) else None
    key = fields.get("apiKey") if isinstance(fields, dict) else None
    candidates = [key, *(environment.get(name) for name in KEY_VARIABLES)]
    for candidate in candidates:
        if isinstance(candidate, str) and candidate.strip():
            return candidate.strip()
    return None
