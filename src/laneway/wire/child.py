"""A supervised child process: its streams are ours, its whole tree is the guardian's.

Owns one guardian process and through it one child with all its descendants. Reads
never block the loop; standard error is kept as a bounded tail; the end is always told,
as an exit code or a signal name.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from laneway.wire import guardian
from laneway.wire.launch import Launched, launch
from laneway.wire.pipes import PipeReader

log = logging.getLogger(__name__)

STDERR_TAIL_BYTES = 64 * 1024
"""What is kept of standard error: enough for the last words, little enough for 500 children."""
PIPE_BYTES = 1024 * 1024
"""Asked of the kernel for the child's standard output, so that it can run ahead of our reader."""
TERM_S = 2.0
"""From SIGTERM to SIGKILL when we stop a child ourselves."""
DRAIN_S = 1.0
"""A stream may stand still this long once every writer we know is gone."""
DRAIN_TRIES = 10
"""How often a stream that still moves is given `DRAIN_S` more: our reader may be slow, not for ever."""
END_S = 5.0
"""From SIGKILL to giving up on hearing of it; the guardian goes on without us."""


class Exit(msgspec.Struct, frozen=True):
    """How a process ended: one of the two is set; neither when nobody could see it."""

    code: int | None = None
    signal: str | None = None

    def __str__(self) -> str:
        if self.signal:
            return f"killed by {self.signal}"
        return "it vanished" if self.code is None else f"exit code {self.code}"


