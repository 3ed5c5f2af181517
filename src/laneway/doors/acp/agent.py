"""ACP's methods on one connection: from a request to whoever answers it.

Knows the protocol and no transport. Whatever goes wrong becomes one error here, at the border.
Prompts take their place in their session's queue before anything that was sent after them is
looked at; so a cancel, which comes by notification, waits one turn of the loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from laneway.base.errors import LanewayError, RemoteError, SessionUnknown
from laneway.base.log import bound, timed
from laneway.doors.acp import commands, listing, replay
from laneway.doors.acp.auth_methods import DEVICE_CODE
from laneway.doors.acp.client import Client, client_of
from laneway.doors.acp.faults import (
    CANCELLED,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    LoginNeeded,
    bad_params,
    fault,
    wire_error,
)
from laneway.doors.acp.house import House
from laneway.doors.acp.ids import thread_id
from laneway.doors.acp.lobby import Lobby
from laneway.doors.acp.room import Room
from laneway.doors.acp.signpost import Asker
from laneway.wire.messages import UNREADABLE, encode
from laneway.wire.peer import Peer, Raw

log = logging.getLogger(__name__)

PROTOCOL = 1
"""The stable version. A client that offers another is told this one, and decides."""

Params: TypeAlias = dict[str, Any]


class PeerLine:
    """`line.Line` on a peer."""

    def __init__(self, peer: Callable[[], Peer]) -> None:
        self._peer = peer
        self._heads: dict[str, bytes] = {}
        """How an update of a session begins: encoded once."""

    @property
    def is_behind(self) -> bool:
        return self._peer().is_behind

    def update(self, session_id: str, update: dict[str, Any] | msgspec.Raw) -> None:
        head = self._heads.get(session_id)
        if head is None:
            head = self._heads[session_id] = b'{"sessionId":' + encode(session_id) + b',"update":'
        body = bytes(update) if isinstance(update, msgspec.Raw) else encode(update)
        self._peer().notify("session/update", msgspec.Raw(head + body + b"}"), may_drop=False)

    def notify(self, method: str, params: Any) -> None:
        self._peer().notify(method, params, may_drop=False)

    async def call(self, method: str, params: Any) -> Any:
        return await self._peer().call(method, params)

    async def writable(self) -> None:
        await self._peer().wait_writable()


def cancel_notice(request_id: bytes) -> tuple[str, Any]:
    return "$/cancel_request", {"requestId": msgspec.Raw(request_id)}


class Agent:
    """One client. `on_request` and `on_notification` are its peer's."""

    def __init__(self, house: House, principal: str, peer: Callable[[], Peer]) -> None:
        self._house = house
        self._peer = peer
        self._line = PeerLine(peer)
        self._client: Client | None = None
        self._rooms: dict[str, Room] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._lobby = Lobby(house, principal, self._line, lambda: self._client or Client(), self._login_in)

    # ── the peer's side ────────────────────────────────────────────────────

    async def on_request(self, method: str, raw: Raw, request_id: bytes) -> Any:
        with bound(request=request_id.decode(errors="replace")):
            try:
                return await self._dispatch(method, raw, request_id)
            except LoginNeeded as needed:
                if needed.failure is not None and not await self._house.login.is_possible():
                    raise needed.failure from None  # the key of a provider of the user's own
                raise self._house.login.required(self._client or Client(), needed.why) from None
            except LanewayError as error:
                raise wire_error(error) from error

    async def _dispatch(self, method: str, raw: Raw, request_id: bytes) -> Any:
        params = _object(raw)
        wanted = params.get("sessionId")
        session = wanted if isinstance(wanted, str) else ""
        with bound(session=session, thread=thread_id(session)), timed(log, method):
            return await self._serve(method, params, request_id)

    async def _serve(self, method: str, params: Params, request_id: bytes) -> Any:
        if method == "initialize":
            return self._initialize(params)
        if self._client is None:
            raise fault(INVALID_REQUEST, "Say `initialize` first.")
        if method == "authenticate":
            return await self._authenticate(params, request_id)
        handler = _METHODS.get(method)
        if handler is None:
            raise fault(METHOD_NOT_FOUND, f"There is no method {method[:100]}.")
        return await handler(self, params)

    def on_notification(self, method: str, raw: Raw, frame: bytes) -> None:
        # Behind the requests that came before: they have begun by then.
        if method == "session/cancel":
            asyncio.get_running_loop().call_soon(self._cancel, _object(raw))
        elif method == "$/cancel_request" and raw:
            given = msgspec.json.decode(raw, type=_Cancel).requestId
            asyncio.get_running_loop().call_soon(self._cancel_request, bytes(given))
        else:
            log.debug("the client said %s", method[:100])

    def _cancel(self, params: Params) -> None:
        room = self._rooms.get(str(params.get("sessionId")))
        if room is not None:
            room.cancel()

    def _cancel_request(self, request_id: bytes) -> None:
        self._peer().cancel_theirs(request_id, RemoteError(CANCELLED, "The request was cancelled."))

    # ── the connection ─────────────────────────────────────────────────────

    def _initialize(self, params: Params) -> dict[str, Any]:
        if not isinstance(params.get("protocolVersion"), int):
            raise bad_params("initialize needs protocolVersion, a number.")
        self._client = client_of(params)
        log.info("client %s %s", self._client.name, self._client.version)
        session: dict[str, Any] = {
            "list": {},
            "delete": {},
            "additionalDirectories": {},
            "resume": {},
            "close": {},
        }
        if self._is_unstable:
            session["fork"] = {}
        return {
            "protocolVersion": PROTOCOL,
            "agentCapabilities": {
                "loadSession": True,
                "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
                "mcpCapabilities": {"http": True, "sse": False},
                "sessionCapabilities": session,
                "auth": {"logout": {}},
            },
            "authMethods": self._house.login.methods(self._client),
            "agentInfo": {"name": "laneway", "title": "Codex by Laneway", "version": self._house.version},
        }

    @property
    def _is_unstable(self) -> bool:
        return self._house.is_unstable or (self._client is not None and self._client.is_unstable)

    async def _authenticate(self, params: Params, request_id: bytes) -> dict[str, Any]:
        assert self._client is not None
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
        # Beside each other: Codex takes its time for a thread, and hardly anybody is not logged in.
        needed = asyncio.ensure_future(self._house.login.is_needed())
        try:
            room = await self._lobby.new(params)
        except BaseException:
            needed.cancel()
            raise
        if await needed:
            await room.close()
            raise LoginNeeded
        self._settle(room)
        return {"sessionId": room.session_id, **room.state()}

    async def _load(self, params: Params) -> dict[str, Any]:
        """The whole conversation is told before this is answered; prompts that come meanwhile wait."""
        room, is_new = await self._reopened(params)
        place = room.queue.join()
        try:
            if await place.reached():
                await replay.replay(self._house.engine, room.thread_id, room.client, self._line)
        finally:
            if is_new:
                self._introduce(room)
            room.queue.leave(place)
        return room.state()

    async def _resume(self, params: Params) -> dict[str, Any]:
        room, is_new = await self._reopened(params)
        if is_new:
            self._introduce_soon(room)
        return room.state()

    async def _fork(self, params: Params) -> dict[str, Any]:
        if not self._is_unstable:
            raise fault(METHOD_NOT_FOUND, "session/fork is not stable yet: see `laneway acp --unstable`.")
        await self._check_login()
        wanted = _session_id(params)
        room = await self._lobby.forked(wanted, params, self._rooms.get(wanted))
        self._settle(room)
        return {"sessionId": room.session_id, **room.state()}

    async def _reopened(self, params: Params) -> tuple[Room, bool]:
        """The room of a session: as it is, or opened; of several who ask at once, one opens it."""
        wanted = _session_id(params)
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
        room.narrator.open(room.thread_id, str(room.cwd), room)
        room.narrator.tell(commands.AVAILABLE)
        for note in room.notes:
            room.narrator.notice("warning", note)

    async def _list(self, params: Params) -> dict[str, Any]:
        return await listing.listed(self._house.engine, params)

    async def _close(self, params: Params) -> dict[str, Any]:
        room = self._room(params)
        del self._rooms[room.session_id]
        await room.close()
        return {}

    async def _delete(self, params: Params) -> dict[str, Any]:
        wanted = _session_id(params)
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
        wanted = _session_id(params)
        room = self._rooms.get(wanted)
        if room is None:
            raise SessionUnknown(wanted)
        return room

    # ── the end ────────────────────────────────────────────────────────────

    async def aclose(self) -> None:
        """The client is gone: nothing of it runs on."""
        rooms, self._rooms = list(self._rooms.values()), {}
        await asyncio.gather(*(room.close() for room in rooms))


class _Cancel(msgspec.Struct):
    requestId: msgspec.Raw


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


def _object(raw: Raw) -> Params:
    try:
        params = msgspec.json.decode(raw) if raw else {}
    except UNREADABLE as problem:
        raise bad_params(f"The params cannot be read: {problem}") from problem
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise bad_params("The params must be an object.")
    return params


def _session_id(params: Params) -> str:
    wanted = params.get("sessionId")
    if not isinstance(wanted, str):
        raise bad_params("sessionId must be a text.")
    return wanted
