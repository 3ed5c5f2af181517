"""The ACP methods of one client: routes each request to its sessions, the login or the session list.

Owns the client's open sessions. This is protocol 1; what the draft of protocol 2 does differently is in
`laneway.doors.acp.v2.agent`. Knows no transport.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from laneway.base.errors import RemoteError, SessionUnknown
from laneway.core.background import TaskSet
from laneway.doors.acp.accounts.auth_methods import DEVICE_CODE
from laneway.doors.acp.accounts.login_prompt import LoginRequest
from laneway.doors.acp.client import EditorClient
from laneway.doors.acp.client_channel import ClientChannel
from laneway.doors.acp.faults import LoginNeeded, bad_params, fault
from laneway.doors.acp.history import listing, replay
from laneway.doors.acp.sessions.available_commands import available_commands
from laneway.doors.acp.sessions.editor_session import EditorSession
from laneway.doors.acp.sessions.session_factory import SessionFactory
from laneway.doors.acp.shared import Shared
from laneway.doors.acp.updates.update_sink import UpdateSink
from laneway.doors.acp.updates.updates_v1 import UpdatesV1
from laneway.wire.messages import METHOD_NOT_FOUND

Params: TypeAlias = dict[str, Any]

RECORD_S = 1.0
"""How long `session/new` waits for its record to be written; a slower disk does not delay the answer."""


class Agent:
    """Serves one client after its `initialize`."""

    def __init__(self, shared: Shared, principal: str, client: EditorClient, channel: ClientChannel) -> None:
        self._shared = shared
        self._client = client
        self._channel = channel
        self._sessions: dict[str, EditorSession] = {}
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By session id: held while the session is being opened."""
        self._cancels = TaskSet()
        self._factory = SessionFactory(
            shared, principal, channel, client, self._login_by_command, self._new_sink
        )

    async def serve(self, method: str, params: Params, request_id: bytes) -> Any:
        """Answer a request. A prompt joins its session's queue before this first waits."""
        try:
            await self._wait_opened(params.get("sessionId"))
            return await self._dispatch(method, params, request_id)
        except LoginNeeded as needed:
            raise await self._login_error(needed) from None

    async def _wait_opened(self, session_id: Any) -> None:
        """Wait for a session that is being opened: a client may send requests before it has that answer."""
        opening = self._opening.get(session_id) if isinstance(session_id, str) else None
        if opening is not None and opening.locked():
            async with opening:
                pass

    async def _login_error(self, needed: LoginNeeded) -> RemoteError:
        if needed.failure is not None and not await self._shared.login.is_possible():
            return needed.failure  # the provider has a key of the user's own: no login to Codex helps
        return self._shared.login.required(self._client, needed.why)

    async def _dispatch(self, method: str, params: Params, request_id: bytes) -> Any:
        if method == "authenticate":
            return await self._authenticate(params, request_id)
        handler = _METHODS.get(method)
        if handler is None:
            raise unknown_method(method)
        return await handler(self, params)

    def cancel(self, session_id: str) -> None:
        session = self._sessions.get(session_id)
        if session is not None:
            session.prompts.cancel()
        elif session_id in self._opening:
            self._cancels.spawn(self._cancel_opened(session_id), "a cancel")

    async def _cancel_opened(self, session_id: str) -> None:
        """Cancel once the session is open: after the prompts sent before this, and before later ones."""
        await self._wait_opened(session_id)
        session = self._sessions.get(session_id)
        if session is not None:
            session.prompts.cancel()

    def _new_sink(self) -> UpdateSink:
        return UpdatesV1(self._channel, self._client, self._shared.clock)

    # ── the connection ─────────────────────────────────────────────────────

    async def _authenticate(self, params: Params, request_id: bytes) -> dict[str, Any]:
        request = LoginRequest(
            self._client, self._channel, msgspec.Raw(request_id), next(iter(self._sessions), None)
        )
        return await self._shared.login.authenticate(params, request)

    async def _logout(self, params: Params) -> dict[str, Any]:
        return await self._shared.login.logout()

    async def _login_by_command(self, session: EditorSession) -> None:
        """`/login`: log in by a device code that is shown in the conversation."""
        request = LoginRequest(
            session.client, self._channel, None, session.session_id, session.sink.send_message
        )
        try:
            await self._shared.login.authenticate({"methodId": DEVICE_CODE}, request)
        except RemoteError as refused:
            session.sink.send_message(refused.message)
        else:
            session.sink.send_message("You are logged in to Codex.")

    # ── sessions ───────────────────────────────────────────────────────────

    async def _new(self, params: Params) -> dict[str, Any]:
        session = await self._new_session(params)
        return {"sessionId": session.session_id, **_state(session)}

    async def _new_session(self, params: Params) -> EditorSession:
        # At the same time: Codex takes long to start a thread, and most users are logged in.
        needed = asyncio.ensure_future(self._shared.login.is_needed())
        try:
            session = await self._factory.new(params)
        except BaseException:
            needed.cancel()
            await asyncio.gather(needed, return_exceptions=True)
            raise
        try:
            if await needed:
                raise LoginNeeded
            # Codex records no thread without a prompt: after a restart, only our record has the session.
            await session.settings.wait_saved(RECORD_S)
        except BaseException:
            await asyncio.shield(self._factory.discard(session))
            raise
        self._add(session)
        return session

    async def _load(self, params: Params) -> dict[str, Any]:
        """Send the whole history, then answer; prompts that come in between wait."""
        if self._client.keeps_history:
            return await self._resume(params)
        session, is_new = await self._open_existing(params)
        await self._send_history(session, is_new=is_new)
        return _state(session)

    async def _send_history(self, session: EditorSession, *, is_new: bool) -> None:
        async def send() -> None:
            try:
                await self._replay(session)
            finally:
                # It may have been closed in between.
                is_open = self._sessions.get(session.session_id) is session
                if is_new and is_open:
                    self._start_updates(session)
            if not is_new:
                session.questions.repeat()

        await session.send_history(send)

    async def _replay(self, session: EditorSession) -> None:
        await replay.replay(
            self._shared.engine,
            session.session_id,
            session.thread_id,
            session.client,
            self._channel,
            cwd=str(session.cwd),
            engine_name=self._shared.engine.name,
        )

    async def _resume(self, params: Params) -> dict[str, Any]:
        session, is_new = await self._open_existing(params)
        if is_new:
            self._start_updates_soon(session)
        return _state(session)

    async def _fork(self, params: Params) -> dict[str, Any]:
        if not (self._shared.is_unstable or self._client.is_unstable):
            raise fault(METHOD_NOT_FOUND, "session/fork is not stable yet: see `laneway acp --unstable`.")
        await self._check_login()
        session_id = session_id_of(params)
        session = await self._factory.fork(session_id, params, self._sessions.get(session_id))
        self._add(session)
        return {"sessionId": session.session_id, **_state(session)}

    async def _open_existing(self, params: Params) -> tuple[EditorSession, bool]:
        """The session of this id, and whether this opened it. Of several requests at once, one opens it."""
        session_id = session_id_of(params)
        opening = self._opening.setdefault(session_id, asyncio.Lock())
        async with opening:
            session = self._sessions.get(session_id)
            if session is not None:
                return session, False
            await self._check_login()
            session = self._sessions[session_id] = await self._factory.reopen(session_id, params)
            return session, True

    async def _check_login(self) -> None:
        if await self._shared.login.is_needed():
            raise LoginNeeded

    def _add(self, session: EditorSession) -> None:
        self._sessions[session.session_id] = session
        self._start_updates_soon(session)

    def _start_updates_soon(self, session: EditorSession) -> None:
        """Start the session's updates after the answer that tells the client its id."""
        asyncio.get_running_loop().call_soon(self._start_updates, session)

    def _start_updates(self, session: EditorSession) -> None:
        session.start_updates()
        session.sink.send(available_commands(session.commands.offers))
        for note in session.notes:
            session.sink.send_notice("warning", note)

    async def _list(self, params: Params) -> dict[str, Any]:
        return await listing.list_sessions(
            self._shared.engine, params, self._factory.session_ids, self._factory.empty_sessions
        )

    async def _close(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        del self._sessions[session.session_id]
        await session.close()
        return {}

    async def _delete(self, params: Params) -> dict[str, Any]:
        session_id = session_id_of(params)
        session = self._sessions.pop(session_id, None)
        if session is not None:
            await session.close()
        await self._factory.delete(session_id)
        return {}

    async def _prompt(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        return await session.prompts.prompt(session.parts(params.get("prompt")))

    async def _set_mode(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        if await session.choose("mode", params.get("modeId")):
            session.send_options()
        return {}

    async def _set_option(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        if await session.choose(str(params.get("configId")), params.get("value")):
            session.send_mode()
        return {"configOptions": session.options()}

    def _session(self, params: Params) -> EditorSession:
        session_id = session_id_of(params)
        session = self._sessions.get(session_id)
        if session is None:
            raise SessionUnknown(session_id)
        return session

    # ── the end ────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        """Close the client's sessions: it has disconnected."""
        await self._cancels.cancel()
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(
            self._shared.login.forget(self._channel), *(session.close() for session in sessions)
        )


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
    """The modes and options in the answers to `session/new`, `load`, `resume` and `fork`."""
    return {"modes": session.modes(), "configOptions": session.options()}


def unknown_method(method: str) -> RemoteError:
    return fault(METHOD_NOT_FOUND, f"There is no method {method[:100]}.")


def session_id_of(params: Params) -> str:
    session_id = params.get("sessionId")
    if not isinstance(session_id, str):
        raise bad_params("sessionId must be a text.")
    return session_id
