"""The gateway of the fake Discord: HELLO, IDENTIFY, heartbeats, numbered dispatches, RESUME after a cut.

A connection that breaks the protocol is closed with Discord's own close code.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import WSMsgType, web

from laneway.testing.fake_discord.world import DiscordWorld, Json

GUILDS, GUILD_MESSAGES, DM_MESSAGES, MESSAGE_CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15
PRIVILEGED = MESSAGE_CONTENT | 1 << 1 | 1 << 8
CONTENT_FLAG = 1 << 19
"""Of the application: message contents are allowed (for bots in few servers)."""
KEPT_EVENTS = 1000
"""For a session that comes back."""
HEARTBEAT_MS = 41_250


class GatewaySession(msgspec.Struct, kw_only=True):
    session_id: str
    intents: int
    seq: int = 0
    sent: list[Json] = []
    """Dispatches that a RESUME can ask for."""


class GatewayConnection:
    def __init__(self, socket: web.WebSocketResponse, *, compressed: bool) -> None:
        self.socket = socket
        self.session: GatewaySession | None = None
        self.heartbeats = 0
        self._deflate = zlib.compressobj() if compressed else None

    async def send(self, data: Json) -> None:
        text = json.dumps(data)
        if self._deflate is None:
            await self.socket.send_str(text)
            return
        raw = self._deflate.compress(text.encode()) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        await self.socket.send_bytes(raw)


class DiscordGateway:
    """All sessions of the bot. `content_allowed`: whether its privileged intent is switched on."""

    def __init__(self, world: DiscordWorld, token: str, base_url: str, *, content_allowed: bool) -> None:
        self._world = world
        self._token = token
        self._base_url = base_url
        self.content_allowed = content_allowed
        self.connections: list[GatewayConnection] = []
        self.sessions: dict[str, GatewaySession] = {}
        self.identified = 0
        self.resumed = 0
        self.closed_with: list[int] = []
        """Close codes that we have sent because the protocol was broken."""
        self.on_change: Callable[[], None] = lambda: None
        self.refuses = False
        """Whether connections are refused."""

    @property
    def url(self) -> str:
        return self._base_url.replace("http", "ws", 1) + "/gateway"

    @property
    def is_ready(self) -> bool:
        return any(connection.session is not None for connection in self.connections)

    @property
    def intents(self) -> int:
        return max((session.intents for session in self.sessions.values()), default=0)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if self.refuses:
            return web.Response(status=503)
        if request.query.get("v") != "10" or request.query.get("encoding") != "json":
            return web.Response(status=400)
        if request.query.get("compress", "zlib-stream") != "zlib-stream":
            return web.Response(status=400)
        socket = web.WebSocketResponse(max_msg_size=4096)
        await socket.prepare(request)
        connection = GatewayConnection(socket, compressed="compress" in request.query)
        self.connections.append(connection)
        try:
            await connection.send(_op(10, {"heartbeat_interval": HEARTBEAT_MS, "_trace": []}))
            async for message in socket:
                if message.type is not WSMsgType.TEXT:
                    await self._close(connection, 4002)
                    break
                await self._take(connection, message.data)
        finally:
            self.connections.remove(connection)
        return socket

    async def _take(self, connection: GatewayConnection, text: str) -> None:
        try:
            frame = json.loads(text)
            op, data = frame["op"], frame.get("d")
        except (ValueError, KeyError, TypeError):
            await self._close(connection, 4002)
            return
        if op == 1:
            connection.heartbeats += 1
            await connection.send(_op(11, None))
        elif op == 2:
            await self._identify(connection, data)
        elif op == 6:
            await self._resume(connection, data)
        elif op in (3, 4, 8):
            if connection.session is None:
                await self._close(connection, 4003)
        else:
            await self._close(connection, 4001)

    async def _identify(self, connection: GatewayConnection, data: Json) -> None:
        if connection.session is not None:
            await self._close(connection, 4005)
            return
        if data.get("token") != self._token:
            await self._close(connection, 4004)
            return
        intents = data.get("intents")
        if not isinstance(intents, int):
            await self._close(connection, 4013)
            return
        if intents & PRIVILEGED & ~(MESSAGE_CONTENT if self.content_allowed else 0):
            await self._close(connection, 4014)
            return
        session = GatewaySession(session_id=f"session-{self._world.new_id()}", intents=intents)
        self.sessions[session.session_id] = session
        connection.session = session
        self.identified += 1
        self.on_change()
        await self._dispatch_to(
            session,
            "READY",
            {
                "v": 10,
                "user": {**self._world.bot.to_json(), "verified": True, "mfa_enabled": False},
                "guilds": [{"id": self._world.guild_id, "unavailable": True}],
                "session_id": session.session_id,
                "resume_gateway_url": self.url,
                "application": {"id": self._world.application_id, "flags": CONTENT_FLAG},
            },
        )
        if intents & GUILDS:
            await self._dispatch_to(session, "GUILD_CREATE", self._world.guild_json())

    async def _resume(self, connection: GatewayConnection, data: Json) -> None:
        session = self.sessions.get(str(data.get("session_id")))
        if data.get("token") != self._token:
            await self._close(connection, 4004)
            return
        if session is None:
            await connection.send(_op(9, False))
            return
        if not isinstance(data.get("seq"), int) or data["seq"] > session.seq:
            await self._close(connection, 4007)
            return
        connection.session = session
        self.resumed += 1
        self.on_change()
        for event in [event for event in session.sent if event["s"] > data["seq"]]:
            await connection.send(event)
        await self._dispatch_to(session, "RESUMED", {"_trace": []})

    async def _close(self, connection: GatewayConnection, code: int) -> None:
        self.closed_with.append(code)
        connection.session = None
        await connection.socket.close(code=code)

    # ── what happens ───────────────────────────────────────────────────────

    async def dispatch(self, event: str, data: Any, *, needs: int = 0) -> None:
        """Tell every session that has declared the intent."""
        for session in list(self.sessions.values()):
            if session.intents & needs == needs:
                await self._dispatch_to(session, event, data)

    async def dispatch_message(self, event: str, message: Any, channel: Any) -> None:
        """Tell of a message; without the privileged intent, without its words."""
        is_dm = channel.type == 1
        for session in list(self.sessions.values()):
            if not session.intents & (DM_MESSAGES if is_dm else GUILD_MESSAGES):
                continue
            shows = bool(session.intents & MESSAGE_CONTENT)
            data = self._world.message_json(message, base_url=self._base_url, shows_words=shows)
            if not is_dm:
                member = self._world.member_json(message.author)
                del member["user"]
                data |= {"guild_id": self._world.guild_id, "member": member}
            data["channel_type"] = channel.type
            await self._dispatch_to(session, event, data)

    async def _dispatch_to(self, session: GatewaySession, event: str, data: Any) -> None:
        session.seq += 1
        frame = {"op": 0, "t": event, "s": session.seq, "d": data}
        session.sent = [*session.sent[-KEPT_EVENTS:], frame]
        for connection in list(self.connections):
            if connection.session is session and not connection.socket.closed:
                try:
                    await connection.send(frame)
                except ConnectionError:  # cut meanwhile; a RESUME asks for it
                    continue

    # ── faults ─────────────────────────────────────────────────────────────

    async def cut(self) -> None:
        """Every connection ends without a word; sessions can be resumed."""
        for connection in list(self.connections):
            connection.session = None
            transport = connection.socket._req.transport if connection.socket._req is not None else None
            if transport is not None:
                transport.abort()

    async def ask_reconnect(self) -> None:
        for connection in list(self.connections):
            await connection.send(_op(7, None))

    def forget_sessions(self) -> None:
        """A RESUME will be refused."""
        self.sessions.clear()


def _op(op: int, data: Any) -> Json:
    return {"op": op, "d": data, "s": None, "t": None}