class Child:
    """`child = await Child.spawn(argv, on_stdout=…)`, later `await child.stop()`."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        control: int,
        program: str,
        on_end: Callable[[Exit], None] | None,
    ) -> None:
        self._process = process
        self._control: int | None = control
        self._program = program
        self._on_end = on_end
        self._tail = bytearray()
        self._started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self._swept = asyncio.Event()
        self._stdin: asyncio.WriteTransport | None = None
        self._ender: asyncio.Task[None] | None = None
        self._outcome = Exit()
        self.pid = 0

    @classmethod
    async def spawn(
        cls,
        argv: Sequence[str],
        *,
        on_stdout: Callable[[bytes], None],
        on_end: Callable[[Exit], None] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        first: bytes = b"",
        is_agent: bool = True,
    ) -> Child:
        """Start `argv`; raise `OSError` as `exec` would. `on_end` comes after the last byte.

        Whoever gets an exception gets no `on_end`, and nothing is left running. `is_agent`: as of `launch`.
        """
        launched = launch(argv, env=env, cwd=cwd, first=first, is_agent=is_agent)
        return await cls.adopt(launched, on_stdout=on_stdout, on_end=on_end)

    @classmethod
    async def adopt(
        cls,
        launched: Launched,
        *,
        on_stdout: Callable[[bytes], None],
        on_end: Callable[[Exit], None] | None = None,
    ) -> Child:
        """Take over what `launch` started; raise as `spawn` does."""
        child = cls(launched.process, launched.control, launched.program, on_end)
        # Not to be cut in half: every stream gets its transport, which closes it.
        connecting = asyncio.ensure_future(child._connect(launched.status, on_stdout))
        try:
            await asyncio.shield(connecting)
            await child._started
        except BaseException:
            await child._abandon(connecting)
            raise
        return child

    async def _connect(self, status: int, on_stdout: Callable[[bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        process = self._process
        assert process.stdin
        assert process.stdout
        assert process.stderr
        _widen(process.stdout.fileno())
        words, errors, output = _Reader(self._on_status), _Reader(self._keep_tail), _Reader(on_stdout)
        words.on_end = self._on_status_end
        PipeReader(words, os.fdopen(status, "rb"))
        self._stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, process.stdin)
        PipeReader(errors, process.stderr)
        PipeReader(output, process.stdout)
        self._ender = loop.create_task(self._tell_end(output, errors))

    async def _abandon(self, connecting: asyncio.Future[None]) -> None:
        self._on_end = None
        self._started.cancel()
        self._let_go()
        try:
            async with asyncio.timeout(END_S):
                await connecting
                self._let_go()
                await self.wait()
        except TimeoutError:
            pass  # the guardian goes on without us

    async def _tell_end(self, *streams: _Reader) -> None:
        # Death is told after the last byte, so that nothing the child still said is lost. A
        # grandchild may hold a pipe open until the tree is swept; afterwards only a stranger can.
        await self._swept.wait()
        if not all(await asyncio.gather(*(stream.wait_drained() for stream in streams))):
            log.warning("somebody outside the tree of %s holds its streams", self._program)
        await asyncio.to_thread(self._process.wait)
        self._ended.set_result(self._outcome)
        if self._on_end is not None:
            self._on_end(self._outcome)

    def write(self, data: bytes) -> None:
        """Queue bytes for standard input; silently nothing once the child is gone."""
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(data)

    @property
    def backlog_bytes(self) -> int:
        return self._stdin.get_write_buffer_size() if self._stdin is not None else 0

    @property
    def stderr_tail(self) -> str:
        return self._tail[-STDERR_TAIL_BYTES:].decode("utf-8", "replace")

    async def wait(self) -> Exit:
        """Until the child and its whole tree are gone."""
        return await asyncio.shield(self._ended)

    async def stop(self, own_end_s: float = 1.0) -> Exit:
        """Close standard input, wait, SIGTERM, wait, SIGKILL: always ends, always tells how."""
        if self._stdin is not None:
            self._stdin.close()
        try:
            for seconds, order in ((own_end_s, b"T"), (TERM_S, b"K"), (END_S, None)):
                try:
                    async with asyncio.timeout(seconds):
                        return await self.wait()
                except TimeoutError:
                    if order is not None:
                        self._order(order)
        except asyncio.CancelledError:
            self.kill()  # nobody is left to climb the ladder
            raise
        return Exit()

    def kill(self) -> None:
        """End the whole tree now."""
        self._order(b"K")

    def _order(self, order: bytes) -> None:
        if self._control is not None:
            try:
                os.write(self._control, order)
            except OSError:
                pass  # the guardian is gone; `_on_status_end` sees to the child

    def _on_status(self, data: bytes) -> None:
        for line in data.splitlines():
            word, _, number = line.partition(b" ")
            match word:
                case b"pid":
                    # Known at once, not when `spawn` resumes: if the guardian is shot, it is ours to end.
                    self.pid = int(number)
                    if not self._started.done():
                        self._started.set_result(self.pid)
                case b"failed":
                    code = int(number) or errno.EIO
                    self._refuse(OSError(code, os.strerror(code), self._program))
                case b"exit":
                    self._outcome = Exit(code=int(number))
                case b"signal":
                    self._outcome = Exit(signal=_signal_name(int(number)))

    def _on_status_end(self) -> None:
        self._refuse(OSError(errno.ECHILD, "the guardian ended before the child began", self._program))
        if self.pid and self._outcome == Exit():
            # Somebody shot the guardian. The child is then an orphan that only we still know.
            guardian.kill_tree(self.pid, root_too=True)
        self._let_go()
        self._swept.set()

    def _refuse(self, problem: OSError) -> None:
        if not self._started.done():
            self._on_end = None
            self._started.set_exception(problem)

    def _let_go(self) -> None:
        if self._control is not None:
            os.close(self._control)
            self._control = None
        if self._stdin is not None:
            self._stdin.close()

    def _keep_tail(self, data: bytes) -> None:
        self._tail += data
        if len(self._tail) > 2 * STDERR_TAIL_BYTES:
            del self._tail[:-STDERR_TAIL_BYTES]


class _Reader(asyncio.Protocol):
    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self._on_data = on_data
        self._chunks = 0
        self._ended = asyncio.Event()
        self._transport: asyncio.BaseTransport | None = None
        self.on_end: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._chunks += 1
        self._on_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._ended.set()
        if self.on_end is not None:
            self.on_end()

    async def wait_drained(self) -> bool:
        """Until the end, or until nothing moves; nothing is read afterwards. Whether it was the end."""
        for _ in range(DRAIN_TRIES):
            before = self._chunks
            try:
                async with asyncio.timeout(DRAIN_S):
                    await self._ended.wait()
                return True
            except TimeoutError:
                if self._chunks == before:
                    break
        if self._transport is not None:
            self._transport.close()
        return False


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _widen(fd: int) -> None:
    if sys.platform == "linux":
        import fcntl

        try:
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # the user's pipe quota is used up; the default size works too
