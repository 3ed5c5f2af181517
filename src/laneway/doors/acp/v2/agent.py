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
from laneway.doors.acp.sessions.room import Room
from laneway.doors.acp.telling.voice import Voice
from laneway.doors.acp.v2 import past, prompts, shapes
from laneway.doors.acp.v2.narrator import Narrator


class Agent(agent.Agent):
    def _voice(self) -> Voice:
        return Narrator(self._line, self._house.clock)

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
        room = await self._new_room(params)
        return {"sessionId": room.session_id, **_state(room)}

    async def _take_up(self, params: Params) -> dict[str, Any]:
        """The conversation if it is asked for, then the state, then the answer."""
        whole = _wants_replay(params)
        room, is_new = await self._reopened(params)
        if whole:
            await self._tell_past(room, is_new=is_new)
        elif is_new:
            self._introduce(room)
        _narrator(room).foreground.tell()
        return _state(room)

    async def _replay(self, room: Room) -> None:
        engine, cwd = self._house.engine, str(room.cwd)
        await replay.replay(
            engine, room.session_id, room.thread_id, room.client, self._line, cwd=cwd, render=past.updates
        )

    def _introduce(self, room: Room) -> None:
        room.narrator.open(room.session_id, room.thread_id, str(room.cwd), room)
        for note in room.notes:
            room.narrator.notice("warning", note)

    async def _shut(self, params: Params) -> dict[str, Any]:
        """One that is not open is closed already."""
        room = self._rooms.pop(session_of(params), None)
        if room is not None:
            await room.close()
        return {}

    async def _say(self, params: Params) -> dict[str, Any]:
        room = self._room(params)
        return await prompts.prompt(room, _narrator(room), params.get("prompt"), self._told)

    async def _told(self, error: LanewayError) -> RemoteError:
        return await self._refused(error) if isinstance(error, LoginNeeded) else wire_error(error)

    async def _choose(self, params: Params) -> dict[str, Any]:
        room = self._room(params)
        match params:
            case {"type": "id", "value": str(value)} | {"type": "boolean", "value": bool(value)}:
                await room.chosen(str(params.get("configId")), value)
            case _:
                raise bad_params(
                    "An option is set by type id with a text, or by type boolean with true or false."
                )
        return {"configOptions": shapes.options(room.shown_options())}


_METHODS: dict[str, Callable[[Agent, Params], Awaitable[dict[str, Any]]]] = {
    "auth/logout": Agent._logout,
    "session/new": Agent._create,
    "session/resume": Agent._take_up,
    "session/list": Agent._list,
    "session/close": Agent._shut,
    "session/delete": Agent._delete,
    "session/prompt": Agent._say,
    "session/set_config_option": Agent._choose,
}


def _state(room: Room) -> dict[str, Any]:
    return {
        "configOptions": shapes.options(room.shown_options()),
        "availableCommands": shapes.available_commands(),
    }


def _narrator(room: Room) -> Narrator:
    assert isinstance(room.narrator, Narrator)
    return room.narrator


def _wants_replay(params: Params) -> bool:
    match params.get("replayFrom"):
        case None:
            return False
        case {"type": "start"}:
            return True
        case _:
            raise bad_params('replayFrom is {"type": "start"}, or is left out.')
