"""A machine at the other end of a command's standard streams, such as `ssh gpu1 laneway jobs node`.

The command runs under a guardian. After a cut the next call starts it anew, with longer and longer pauses
while that fails. A call that was under way is made again, unless it is one of `ONCE`. What the other side
sends is foreign: too long, no message, no answer, or silence end the connection, and are a `NodeUnreachable`.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from laneway.base.errors import NodeUnreachable, RemoteError, UsageError, WireError
from laneway.base.last_words import last_words
from laneway.base.plain import label
from laneway.core.background import TaskSet
from laneway.jobs.nodes.backoff import Backoff
from laneway.jobs.nodes.messages import NODE_ERROR, PROTOCOL, Hello, error_of
from laneway.jobs.nodes.port import CALL_S, ONCE
from laneway.wire import guardian
from laneway.wire.child import Child, Exit
from laneway.wire.frames import MAX_FRAME_BYTES
from laneway.wire.messages import CLOSING, METHOD_NOT_FOUND, UNREADABLE
from laneway.wire.peer import Peer, Raw

log = logging.getLogger(__name__)

CONNECT_S = 20.0
"""For the command to start, log in and greet us."""
PATIENCE_S = 2.0
"""A pause before the next attempt is waited for up to here; a longer one fails the call at once."""
TRIES = 4
"""Connections that one call may use up."""
MAX_BANNER_BYTES = 64 * 1024
"""Of what a login shell may say before the greeting: it is skipped."""
WHY_CHARS = 300


class PipeNode:
    """One machine behind a command. Safe for many calls at once; they share one connection."""

    def __init__(
        self,
        name: str,
        command: str,
        environment: Mapping[str, str],
        *,
        connect_s: float = CONNECT_S,
        max_bytes: int = MAX_FRAME_BYTES,
        backoff: Backoff | None = None,
    ) -> None:
        """`UsageError` for a command that cannot be read."""
        self._name = name
        self._argv = _words(name, command)
        self._environment = environment
        self._connect_s = connect_s
        self._max_bytes = max_bytes
        self._backoff = backoff or Backoff()
        self._ending = TaskSet()
        self._connecting: asyncio.Task[_Line] | None = None
        self._line: _Line | None = None
        self._last_why = ""
        self.connections = 0
        """How many there have been."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def pid(self) -> int | None:
        """Of the command, while it runs."""
        return self._line.pid if self._line is not None and self._line.is_open else None

    async def call(self, method: str, params: Mapping[str, Any], *, timeout_s: float | None = None) -> Any:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (CALL_S if timeout_s is None else timeout_s)
        for number in range(TRIES):
            line = await self._connected(deadline)
            try:
                answer = await line.call(method, params, deadline)
            except _Cut as cut:
                self._note_end(line, cut)
                if method in ONCE:
                    raise self._unreachable(f"{cut}; nobody knows whether it was carried out") from cut
                if number == TRIES - 1 or loop.time() >= deadline:
                    raise self._unreachable(str(cut)) from cut
            else:
                return answer
            finally:
                if line.has_served:
                    self._backoff.succeeded()
        raise AssertionError("the last try returns or raises")

    def _note_end(self, line: _Line, cut: _Cut) -> None:
        """One that has never served is a failure: the next attempt waits."""
        if self._line is line and not line.is_open:
            self._line = None
            self._leave(line)
            if not line.has_served:
                self._failed(str(cut))

    def _leave(self, line: _Line) -> None:
        """Of no use any more: see that its command ends, while others may be started already."""
        self._ending.spawn(line.close(), f"end a connection to {self._name}")

    async def close(self) -> None:
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait((self._connecting,))
        line, self._line = self._line, None
        if line is not None:
            self._leave(line)
        await self._ending.wait()

    # ── connecting ─────────────────────────────────────────────────────────

    async def _connected(self, deadline: float) -> _Line:
        loop = asyncio.get_running_loop()
        if self._line is not None and self._line.is_open:
            return self._line
        if self._connecting is None or self._connecting.done():
            pause_s = self._backoff.left_s(loop.time())
            if pause_s > min(PATIENCE_S, deadline - loop.time()):
                raise self._unreachable(self._last_why)
            self._connecting = loop.create_task(self._connect(pause_s), name=f"connect to {self._name}")
            self._connecting.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            async with asyncio.timeout_at(deadline):
                # All calls wait for the same connection: whoever gives up does not end it for the others.
                return await asyncio.shield(self._connecting)
        except TimeoutError as problem:
            raise self._unreachable("it is still being connected to") from problem
        except _Cut as cut:
            raise self._unreachable(str(cut)) from cut

    async def _connect(self, pause_s: float) -> _Line:
        await asyncio.sleep(pause_s)
        self.connections += 1
        line = _Line(self._name, self._max_bytes)
        try:
            await line.open(self._argv, self._environment)
            await line.greet(asyncio.get_running_loop().time() + self._connect_s)
        except _Cut as cut:
            self._leave(line)
            self._failed(str(cut))
            raise
        except BaseException:
            self._leave(line)  # we are being closed
            raise
        self._line = line
        return line

    def _failed(self, why: str) -> None:
        self._last_why = why
        self._backoff.failed(asyncio.get_running_loop().time())

    def _unreachable(self, why: str) -> NodeUnreachable:
        return NodeUnreachable(self._name, label(why, WHY_CHARS))


