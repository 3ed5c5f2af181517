"""Clients of the HTTP door: what each has asked, what it was asked, and where its messages go.

A client that shook hands has a session with an id that cannot be guessed and that only its own
token opens. Whatever belongs to a call goes to the response of that call; what comes later goes
to the stream that the client opened for it by GET, or nowhere, and that is counted. In the
stateless era a session is one request long, has no id, and ends with its connection.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from collections.abc import Callable
from typing import Any

import msgspec

from laneway.base.errors import RemoteError, WireBroken, WireClosed
from laneway.core.ports import Clock
from laneway.doors.mcp.eras import STRANGER, Client
from laneway.doors.mcp.http_streams import Reader, Stream
from laneway.doors.mcp.server import Connection, Interests, Server
from laneway.wire.messages import INTERNAL_ERROR, UNREADABLE, Envelope, Raw, encode, remote_error
from laneway.wire.service import Service

log = logging.getLogger(__name__)

MAX_SESSIONS = 256
"""Open at once. One more takes the place of the one that has been idle for longest."""
MAX_KEPT_STREAMS = 32
"""Ended streams of a session that can still be resumed."""
_HEAD = b'{"jsonrpc":"2.0",'
_ASIDE = "0"
"""The name of the stream that is opened by GET; calls count from one."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long the door waits for what."""

    ping_s: float = 15.0
    """Of silence before a comment is sent: well under the half minute that HTTP clients wait."""
    resume_s: float = 60.0
    """For a client to come back for a call whose connection it lost; then the call is cancelled."""
    idle_s: float = 1800.0
    """Without any request before a session ends: as long as Claude Code waits for a silent call."""
    body_s: float = 30.0
    """For a request's body to arrive."""


