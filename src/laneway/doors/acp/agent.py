"""ACP's methods for one client: from a request to whoever answers it. Knows the protocol and no transport.

This is protocol 1; what the draft of protocol 2 does differently is in `laneway.doors.acp.v2.agent`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from laneway.base.errors import RemoteError, SessionUnknown
from laneway.doors.acp.accounts.auth_methods import DEVICE_CODE
from laneway.doors.acp.accounts.login_prompt import LoginAsker
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.faults import METHOD_NOT_FOUND, LoginNeeded, bad_params, fault
from laneway.doors.acp.history import listing, replay
from laneway.doors.acp.sessions.available_commands import available_commands
from laneway.doors.acp.sessions.editor_session import EditorSession
from laneway.doors.acp.sessions.session_factory import SessionFactory
from laneway.doors.acp.shared import Shared
from laneway.doors.acp.updates.update_sink import UpdateSink
from laneway.doors.acp.updates.updates_v1 import UpdatesV1

Params: TypeAlias = dict[str, Any]

KEPT_S = 1.0
"""For a new session to be written down before it is answered; a disk that takes longer holds nobody up."""


class Agent:
    """Serves one client that has been greeted."""

    def __init__(self, house: Shared, principal: str, client: EditorClient, line: ClientChannel) -> None:
        self._house = house
        self._client = client
        self._line = line
        self._sessions: dict[str, EditorSession] = {}
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By session, for as long as somebody is at it."""
        self._cancelling: set[asyncio.Future[None]] = set()
        self._lobby = SessionFactory(house, principal, line, client, self._login_in, self._voice)

    async def serve(self, method: str, params: Params, request_id: bytes) -> Any:
        """Answer a request. A prompt has its place in its session's queue before this first waits."""
        try:
            await self._wait_opened(params.get("sessionId"))
            return await self._dispatch(method, params, request_id)
        except LoginNeeded as needed:
            raise await self._refused(needed) from None

    async def _wait_opened(self, wanted: Any) -> None:
        """Whoever does not wait for the answer that opens a session means that session all the same."""
        opening = self._opening.get(wanted) if isinstance(wanted, str) else None
        if opening is not None and opening.locked():
            async with opening:
                pass

    async def _refused(self, needed: LoginNeeded) -> RemoteError:
        if needed.failure is not None and not await self._house.login.is_possible():
            return needed.failure  # the key of a provider of the user's own
        return self._house.login.required(self._client, needed.why)

    async def _dispatch(self, method: str, params: Params, request_id: bytes) -> Any:
        if method == "authenticate":
            return await self._authenticate(params, request_id)
        handler = _METHODS.get(method)
        if handler is None:
            raise no_method(method)
        return await handler(self, params)

    def cancel(self, session_id: str) -> None:
        session = self._sessions.get(session_id)
        if session is not None:
            session.prompts.cancel()
        elif session_id in self._opening:
            cancelling = asyncio.ensure_future(self._cancel_opened(session_id))
            self._cancelling.add(cancelling)
            cancelling.add_done_callback(self._cancelling.discard)

    async def _cancel_opened(self, session_id: str) -> None:
        """Behind the prompts that came before it and wait, too, and before those that come after it."""
        await self._wait_opened(session_id)
        session = self._sessions.get(session_id)
        if session is not None:
            session.prompts.cancel()

    def _voice(self) -> UpdateSink:
        return UpdatesV1(self._line, self._client, self._house.clock)

    # ── the connection ─────────────────────────────────────────────────────

    async def _authenticate(self, params: Params, request_id: bytes) -> dict[str, Any]:
        asker = LoginAsker(
            self._client, self._line, msgspec.Raw(request_id), next(iter(self._sessions), None)
        )
        return await self._house.login.authenticate(params, asker)

    async def _logout(self, params: Params) -> dict[str, Any]:
        return await self._house.login.logout()

    async def _login_in(self, session: EditorSession) -> None:
        """`/login`: a device code, said in the conversation."""
        asker = LoginAsker(session.client, self._line, None, session.session_id, session.narrator.say)
        try:
            await self._house.login.authenticate({"methodId": DEVICE_CODE}, asker)
        except RemoteError as refused:
            session.narrator.say(refused.message)
        else:
            session.narrator.say("You are logged in to Codex.")

    # ── sessions ───────────────────────────────────────────────────────────

    async def _new(self, params: Params) -> dict[str, Any]:
        session = await self._new_session(params)
        return {"sessionId": session.session_id, **_state(session)}

    async def _new_session(self, params: Params) -> EditorSession:
        # Beside each other: Codex takes its time for a thread, and hardly anybody is not logged in.
        needed = asyncio.ensure_future(self._house.login.is_needed())
        try:
            session = await self._lobby.new(params)
        except BaseException:
            needed.cancel()
            raise
        try:
            if await needed:
                raise LoginNeeded
            # What is answered holds: a session without a prompt is written down by nobody else.
            await session.settings.wait_kept(KEPT_S)
        except BaseException:
            await asyncio.shield(self._lobby.discard(session))
            raise
        self._settle(session)
        return session

    async def _load(self, params: Params) -> dict[str, Any]:
        """The whole conversation is told before this is answered; prompts that come meanwhile wait."""
        if self._client.keeps_history:
            return await self._resume(params)
        session, is_new = await self._reopened(params)
        await self._tell_past(session, is_new=is_new)
        return _state(session)

    async def _tell_past(self, session: EditorSession, *, is_new: bool) -> None:
        async def tell() -> None:
            try:
                await self._replay(session)
            finally:
                is_open = (
                    self._sessions.get(session.session_id) is session
                )  # it may have been closed meanwhile
                if is_new and is_open:
                    self._introduce(session)
            if not is_new:
                session.questions.ask_again()

        await session.tell_past(tell)

    async def _replay(self, session: EditorSession) -> None:
        await replay.replay(
            self._house.engine,
            session.session_id,
            session.thread_id,
            session.client,
            self._line,
            cwd=str(session.cwd),
        )

    async def _resume(self, params: Params) -> dict[str, Any]:
        session, is_new = await self._reopened(params)
        if is_new:
            self._introduce_soon(session)
        return _state(session)

    async def _fork(self, params: Params) -> dict[str, Any]:
        if not (self._house.is_unstable or self._client.is_unstable):
            raise fault(METHOD_NOT_FOUND, "session/fork is not stable yet: see `laneway acp --unstable`.")
        await self._check_login()
        wanted = session_of(params)
        session = await self._lobby.forked(wanted, params, self._sessions.get(wanted))
        self._settle(session)
        return {"sessionId": session.session_id, **_state(session)}

    async def _reopened(self, params: Params) -> tuple[EditorSession, bool]:
        """The session of a session: as it is, or opened; of several who ask at once, one opens it."""
        wanted = session_of(params)
        opening = self._opening.setdefault(wanted, asyncio.Lock())
        async with opening:
            session = self._sessions.get(wanted)
            if session is not None:
                return session, False
            await self._check_login()
            session = self._sessions[wanted] = await self._lobby.again(wanted, params)
            return session, True

    async def _check_login(self) -> None:
        if await self._house.login.is_needed():
            raise LoginNeeded

    def _settle(self, session: EditorSession) -> None:
        self._sessions[session.session_id] = session
        self._introduce_soon(session)

    def _introduce_soon(self, session: EditorSession) -> None:
        """What the client did not ask for comes behind the answer that tells it the id."""
        asyncio.get_running_loop().call_soon(self._introduce, session)

    def _introduce(self, session: EditorSession) -> None:
        session.introduce()
        session.narrator.tell(available_commands(session.commands.offers))
        for note in session.notes:
            session.narrator.notice("warning", note)

    async def _list(self, params: Params) -> dict[str, Any]:
        return await listing.listed(self._house.engine, params, self._lobby.names, self._lobby.empty)

    async def _close(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        del self._sessions[session.session_id]
        await session.close()
        return {}

    async def _delete(self, params: Params) -> dict[str, Any]:
        wanted = session_of(params)
        session = self._sessions.pop(wanted, None)
        if session is not None:
            await session.close()
        await self._lobby.delete(wanted)
        return {}

    async def _prompt(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        return await session.prompts.prompt(session.parts(params.get("prompt")))

    async def _set_mode(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        if await session.choose("mode", params.get("modeId")):
            session.tell_options()
        return {}

    async def _set_option(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        if await session.choose(str(params.get("configId")), params.get("value")):
            session.tell_mode()
        return {"configOptions": session.options()}

    def _session(self, params: Params) -> EditorSession:
        wanted = session_of(params)
        session = self._sessions.get(wanted)
        if session is None:
            raise SessionUnknown(wanted)
        return session

    # ── the end ────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        """The client is gone: nothing of it runs on."""
        for cancelling in self._cancelling:
            cancelling.cancel()
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(session.close() for session in sessions))


_METHODS: dict[str, Callable[[Agent, Params], Awaitable[dict[str, Any]]]] = {
    "logout": Agent._logout,
    "session/new": Agent._new,
    "session/load": Agent._load,
    "session/resume": Agent._resume,
    "session/fork": Agent._fork,
    "session/list": Agent._list,
    "session/close": Agent._close,
    "session/delete": Agent._delete,
    "session/prompt": Agent._prompt,
    "session/set_mode": Agent._set_mode,
    "session/set_config_option": Agent._set_option,
}


def _state(session: EditorSession) -> dict[str, Any]:
    """What `session/new`, `load` and `resume` answer with."""
    return {"modes": session.modes(), "configOptions": session.options()}


def no_method(method: str) -> RemoteError:
    return fault(METHOD_NOT_FOUND, f"There is no method {method[:100]}.")


def session_of(params: Params) -> str:
    wanted = params.get("sessionId")
    if not isinstance(wanted, str):
        raise bad_params("sessionId must be a text.")
    return wanted
