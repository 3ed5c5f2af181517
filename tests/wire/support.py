"""A peer with both hands visible, and processes that are watched until they are gone."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterable
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from hypothesis import strategies as st

from laneway.wire.child import Child, Exit
from laneway.wire.peer import Peer, Raw

DEADLINE_S = 60.0
"""Generous: only a broken program meets it."""
HERE = Path(__file__).parent

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs pidfd, /proc and a subreaper: Linux")


CUTS = st.lists(st.integers(min_value=0, max_value=200), max_size=40)
"""Where a stream may be cut into chunks."""


def chunks_of(stream: bytes, cuts: list[int]) -> list[bytes]:
    """The stream, cut at these places (twice the same place gives an empty chunk)."""
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


def cancel_notice(request_id: bytes) -> tuple[str, Any]:
    return "cancelled", {"requestId": Raw(request_id)}


class Desk:
    """A peer, what it sent (line by line), and what it handed on."""

    def __init__(self, **options: Any) -> None:
        self._sent: asyncio.Queue[bytes] = asyncio.Queue()
        self._handlers: dict[str, Callable[[Raw], Awaitable[Any]]] = {}
        self.notified: list[tuple[str, bytes]] = []
        self.ids: list[bytes] = []
        self.writes = 0
        self.peer = Peer(
            self._send,
            on_request=self._on_request,
            on_notification=lambda method, params, frame: self.notified.append((method, bytes(params))),
            **options,
        )

    def on(self, method: str, handler: Callable[[Raw], Awaitable[Any]]) -> None:
        self._handlers[method] = handler

    def says(self, *messages: Any) -> None:
        """The other end sends these: bytes as they are, anything else as JSON."""
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.peer.feed(data + b"\n")

    async def sent(self) -> Any:
        """The next message that went out, decoded."""
        return json.loads(await self.sent_bytes())

    async def sent_bytes(self) -> bytes:
        async with asyncio.timeout(DEADLINE_S):
            return await self._sent.get()

    async def wait_quiet(self) -> None:
        """Every callback that is ready has run, and nothing was said meanwhile."""
        for _ in range(20):
            await asyncio.sleep(0)
        assert self._sent.empty()

    def _send(self, data: bytes) -> None:
        self.writes += 1
        assert data.endswith(b"\n")
        for line in data[:-1].split(b"\n"):
            self._sent.put_nowait(line)

    async def _on_request(self, method: str, params: Raw, request_id: bytes) -> Any:
        self.ids.append(request_id)
        return await self._handlers[method](params)


async def echo(params: Raw) -> Raw:
    return params


class Gate:
    """A handler that waits until it is opened, and tells when it began and how it ended."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.opened = asyncio.Event()
        self.was_cancelled = asyncio.Event()

    async def __call__(self, params: Raw) -> str:
        self.began.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise
        return "opened"


class Watch:
    """Processes by pidfd, so that a number used anew cannot deceive; survivors end with the test."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._fds = {pid: os.pidfd_open(pid) for pid in pids}

    async def wait_gone(self) -> None:
        loop = asyncio.get_running_loop()
        for pid, fd in self._fds.items():
            gone = asyncio.Event()
            loop.add_reader(fd, gone.set)
            try:
                async with asyncio.timeout(DEADLINE_S):
                    await gone.wait()
            except TimeoutError:
                pytest.fail(f"process {pid} outlived its tree")
            finally:
                loop.remove_reader(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fd in self._fds.values():
            try:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            except ProcessLookupError:
                pass  # as it should be
            os.close(fd)


class Heard:
    """What a child said, in the order in which we were told."""

    def __init__(self) -> None:
        self.events: list[bytes | Exit] = []
        self._more = asyncio.Event()

    def on_stdout(self, data: bytes) -> None:
        self._note(data)

    def on_end(self, exit_: Exit) -> None:
        self._note(exit_)

    @property
    def text(self) -> bytes:
        return b"".join(event for event in self.events if isinstance(event, bytes))

    @property
    def ends(self) -> list[Exit]:
        return [event for event in self.events if isinstance(event, Exit)]

    async def wait_line(self) -> bytes:
        """The first whole line."""
        async with asyncio.timeout(DEADLINE_S):
            while b"\n" not in self.text:
                self._more.clear()
                await self._more.wait()
        return self.text.partition(b"\n")[0]

    def _note(self, event: bytes | Exit) -> None:
        self.events.append(event)
        self._more.set()


async def start(argv: list[str], heard: Heard, **options: Any) -> Child:
    async with asyncio.timeout(DEADLINE_S):
        return await Child.spawn(argv, on_stdout=heard.on_stdout, on_end=heard.on_end, **options)


async def ended(child: Child) -> Exit:
    async with asyncio.timeout(DEADLINE_S):
        return await child.wait()


def python(code: str, *args: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code, *args]


def program(name: str, *args: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(HERE / f"{name}.py"), *args]
