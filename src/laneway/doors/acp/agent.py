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
from laneway.doors.acp.accounts.signpost import Asker
from laneway.doors.acp.client import Client
from laneway.doors.acp.faults import METHOD_NOT_FOUND, LoginNeeded, bad_params, fault
from laneway.doors.acp.history import listing, replay
from laneway.doors.acp.house import House
from laneway.doors.acp.line import Line
from laneway.doors.acp.sessions.lobby import Lobby
from laneway.doors.acp.sessions.room import Room
from laneway.doors.acp.slash import commands
from laneway.doors.acp.telling.narrator import Narrator
from laneway.doors.acp.telling.voice import Voice

Params: TypeAlias = dict[str, Any]

KEPT_S = 1.0
"""For a new session to be written down before it is answered; a disk that takes longer holds nobody up."""


class Agent:
    """Serves one client that has been greeted."""

    def __init__(self, house: House, principal: str, client: Client, line: Line) -> None:
        self._house = house
        self._client = client
        self._line = line
        self._rooms: dict[str, Room] = {}
        self._opening: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By session, for as long as somebody is at it."""
        self._cancelling: set[asyncio.Future[None]] = set()
        self._lobby = Lobby(house, principal, line, client, self._login_in, self._voice)

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
        room = self._rooms.get(session_id)
        if room is not None:
            room.cancel()
        elif session_id in self._opening:
            cancelling = asyncio.ensure_future(self._cancel_opened(session_id))
            self._cancelling.add(cancelling)
            cancelling.add_done_callback(self._cancelling.discard)

    async def _cancel_opened(self, session_id: str) -> None:
        """Behind the prompts that came before it and wait, too, and before those that come after it."""
        await self._wait_opened(session_id)
        room = self._rooms.get(session_id)
        if room is not None:
            room.cancel()

    def _voice(self) -> Voice:
        return Narrator(self._line, self._client, self._house.clock)

    # ── the connection ─────────────────────────────────────────────────────

    async def _authenticate(self, params: Params, request_id: bytes) -> dict[str, Any]:
        asker = Asker(self._client, self._line, msgspec.Raw(request_id), next(iter(self._rooms), None))
        return await self._house.login.authenticate(params, asker)

    async def _logout(self, params: Params) -> dict[str, Any]:
        return await self._house.login.logout()

    async def _login_in(self, room: Room) -> None:
        """`/login`: a device code, said in the conversation."""
        asker = Asker(room.client, self._line, None, room.session_id, room.narrator.say)
        try:
            await self._house.login.authenticate({"methodId": DEVICE_CODE}, asker)
        except RemoteError as refused:
            room.narrator.say(refused.message)
        else:
            room.narrator.say("You are logged in to Codex.")

    # ── sessions ───────────────────────────────────────────────────────────

    async def _new(self, params: Params) -> dict[str, Any]:
        room = await self._new_room(params)
        return {"sessionId": room.session_id, **room.state()}

    async def _new_room(self, params: Params) -> Room:
        # Beside each other: Codex takes its time for a thread, and hardly anybody is not logged in.
        needed = asyncio.ensure_future(self._house.login.is_needed())
        try:
            room = await self._lobby.new(params)
        except BaseException:
            needed.cancel()
            raise
        try:
            if await needed:
                raise LoginNeeded
            # What is answered holds: a session without a prompt is written down by nobody else.
            await room.standing.wait_kept(KEPT_S)
        except BaseException:
            await asyncio.shield(self._lobby.discard(room))
            raise
        self._settle(room)
        return room

    async def _load(self, params: Params) -> dict[str, Any]:
        """The whole conversation is told before this is answered; prompts that come meanwhile wait."""
        if self._client.keeps_history:
            return await self._resume(params)
        room, is_new = await self._reopened(params)
        await self._tell_past(room, is_new=is_new)
        return room.state()

    async def _tell_past(self, room: Room, *, is_new: bool) -> None:
        async def tell() -> None:
            try:
                await self._replay(room)
            finally:
                if is_new and self._rooms.get(room.session_id) is room:  # it may have been closed meanwhile
                    self._introduce(room)
            if not is_new:
                room.ask_again()

        await room.tell_past(tell)

    async def _replay(self, room: Room) -> None:
        engine, cwd = self._house.engine, str(room.cwd)
        await replay.replay(engine, room.session_id, room.thread_id, room.client, self._line, cwd=cwd)

    async def _resume(self, params: Params) -> dict[str, Any]:
        room, is_new = await self._reopened(params)
        if is_new:
            self._introduce_soon(room)
        return room.state()

    async def _fork(self, params: Params) -> dict[str, Any]:
        if not (self._house.is_unstable or self._client.is_unstable):
            raise fault(METHOD_NOT_FOUND, "session/fork is not stable yet: see `laneway acp --unstable`.")
        await self._check_login()
        wanted = session_of(params)
        room = await self._lobby.forked(wanted, params, self._rooms.get(wanted))
        self._settle(room)
        return {"sessionId": room.session_id, **room.state()}

    async def _reopened(self, params: Params) -> tuple[Room, bool]:
        """The room of a session: as it is, or opened; of several who ask at once, one opens it."""
        wanted = session_of(params)
        opening = self._opening.setdefault(wanted, asyncio.Lock())
        async with opening:
            room = self._rooms.get(wanted)
            if room is not None:
                return room, False
            await self._check_login()
            room = self._rooms[wanted] = await self._lobby.again(wanted, params)
            return room, True

    async def _check_login(self) -> None:
        if await self._house.login.is_needed():
            raise LoginNeeded

    def _settle(self, room: Room) -> None:
        self._rooms[room.session_id] = room
        self._introduce_soon(room)

    def _introduce_soon(self, room: Room) -> None:
        """What the client did not ask for comes behind the answer that tells it the id."""
        asyncio.get_running_loop().call_soon(self._introduce, room)

    def _introduce(self, room: Room) -> None:
        room.narrator.open(room.session_id, room.thread_id, str(room.cwd), room)
        room.narrator.tell(commands.AVAILABLE)
        for note in room.notes:
            room.narrator.notice("warning", note)

    async def _list(self, params: Params) -> dict[str, Any]:
        return await listing.listed(self._house.engine, params, self._lobby.names, self._lobby.empty)

    async def _close(self, params: Params) -> dict[str, Any]:
        room = self._room(params)
        del self._rooms[room.session_id]
        await room.close()
        return {}

    async def _delete(self, params: Params) -> dict[str, Any]:
        wanted = session_of(params)
        room = self._rooms.pop(wanted, None)
        if room is not None:
            await room.close()
        await self._lobby.delete(wanted)
        return {}

    async def _prompt(self, params: Params) -> dict[str, Any]:
        return await self._room(params).prompt(params.get("prompt"))

    async def _set_mode(self, params: Params) -> dict[str, Any]:
        room = self._room(params)
        if await room.chosen("mode", params.get("modeId")):
            room.tell_options()
        return {}

    async def _set_option(self, params: Params) -> dict[str, Any]:
        room = self._room(params)
        if await room.chosen(str(params.get("configId")), params.get("value")):
            room.tell_mode()
        return {"configOptions": room.shown_options()}

    def _room(self, params: Params) -> Room:
        wanted = session_of(params)
        room = self._rooms.get(wanted)
        if room is None:
            raise SessionUnknown(wanted)
        return room

    # ── the end ────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        """The client is gone: nothing of it runs on."""
        for cancelling in self._cancelling:
            cancelling.cancel()
        rooms, self._rooms = list(self._rooms.values()), {}
        await asyncio.gather(*(room.close() for room in rooms))


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


def no_method(method: str) -> RemoteError:
    return fault(METHOD_NOT_FOUND, f"There is no method {method[:100]}.")


def session_of(params: Params) -> str:
    wanted = params.get("sessionId")
    if not isinstance(wanted, str):
        raise bad_params("sessionId must be a text.")
    return wanted