class Session:
    """One client. `session_id` is empty in the stateless era."""

    def __init__(self, server: Server, principal: str, session_id: str, clock: Clock, timing: Timing) -> None:
        self.principal = principal
        self.session_id = session_id
        self.client: Client = STRANGER
        self.dropped = 0
        """Notifications that had nowhere to go or nobody who read them."""
        self._server = server
        self._clock = clock
        self._timing = timing
        self._service = Service(self._serve, self._reply)
        self._calls: dict[bytes, Stream] = {}
        self._asked: dict[bytes, asyncio.Future[Raw]] = {}
        self._asked_aside: set[bytes] = set()
        """Of what the client was asked, that which belongs to no call."""
        self._ids = itertools.count(1)
        self._names = itertools.count(1)
        self._aside: Stream | None = None
        self._kept: dict[str, Stream] = {}
        self._giving_up: dict[Stream, Callable[[], None]] = {}
        self._is_closed = False
        self._interests = Interests()

    @property
    def is_busy(self) -> bool:
        return bool(self._calls)

    # ── what the client sends ──────────────────────────────────────────────

    def serve(self, requests: list[tuple[Envelope, int]]) -> Stream:
        """Serve requests, each given with its size in bytes; all answers go to the stream returned."""
        name = str(next(self._names)) if self.session_id else ""
        stream = Stream(name, answers=len(requests))
        for request, size in requests:
            assert request.method is not None
            request_id = bytes(request.id)
            self._calls[request_id] = stream
            self._service.serve(request.method, request.params, request_id, size=size, batch=None)
        return stream

    def is_in_use(self, request_id: bytes) -> bool:
        return request_id in self._calls

    def hear(self, message: Envelope) -> None:
        """A notification, or an answer to something that we asked."""
        if message.method is None:
            self._resolve(message)
        elif message.method == "notifications/cancelled" and message.params:
            try:
                cancelled = msgspec.json.decode(message.params, type=_Cancelled)
            except UNREADABLE:
                return
            self.cancel(bytes(cancelled.requestId))

    def cancel(self, request_id: bytes) -> None:
        stream = self._calls.pop(request_id, None)
        if stream is not None:
            self._service.cancel(request_id, None)
            stream.settle(None)

    def _resolve(self, message: Envelope) -> None:
        answer = self._asked.pop(bytes(message.id), None)
        if answer is None or answer.done():
            log.debug("an answer to nothing that was asked")
        elif message.error and bytes(message.error) != b"null":
            answer.set_exception(remote_error(message.error))
        else:
            answer.set_result(message.result or Raw(b"null"))

    async def _serve(self, method: str, params: Raw, request_id: bytes) -> Any:
        connection = Connection(self.principal, CallLine(self, self._calls[request_id]))
        connection.client = self.client
        connection.interests = self._interests
        answer = await self._server.serve(connection, method, params, request_id)
        if method == "initialize":
            self.client = connection.client
        return answer

    def _reply(self, request_id: bytes, body: bytes, batch: object) -> None:
        stream = self._calls.pop(request_id, None)
        if stream is not None:
            stream.settle(_HEAD + b'"id":' + request_id + b"," + body + b"}")

    # ── what the client is sent ────────────────────────────────────────────

    def tell(self, stream: Stream, method: str, params: Any) -> bool:
        """To the call's response while there is one, later to the stream opened by GET."""
        message = _HEAD + b'"method":' + encode(method) + _params(params) + b"}"
        if stream.tell(message):
            return True
        if stream.is_ended and self._aside is not None and self._aside.tell(message):
            return True
        self.dropped += 1
        return False

    async def ask(self, stream: Stream, method: str, params: Any) -> Any:
        """Ask the client, on the response of the call that it is about; later on the stream opened by GET.

        `WireBroken` if nobody reads that now: then nobody can be asked.
        """
        if not self.session_id:
            raise WireClosed("A client of the stateless era is asked by a result")
        is_aside = stream.is_ended
        target = self._aside if is_aside else stream
        if target is None or self._is_closed or (is_aside and not target.is_read):
            raise WireBroken("The client has no connection that it could be asked on")
        request_id = b"%d" % next(self._ids)
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = answer
        if is_aside:
            self._asked_aside.add(request_id)
        target.post(_HEAD + b'"id":' + request_id + b',"method":' + encode(method) + _params(params) + b"}")
        try:
            result = await answer
        except asyncio.CancelledError:
            if self._asked.pop(request_id, None) is not None:
                notice = {"requestId": Raw(request_id), "reason": "no longer needed"}
                target.post(_HEAD + b'"method":"notifications/cancelled"' + _params(notice) + b"}")
            raise
        finally:
            self._asked_aside.discard(request_id)
        try:
            return msgspec.json.decode(result)
        except UNREADABLE as problem:
            raise RemoteError(INTERNAL_ERROR, f"The answer to {method} cannot be read") from problem

    # ── connections that read ──────────────────────────────────────────────

    def aside(self) -> tuple[Stream, Reader] | None:
        """The stream for what belongs to no call; none if somebody reads it already."""
        if self._aside is None:
            self._aside = Stream(_ASIDE)
            self._kept[_ASIDE] = self._aside
        if self._aside.is_read:
            return None
        self._keep_waiting(self._aside)
        return self._aside, self._aside.attach()

    def resume(self, name: str, number: int) -> tuple[Stream, Reader] | None:
        """Go on with a stream after this event; none if it is not kept any more."""
        stream = self._kept.get(name)
        reader = stream.resume(number) if stream is not None else None
        if stream is None or reader is None:
            return None
        self._keep_waiting(stream)
        return stream, reader

    def _keep_waiting(self, stream: Stream) -> None:
        """Somebody came back for it."""
        stop = self._giving_up.pop(stream, None)
        if stop is not None:
            stop()

    def keep(self, stream: Stream) -> None:
        """The client knows event ids of this stream from now on: it may come back for the rest."""
        self._kept[stream.name] = stream
        ended = [name for name, kept in self._kept.items() if kept.is_ended]
        for name in ended[:-MAX_KEPT_STREAMS]:
            self._forget(self._kept[name])

    def let_go(self, stream: Stream, reader: Reader) -> None:
        """A connection ended. If the client does not come back for the rest, nobody waits for it."""
        stream.detach(reader)
        is_done = stream.is_ended and stream.name not in self._kept
        if is_done or stream.is_read or self._is_closed or stream in self._giving_up:
            return
        self._giving_up[stream] = self._clock.after(self._timing.resume_s, lambda: self._give_up(stream))

    def _give_up(self, stream: Stream) -> None:
        if stream is self._aside:
            self._giving_up.pop(stream, None)
            self._give_up_asking()
            return
        self._forget(stream)
        for request_id in [key for key, target in self._calls.items() if target is stream]:
            log.info("a call was cancelled: its client did not come back for it")
            self.cancel(request_id)

    def _give_up_asking(self) -> None:
        """Whoever was asked outside of a call has gone, and does not answer any more."""
        for request_id in self._asked_aside:
            answer = self._asked.pop(request_id, None)
            if answer is not None and not answer.done():
                answer.set_exception(WireBroken("The client did not come back for what it was asked"))

    def _forget(self, stream: Stream) -> None:
        self._kept.pop(stream.name, None)
        self._keep_waiting(stream)

    async def aclose(self) -> None:
        """Cancel what runs, answer it, and end all streams."""
        self._is_closed = True
        self._interests.lines.clear()
        for stop in self._giving_up.values():
            stop()
        self._giving_up.clear()
        try:
            await self._service.aclose()
        finally:
            for answer in self._asked.values():
                if not answer.done():
                    answer.set_exception(WireClosed("The session was closed"))
            self._asked.clear()
            for stream in (*self._kept.values(), *self._calls.values()):
                stream.end()
            self._kept.clear()