class _Cut(Exception):
    """The connection is of no use any more; the text says why."""


class _Line:
    """One run of the command."""

    def __init__(self, node: str, max_bytes: int) -> None:
        self._node = node
        self.child: Child | None = None
        self.has_served = False
        """Whether it has answered more than the greeting."""
        self._why = ""
        self._heard = 0
        self._banner_bytes = 0
        self._has_greeted = False
        self._peer = Peer(
            self._write,
            on_request=_refuse,
            on_notification=_ignore,
            on_garbage=self._on_garbage,
            max_bytes=max_bytes,
            with_batches=False,
        )

    @property
    def pid(self) -> int | None:
        return self.child.pid if self.child is not None else None

    @property
    def is_open(self) -> bool:
        return not self._why

    async def open(self, argv: list[str], environment: Mapping[str, str]) -> None:
        try:
            self.child = await Child.spawn(
                argv, on_stdout=self._hear, on_end=self._on_end, env=environment, kind=guardian.PIPE
            )
        except OSError as problem:
            self._why = f"{argv[0]} cannot be started ({problem.strerror or problem})"
            raise _Cut(self._why) from problem

    async def greet(self, deadline: float) -> None:
        answer = await self.call("hello", {}, deadline)
        self.has_served = False
        self._has_greeted = True
        try:
            hello = msgspec.convert(answer, Hello)
        except msgspec.ValidationError as problem:
            raise self._cut("it did not greet as Laneway does") from problem
        if hello.protocol != PROTOCOL:
            raise self._cut(f"it has Laneway {hello.version}, with which this one cannot speak: update one")

    async def call(self, method: str, params: Mapping[str, Any], deadline: float) -> Any:
        """`_Cut` if the connection broke, or breaks now; else what the other side answers or raises."""
        self._check_open()
        heard = self._heard
        loop = asyncio.get_running_loop()
        waited_s = deadline - loop.time()
        try:
            async with asyncio.timeout_at(deadline):
                raw = await self._peer.call(method, params, reply=Raw)
        except TimeoutError as problem:
            why = f"no answer to {method} in {max(1, round(waited_s))} s"
            if self._heard == heard:
                raise self._cut(why) from problem
            raise _Cut(why) from problem  # it lives: others may go on with it
        except RemoteError as error:
            self.has_served = self._has_greeted
            if error.code == CLOSING:
                raise self._cut("it is about to end") from error
            if not self._has_greeted:
                raise self._cut(f"it did not greet us ({error.message})") from error
            raise error_of(error.data if error.code == NODE_ERROR else None, self._node) from error
        except WireError as problem:
            self._check_open()
            raise self._cut(str(problem)) from problem
        self.has_served = self._has_greeted
        try:
            return msgspec.json.decode(raw)
        except UNREADABLE as problem:
            raise self._cut("it sent an answer that cannot be read") from problem

    def _check_open(self) -> None:
        if self._why:
            raise _Cut(self._why)

    async def close(self) -> None:
        """End the command: by the end of its input, else by a signal."""
        self._why = self._why or "it was closed"
        await self._peer.aclose()
        if self.child is not None:
            await self.child.stop()

    def _cut(self, why: str) -> _Cut:
        """End the connection, and with it every call that waits."""
        if not self._why:
            self._why = why
            self._peer.feed_eof()
            if self.child is not None:
                self.child.kill()
        return _Cut(self._why)

    # ── the streams ────────────────────────────────────────────────────────

    def _write(self, data: bytes) -> None:
        assert self.child is not None
        self.child.write(data)

    def _hear(self, data: bytes) -> None:
        self._heard += 1
        if not self._why:
            self._peer.feed(data)

    def _on_end(self, end: Exit) -> None:
        if not self._why:
            words = last_words(self.child.stderr_tail) if self.child is not None else ""
            self._why = f"its command ended ({end})" + (f": {words}" if words else "")
            self._peer.feed_eof()

    def _on_garbage(self, frame: bytes, problem: str) -> None:
        self._banner_bytes += len(frame)
        if self._why:
            return
        if self._has_greeted or not frame or self._banner_bytes > MAX_BANNER_BYTES:
            log.warning("a node sent what is no message: %s", problem)
            self._cut(f"it sent what is no message of Laneway's: {problem}")


async def _refuse(method: str, params: Raw, request_id: bytes) -> Any:
    raise RemoteError(METHOD_NOT_FOUND, "A node is asked; it asks nothing")


def _ignore(method: str, params: Raw, frame: bytes) -> None:
    """Nothing that a node could tell without being asked is of use."""


def _words(name: str, command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise UsageError(f"jobs.nodes.{name}.command cannot be read as a command line.") from problem
    if not words:
        raise UsageError(f"jobs.nodes.{name} has no command: `laneway config set jobs.nodes.{name}.command`.")
    return words
