"""Real `laneway` processes without the time that Python needs to load it: forked from one that has.

Such a process has its own environment, folder, streams, signals and exit code, like any other; loading is
most of what a short command costs. Not for tests about starting itself. Where a caller asks for something
that only a new Python can have (variables that Python reads at its start), it gets a new Python.
"""

from __future__ import annotations

import asyncio
import atexit
import io
import json
import os
import signal
import socket
import subprocess
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process, SubprocessStreamProtocol
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import fork_server

LANEWAY = (sys.executable, "-m", "laneway")
LIMIT_BYTES = 64 * 1024
"""Of a line, as asyncio has it."""
_READ_AT_START = ("PYTHON", "LC_", "LANG")
"""How the names begin of variables that Python reads before ours is loaded."""


async def start_laneway(
    *words: str,
    env: Mapping[str, str],
    cwd: str | Path | None = None,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
    limit: int = LIMIT_BYTES,
) -> Process:
    """`python -m laneway` with these words, as `create_subprocess_exec` starts it."""
    if _read_at_start(env) != _read_at_start(os.environ):
        return await asyncio.create_subprocess_exec(
            *LANEWAY, *words, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr, limit=limit
        )
    streams = Streams(stdin, stdout, stderr)
    try:
        pid, report = _server().fork(words, env, os.fspath(cwd or os.getcwd()), streams.theirs)
    except BaseException:
        streams.close_ours()
        raise
    finally:
        streams.close_theirs()
    return await _process(pid, report, streams.ours, limit)


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    found = {name: value for name, value in env.items() if name.startswith(_READ_AT_START)}
    folders = [os.path.abspath(folder) for folder in found.pop("PYTHONPATH", "").split(os.pathsep) if folder]
    # Those that are searched anyway change nothing.
    found["PYTHONPATH"] = os.pathsep.join(folder for folder in folders if folder not in sys.path)
    return found


class Streams:
    """Both ends of the standard streams of a process to come."""

    def __init__(self, *wanted: Any) -> None:
        self.theirs: list[int] = []
        self.ours: list[io.FileIO | None] = []
        """Our ends of pipes."""
        self._opened: list[int] = []
        for number, stream in enumerate(wanted):
            self._add(number, stream)

    def _add(self, number: int, stream: Any) -> None:
        ours = None
        if stream == PIPE:
            reading, writing = os.pipe()
            theirs = reading if number == 0 else writing
            ours = io.FileIO(writing, "wb") if number == 0 else io.FileIO(reading, "rb")
            self._opened.append(theirs)
        elif stream == DEVNULL:
            theirs = os.open(os.devnull, os.O_RDWR)
            self._opened.append(theirs)
        elif stream == STDOUT:
            theirs = self.theirs[1]
        elif stream is None:
            theirs = number
        else:
            theirs = stream if isinstance(stream, int) else stream.fileno()
        self.theirs.append(theirs)
        self.ours.append(ours)

    def close_theirs(self) -> None:
        for file in self._opened:
            os.close(file)

    def close_ours(self) -> None:
        for file in self.ours:
            if file is not None:
                file.close()


class ForkServer:
    """A Python that has loaded Laneway; one for each process of the tests."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        words = [sys.executable, "-P", fork_server.__file__, str(theirs.fileno())]
        with theirs:
            self.process = subprocess.Popen(words, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)

    def fork(
        self, words: Sequence[str], env: Mapping[str, str], cwd: str, files: Sequence[int]
    ) -> tuple[int, socket.socket]:
        """A new process: its id, and the socket on which its exit code comes."""
        umask = os.umask(0)
        os.umask(umask)
        request = {"words": words, "env": dict(env), "cwd": cwd, "umask": umask}
        body = json.dumps(request).encode()
        report, theirs = socket.socketpair()
        with theirs:
            length = len(body).to_bytes(fork_server.LENGTH_BYTES)
            socket.send_fds(self._control, [length], [*files, theirs.fileno()])
            self._control.sendall(body)
        pid = b""
        while not pid.endswith(b"\n"):
            data = report.recv(1)
            assert data, "the fork server is gone"
            pid += data
        report.setblocking(False)
        return int(pid), report

    def close(self) -> None:
        self._control.close()
        self.process.wait()


_servers: dict[int, ForkServer] = {}


def _server() -> ForkServer:
    """That of this process; a forked one must not talk on its parent's."""
    pid = os.getpid()
    if pid not in _servers:
        _servers[pid] = ForkServer()
        atexit.register(_servers[pid].close)
    return _servers[pid]


async def _process(pid: int, report: socket.socket, ours: Sequence[io.FileIO | None], limit: int) -> Process:
    loop = asyncio.get_running_loop()
    protocol = SubprocessStreamProtocol(limit=limit, loop=loop)
    transport = ForkedTransport(pid, report, protocol)
    await transport.connect(ours)
    return Process(transport, protocol, loop)


class ForkedTransport(asyncio.SubprocessTransport):
    """What asyncio wants to know of a process, of one that is no child of ours."""

    def __init__(self, pid: int, report: socket.socket, protocol: SubprocessStreamProtocol) -> None:
        super().__init__()
        self._pid = pid
        self._report = report
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._pipes: dict[int, Any] = {}
        self._open_pipes: set[int] = set()
        self._returncode: int | None = None
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._is_closed = False

    async def connect(self, ours: Sequence[io.FileIO | None]) -> None:
        for number, file in enumerate(ours):
            if file is None:
                continue
            connect: Any = self._loop.connect_write_pipe if number == 0 else self._loop.connect_read_pipe
            pipe = PipeProtocol(self, number)
            transport, _ = await connect(lambda pipe=pipe: pipe, file)
            self._pipes[number] = transport
            self._open_pipes.add(number)
        self._protocol.connection_made(self)
        for number in self._open_pipes - {0}:
            self._pipes[number].resume_reading()
        self._loop.add_reader(self._report, self._on_report)

    def _on_report(self) -> None:
        said = self._report.recv(64)
        self._loop.remove_reader(self._report)
        self._report.close()
        self._returncode = int(said) if said else 255
        if not self._ended.done():
            self._ended.set_result(self._returncode)
        self._protocol.process_exited()

    def on_data(self, number: int, data: bytes) -> None:
        self._protocol.pipe_data_received(number, data)

    def on_pipe_lost(self, number: int, problem: Exception | None) -> None:
        self._open_pipes.discard(number)
        self._protocol.pipe_connection_lost(number, problem)

    def get_pid(self) -> int:
        return self._pid

    def get_returncode(self) -> int | None:
        return self._returncode

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        return self._pipes.get(fd)

    def send_signal(self, signal: int) -> None:
        if self._returncode is not None:
            raise ProcessLookupError
        os.kill(self._pid, signal)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def is_closing(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for pipe in self._pipes.values():
            pipe.close()

    async def _wait(self) -> int:
        """Asked by `Process.wait`."""
        return await asyncio.shield(self._ended)


class PipeProtocol(asyncio.Protocol):
    """One pipe of a forked process."""

    def __init__(self, process: ForkedTransport, number: int) -> None:
        self._process = process
        self._number = number

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._number != 0 and isinstance(transport, asyncio.ReadTransport):
            transport.pause_reading()  # until all of the process's pipes are there

    def data_received(self, data: bytes) -> None:
        self._process.on_data(self._number, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._process.on_pipe_lost(self._number, exc)

    def pause_writing(self) -> None:
        self._process._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._process._protocol.resume_writing()
