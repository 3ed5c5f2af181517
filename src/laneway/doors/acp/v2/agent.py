"""The methods of protocol 2 for one client.

`session/load`, modes and `session/fork` are not in it; `tool_call/cancel` and `terminal/cancel` are
not offered, for Codex ends a turn and no single call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from laneway.base.errors import LanewayError, RemoteError, SessionUnknown
from laneway.doors.acp import agent
from laneway.doors.acp.agent import Params, no_method, session_of
from laneway.doors.acp.faults import NOT_FOUND, LoginNeeded, bad_params, fault, wire_error
from laneway.doors.acp.history import replay
from laneway.doors.acp.sessions.editor_session import EditorSession
from laneway.doors.acp.updates.update_sink import UpdateSink
from laneway.doors.acp.v2 import past_updates, prompts, shapes
from laneway.doors.acp.v2.updates_v2 import UpdatesV2


class AgentV2(agent.Agent):
    def _voice(self) -> UpdateSink:
        return UpdatesV2(self._line, self._house.clock)

    async def _dispatch(self, method: str, params: Params, request_id: bytes) -> Any:
        if method == "auth/login":
            return await self._authenticate(params, request_id)
        handler = _METHODS.get(method)
        if handler is None:
            raise no_method(method)
        try:
            return await handler(self, params)
        except SessionUnknown as unknown:
            raise fault(NOT_FOUND, str(unknown), sessionId=session_of(params)) from unknown

    # ── sessions ───────────────────────────────────────────────────────────

    async def _create(self, params: Params) -> dict[str, Any]:
        session = await self._new_session(params)
        return {"sessionId": session.session_id, **_state(session)}

    async def _take_up(self, params: Params) -> dict[str, Any]:
        """The conversation if it is asked for, then the state, then the answer."""
        whole = _wants_replay(params)
        session, is_new = await self._reopened(params)
        if whole:
            await self._tell_past(session, is_new=is_new)
        elif is_new:
            self._introduce(session)
        _narrator(session).foreground.tell()
        return _state(session)

    async def _replay(self, session: EditorSession) -> None:
        engine, cwd = self._house.engine, str(session.cwd)
        await replay.replay(
            engine,
            session.session_id,
            session.thread_id,
            session.client,
            self._line,
            cwd=cwd,
            render=past_updates.updates,
        )

    def _introduce(self, session: EditorSession) -> None:
        session.introduce()
        for note in session.notes:
            session.narrator.notice("warning", note)

    async def _shut(self, params: Params) -> dict[str, Any]:
        """One that is not open is closed already."""
        session = self._sessions.pop(session_of(params), None)
        if session is not None:
            await session.close()
        return {}

    async def _say(self, params: Params) -> dict[str, Any]:
        session = self._session(params)
        return await prompts.prompt(session, _narrator(session), params.get("prompt"), self._told)

    async def _told(self, error: LanewayError) -> RemoteError:
        return await self._refused(error) if isinstance(error, LoginNeeded) else wire_error(error)

    async def _choose(self, params: Params) -> dict[str, Any]:
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
    "session/new": AgentV2._create,
    "session/resume": AgentV2._take_up,
    "session/list": AgentV2._list,
    "session/close": AgentV2._shut,
    "session/delete": AgentV2._delete,
    "session/prompt": AgentV2._say,
    "session/set_config_option": AgentV2._choose,
}


def _state(session: EditorSession) -> dict[str, Any]:
    return {
        "configOptions": shapes.options(session.options()),
        "availableCommands": shapes.available_commands(session.commands.offers),
    }


def _narrator(session: EditorSession) -> UpdatesV2:
    assert isinstance(session.narrator, UpdatesV2)
    return session.narrator


def _wants_replay(params: Params) -> bool:
    match params.get("replayFrom"):
        case None:
            return False
        case {"type": "start"}:
            return True
        case _:
            raise bad_params('replayFrom is {"type": "start"}, or is left out.')
