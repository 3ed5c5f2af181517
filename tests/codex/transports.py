"""App-servers driven by a test, for silence, and answers out of order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import msgspec

Request = dict[str, Any]


class HandTransport(ABC):
    """A transport without a process: each request goes to `on_request`, which may answer, now or later."""

    stderr_tail = ""
    backlog_bytes = 0

    def __init__(self) -> None:
        self.started = 0
        self.stopped = 0
        self._on_bytes: Callable[[bytes], None]

    async def connect(
        self, on_bytes: Callable[[bytes], None], on_end: Callable[[Any], None]
    ) -> HandTransport:
        self._on_bytes = on_bytes
        self.started += 1
        return self

    def write(self, data: bytes) -> None:
        for request in map(msgspec.json.decode, data.splitlines()):
            if "id" in request:
                self.on_request(request)

    @abstractmethod
    def on_request(self, request: Request) -> None: ...

    def send(self, **message: Any) -> None:
        self._on_bytes(msgspec.json.encode(message) + b"\n")

    async def stop(self, own_end_s: float = 0.0) -> None:
        self.stopped += 1
