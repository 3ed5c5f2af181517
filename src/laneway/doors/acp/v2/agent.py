"""The methods of ACP 2 of one client.

Protocol 2 has no `session/load`, modes or `session/fork`; `tool_call/cancel` and `terminal/cancel` are
not offered, because Codex can stop a turn but not a single call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from laneway.base.errors import LanewayError, RemoteError, SessionUnknown
from laneway.doors.acp import agent
from laneway.doors.acp.agent import Params, session_id_of, unknown_method
from laneway.doors.acp.faults import NOT_FOUND, LoginNeeded, bad_params, fault, wire_error
from laneway.doors.acp.history import replay
from laneway.doors.acp.sessions.editor_session import EditorSession
from laneway.doors.acp.updates.update_sink import UpdateSink
from laneway.doors.acp.v2 import past_updates, prompts, shapes
from laneway.doors.acp.v2.updates_v2 import UpdatesV2


class AgentV2(agent.Agent):
    """Serves one client of protocol 2 after its `initialize`."""

    def _new_sink(self) -> UpdateSink:
        return UpdatesV2(self._channel, self._shared.clock)

    async def _dispatch(self, method: str, params: Params, request_id: bytes) -> Any:
        if method == "auth/login":
            return await self._authenticate(params, request_id)
        handler = _METHODS.get(method)
        if handler is None:
            raise unknown_method(method)
        try:
            return await handler(self, params)
        except SessionUnknown as unknown:
            raise fault(NOT_FOUND, str(unknown), sessionId=session_id_of(params)) from unknown

    # ── sessions ───────────────────────────────────────────────────────────

    async def _new(self, params: Params) -> dict[str, Any]:
        session = await self._new_session(params)
        return {"sessionId": session.session_id, **_state(session)}

    async def _resume(self, params: Params) -> dict[str, Any]:
        """Send the history if the client asks for it, then the state; then answer."""
        wants_replay = _wants_replay(params)
        session, is_new = await self._open_existing(params)
        if wants_replay:
            await self._send_history(session, is_new=is_new)
        elif is_new:
            self._start_updates(session)
        _sink(session).state.send()
        return _state(session)

    async def _replay(self, session: EditorSession) -> None:
        engine, cwd = self._shared.engine, str(session.cwd)
        await replay.replay(
            engine,
            session.session_id,
            session.thread_id,
            session.client,
            self._channel,
            cwd=cwd,
            render=past_updates.updates,
            engine_name=engine.name,
        )

    def _start_updates(self, session: EditorSession) -> None:
        session.start_updates()
        for note in session.notes:
            session.sink.send_notice("warning", note)

    async def _close(self, params: Params) -> dict[str, Any]:
        """Close a session; not an error if it is not open."""
        session = self._sessions.pop(session_id_of(params), None)
        if session is not None:
            await session.close()
        return {}

    async def _prompt(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        return await prompts.prompt(session, _sink(session), params.get("prompt"), self._prompt_error)

    async def _prompt_error(self, error: LanewayError) -> RemoteError:
        return await self._login_error(error) if isinstance(error, LoginNeeded) else wire_error(error)

    async def _set_option(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        match params:
            case {"type": "id", "value": str(value)} | {"type": "boolean", "value": bool(value)}:
                await session.choose(str(params.get("configId")), value)
            case _:
                raise bad_params(
                    "An option is set by type id with a text, or by type boolean with true or false."
                )
        return {"configOptions": shapes.options(session.options())}


_METHODS: dict[str, Callable[[AgentV2, Params], Awaitable[dict[str, Any]]]] = {
    "auth/logout": AgentV2._logout,
    "session/new": AgentV2._new,
    "session/resume": AgentV2._resume,
    "session/list": AgentV2._list,
    "session/close": AgentV2._close,
    "session/delete": AgentV2._delete,
    "session/prompt": AgentV2._prompt,
    "session/set_config_option": AgentV2._set_option,
}


def _state(session: EditorSession) -> dict[str, Any]:
    return {
        "configOptions": shapes.options(session.options()),
        "availableCommands": shapes.available_commands(session.commands.offers),
    }


def _sink(session: EditorSession) -> UpdatesV2:
    assert isinstance(session.sink, UpdatesV2)
    return session.sink


def _wants_replay(params: Params) -> bool:
    match params.get("replayFrom"):
        case None:
            return False
        case {"type": "start"}:
            return True
        case _:
            raise bad_params('replayFrom is {"type": "start"}, or is left out.')
