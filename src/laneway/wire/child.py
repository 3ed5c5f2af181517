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
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from laneway.wire import guardian

log = logging.getLogger(__name__)

STDERR_TAIL_BYTES = 64 * 1024
"""What is kept of standard error: enough for the last words, little enough for 500 children."""
PIPE_BYTES = 1024 * 1024
"""Asked of the kernel for the child's standard output, so that it can run ahead of our reader."""
TERM_S = 2.0
"""From SIGTERM to SIGKILL when we stop a child ourselves."""
DRAIN_S = 1.0
"""For the last bytes of standard output once every writer we know is gone."""
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

    def __init__(self, process: subprocess.Popen[bytes], control: int) -> None:
        self._process = process
        self._control: int | None = control
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        self._swept = asyncio.Event()
        self._stdin: asyncio.WriteTransport | None = None
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
    ) -> Child:
        """Start `argv`; raise `OSError` as `exec` would. `on_end` comes after the last byte."""
        control_out, control_in = os.pipe()
        status_out, status_in = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: ASYNC220  a fork takes a millisecond, once
                [
                    sys.executable,
                    "-I",
                    "-S",
                    guardian.__file__,
                    str(control_out),
                    str(status_in),
                    "--",
                    *argv,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(control_out, status_in),
                start_new_session=True,
                env=env,
                cwd=cwd,
                bufsize=0,
            )
        except BaseException:
            os.close(control_in)
            os.close(status_out)
            raise
        finally:
            os.close(control_out)
            os.close(status_in)
        child = cls(process, control_in)
        try:
            await child._connect(status_out, on_stdout, on_end)
            child.pid = await child._started
        except BaseException:
            child._let_go()
            raise
        return child

    async def _connect(
        self, status: int, on_stdout: Callable[[bytes], None], on_end: Callable[[Exit], None] | None
    ) -> None:
        loop = asyncio.get_running_loop()
        process = self._process
        assert process.stdin
        assert process.stdout
        assert process.stderr
        _widen(process.stdout.fileno())
        drained = asyncio.Event()
        await loop.connect_read_pipe(
            lambda: _Reader(self._on_status, self._on_status_end), os.fdopen(status, "rb")
        )
        self._stdin, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, process.stdin)
        await loop.connect_read_pipe(lambda: _Reader(self._keep_tail, _nothing), process.stderr)
        await loop.connect_read_pipe(lambda: _Reader(on_stdout, drained.set), process.stdout)
        self._ender = loop.create_task(self._tell_end(drained, on_end))

    async def _tell_end(self, drained: asyncio.Event, on_end: Callable[[Exit], None] | None) -> None:
        # Death is told after the last byte, so that nothing the child still said is lost. A
        # grandchild may hold the pipe open until the tree is swept; afterwards only a stranger can.
        await self._swept.wait()
        try:
            await asyncio.wait_for(drained.wait(), DRAIN_S)
        except TimeoutError:
            log.warning("somebody outside the tree of %s holds its standard output", self._process.args)
        await asyncio.to_thread(self._process.wait)
        if not self._ended.done():
            self._ended.set_result(self._outcome)
        if on_end is not None:
            on_end(self._outcome)

    def write(self, data: bytes) -> None:
        """Queue bytes for standard input; silently nothing once the child is gone."""
        if self._stdin is not None and not self._stdin.is_closing():
            self._stdin.write(data)

    @property
    def backlog_bytes(self) -> int:
        return self._stdin.get_write_buffer_size() if self._stdin is not None else 0

    @property
    def stderr_tail(self) -> str:
        return b"".join(self._tail).decode("utf-8", "replace")

    async def wait(self) -> Exit:
        """Until the child and its whole tree are gone."""
        return await asyncio.shield(self._ended)

    async def stop(self, own_end_s: float = 1.0) -> Exit:
        """Close standard input, wait, SIGTERM, wait, SIGKILL: always ends, always tells how."""
        if self._stdin is not None:
            self._stdin.close()
        for seconds, order in ((own_end_s, b"T"), (TERM_S, b"K"), (END_S, None)):
            try:
                return await asyncio.wait_for(self.wait(), seconds)
            except TimeoutError:
                if order is not None:
                    self._order(order)
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
                    # Known before anyone is told: if the guardian is shot, the child is still ours to end.
                    self.pid = int(number)
                    if not self._started.done():
                        self._started.set_result(self.pid)
                case b"failed":
                    code = int(number) or errno.EIO
                    self._started.set_exception(OSError(code, os.strerror(code), self._process.args))
                case b"exit":
                    self._outcome = Exit(code=int(number))
                case b"signal":
                    self._outcome = Exit(signal=_signal_name(int(number)))

    def _on_status_end(self) -> None:
        if not self._started.done():
            self._started.set_exception(OSError(errno.ECHILD, "the guardian ended before the child began"))
        if self.pid and self._outcome == Exit():
            # Somebody shot the guardian. The child is then an orphan that only we still know.
            try:
                os.kill(self.pid, signal.SIGKILL)
            except OSError:
                pass
        self._let_go()
        self._swept.set()

    def _let_go(self) -> None:
        if self._control is not None:
            os.close(self._control)
            self._control = None
        if self._stdin is not None:
            self._stdin.close()

    def _keep_tail(self, data: bytes) -> None:
        self._tail.append(data[-STDERR_TAIL_BYTES:])
        self._tail_bytes += len(self._tail[-1])
        while self._tail_bytes - len(self._tail[0]) >= STDERR_TAIL_BYTES:
            self._tail_bytes -= len(self._tail.popleft())


class _Reader(asyncio.Protocol):
    def __init__(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_data = on_data
        self._on_end = on_end

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._on_end()


def _nothing() -> None:
    pass


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
