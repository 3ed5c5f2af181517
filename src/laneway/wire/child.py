"""A supervised child process: we read and write its streams, a guardian process ends its whole tree.

Owns one guardian and through it one child with all its descendants. Reads never block the loop;
standard error is kept as a bounded tail; the end is always reported, as an exit code or a signal name.
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
"""Kept of standard error: enough for the last messages, little enough for 500 children."""
PIPE_BYTES = 1024 * 1024
"""Requested pipe size of the child's standard output, so that it can run ahead of our reader."""
TERM_S = 2.0
"""From SIGTERM to SIGKILL when we stop a child ourselves."""
DRAIN_S = 1.0
"""A stream may be silent this long once every writer that we know is gone."""
DRAIN_TRIES = 10
"""How often a stream that still has data gets `DRAIN_S` more: our reader may be slow, but not for ever."""
END_S = 5.0
"""To wait for the report of a SIGKILL; after that the guardian goes on without us."""


class Exit(msgspec.Struct, frozen=True):
    """How a process ended: one of the two is set; neither if that is not known."""

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
        kind: str,
    ) -> None:
        self._kind = kind
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
        kind: str = guardian.AGENT,
        held: Sequence[int] = (),
    ) -> Child:
        """Start `argv`; raise `OSError` as `exec` would. `on_end` is called after the last byte.

        If this raises, `on_end` is not called and nothing is left running. `kind`, `held`: as for `launch`.
        """
        launched = launch(argv, env=env, cwd=cwd, first=first, kind=kind, held=held)
        return await cls.adopt(launched, on_stdout=on_stdout, on_end=on_end)

    @classmethod
    async def adopt(
        cls,
        launched: Launched,
        *,
        on_stdout: Callable[[bytes], None],
        on_end: Callable[[Exit], None] | None = None,
    ) -> Child:
        """Take over a process that `launch` started; raise as `spawn` does."""
        child = cls(launched.process, launched.control, launched.program, on_end, launched.kind)
        # Shielded from cancellation: every stream must get its transport, which closes it.
        connect_task = asyncio.ensure_future(child._connect(launched.status, on_stdout))
        try:
            await asyncio.shield(connect_task)
            await child._started
        except BaseException:
            await child._abandon(connect_task)
            raise
        return child

    async def _connect(self, status: int, on_stdout: Callable[[bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        process = self._process
        assert process.stdin
        assert process.stdout
        assert process.stderr
        _widen(process.stdout.fileno())
        status_reader, stderr_reader, stdout_reader = (
            _Reader(self._on_status),
            _Reader(self._keep_tail),
            _Reader(on_stdout),
        )
        status_reader.on_end = self._on_status_end
        PipeReader(status_reader, os.fdopen(status, "rb"))
        self._stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, process.stdin)
        PipeReader(stderr_reader, process.stderr)
        PipeReader(stdout_reader, process.stdout)
        self._ender = loop.create_task(self._report_end(stdout_reader, stderr_reader))

    async def _abandon(self, connect_task: asyncio.Future[None]) -> None:
        self._on_end = None
        self._started.cancel()
        self._close_pipes()
        try:
            async with asyncio.timeout(END_S):
                await connect_task
                self._close_pipes()
                await self.wait()
        except TimeoutError:
            pass  # the guardian goes on without us

    async def _report_end(self, *streams: _Reader) -> None:
        # The end is reported after the last byte, so that no output is lost. A grandchild may hold a
        # pipe open until the whole tree is gone; after that only a process outside the tree can.
        await self._swept.wait()
        if not all(await asyncio.gather(*(stream.wait_drained() for stream in streams))):
            log.warning("somebody outside the tree of %s holds its streams", self._program)
        await asyncio.to_thread(self._process.wait)
        self._ended.set_result(self._outcome)
        if self._on_end is not None:
            self._on_end(self._outcome)

    def write(self, data: bytes) -> None:
        """Queue bytes for standard input; does nothing once the child is gone."""
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(data)

    @property
    def backlog_bytes(self) -> int:
        return self._stdin.get_write_buffer_size() if self._stdin is not None else 0

    @property
    def stderr_tail(self) -> str:
        return self._tail[-STDERR_TAIL_BYTES:].decode("utf-8", "replace")

    async def wait(self) -> Exit:
        """Wait until the child and its whole tree are gone."""
        return await asyncio.shield(self._ended)

    def end_input(self) -> None:
        """Close standard input behind everything that was written."""
        if self._stdin is not None:
            self._stdin.close()

    def interrupt(self) -> None:
        """SIGINT to the child alone, not to its tree."""
        self._command(b"I")

    def ask_to_end(self, *, may_kill: bool) -> None:
        """SIGTERM to the whole tree. Without `may_kill` nothing is killed until `kill` is called."""
        self._command(b"T" if may_kill else b"S")

    async def stop(self, own_end_s: float = 1.0) -> Exit:
        """Close standard input, wait, SIGTERM, wait, SIGKILL. Always returns how the child ended."""
        if self._stdin is not None:
            self._stdin.close()
        try:
            for seconds, command in ((own_end_s, b"T"), (TERM_S, b"K"), (END_S, None)):
                try:
                    async with asyncio.timeout(seconds):
                        return await self.wait()
                except TimeoutError:
                    if command is not None:
                        self._command(command)
        except asyncio.CancelledError:
            self.kill()  # nobody is left to wait for the next step
            raise
        return Exit()

    def kill(self) -> None:
        """End the whole tree now."""
        self._command(b"K")

    def _command(self, command: bytes) -> None:
        if self._control is not None:
            try:
                os.write(self._control, command)
            except OSError:
                pass  # the guardian is gone; `_on_status_end` ends the child

    def _on_status(self, data: bytes) -> None:
        for line in data.splitlines():
            word, _, number = line.partition(b" ")
            match word:
                case b"pid":
                    # Set at once, not when `spawn` resumes: if the guardian is killed, we end the child.
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
            # Somebody killed the guardian. The child is an orphan then, and only we know it.
            if self._kind == guardian.PIPE:
                guardian.signal_all(guardian.members(self.pid), signal.SIGKILL)
            else:
                spares_jobs = self._kind != guardian.WORKER
                guardian.kill_tree(self.pid, root_too=True, spares_jobs=spares_jobs)
        self._close_pipes()
        self._swept.set()

    def _refuse(self, problem: OSError) -> None:
        if not self._started.done():
            self._on_end = None
            self._started.set_exception(problem)

    def _close_pipes(self) -> None:
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
        """Read until the end of the stream, or until it is silent. Returns whether it was the end."""
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