class CallLine:
    """The way back to whoever made one call."""

    def __init__(self, session: Session, stream: Stream) -> None:
        self._session = session
        self._stream = stream

    def notify(self, method: str, params: Any) -> bool:
        return self._session.tell(self._stream, method, params)

    async def call(self, method: str, params: Any) -> Any:
        return await self._session.ask(self._stream, method, params)


class _Cancelled(msgspec.Struct):
    requestId: Raw = Raw()


def _params(params: Any) -> bytes:
    return b"" if params is None else b',"params":' + encode(params)


# ── all of them ────────────────────────────────────────────────────────────


class Sessions:
    """The sessions that are open, until their client ends them or is not heard of for long."""

    def __init__(self, server: Server, clock: Clock, timing: Timing) -> None:
        self._server = server
        self._clock = clock
        self._timing = timing
        self._open: dict[str, Session] = {}
        self._visits: dict[str, int] = {}
        self._expiry: dict[str, Callable[[], None]] = {}
        """In the order in which they fell idle."""
        self._ending: set[asyncio.Task[None]] = set()

    def stateless(self, principal: str) -> Session:
        return Session(self._server, principal, "", self._clock, self._timing)

    def open(self, principal: str) -> Session | None:
        """A new session, or none if there are too many and all of them are in use."""
        if len(self._open) >= MAX_SESSIONS:
            longest = next(iter(self._expiry), None)
            if longest is None:
                return None
            self.end(self._open[longest])
        session = Session(self._server, principal, secrets.token_urlsafe(32), self._clock, self._timing)
        self._open[session.session_id] = session
        self._visits[session.session_id] = 0
        return session

    def find(self, session_id: str, principal: str) -> Session | None:
        """The session, if it is this principal's: nobody is told of another's."""
        session = self._open.get(session_id)
        return session if session is not None and session.principal == principal else None

    def enter(self, session: Session) -> None:
        """A request of this session has come: it is not idle while it lasts."""
        key = session.session_id
        if key in self._open:
            self._visits[key] += 1
            stop = self._expiry.pop(key, None)
            if stop is not None:
                stop()

    def leave(self, session: Session) -> None:
        key = session.session_id
        if key not in self._open:
            return
        self._visits[key] -= 1
        if self._visits[key] == 0:
            self._expiry[key] = self._clock.after(self._timing.idle_s, lambda: self._expire(session))

    def _expire(self, session: Session) -> None:
        log.info("a session of the HTTP door was idle for long and has ended")
        self.end(session)

    def end(self, session: Session) -> asyncio.Task[None]:
        """From now on nobody finds it; what it still does is stopped."""
        key = session.session_id
        self._open.pop(key, None)
        self._visits.pop(key, None)
        stop = self._expiry.pop(key, None)
        if stop is not None:
            stop()
        task = asyncio.get_running_loop().create_task(session.aclose())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    @property
    def count(self) -> int:
        return len(self._open)

    async def aclose(self) -> None:
        for session in list(self._open.values()):
            self.end(session)
        await asyncio.gather(*self._ending)
