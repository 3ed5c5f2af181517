"""App-servers in a test's hand, for what a healthy Codex does not show: silence, and answers out of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import msgspec

Asked = dict[str, Any]


class HandTransport(ABC):
    """Carries bytes to nobody: each request is handed to `on_request`, which may answer, now or later."""

    stderr_tail = ""
    backlog_bytes = 0

    def __init__(self) -> None:
        self.started = 0
        self.stopped = 0
        self._say: Callable[[bytes], None]

    async def connect(self, say: Callable[[bytes], None], on_end: Callable[[Any], None]) -> HandTransport:
        self._say = say
        self.started += 1
        return self

    def write(self, data: bytes) -> None:
        for asked in map(msgspec.json.decode, data.splitlines()):
            if "id" in asked:
                self.on_request(asked)

    @abstractmethod
    def on_request(self, asked: Asked) -> None: ...

    def tell(self, **message: Any) -> None:
        self._say(msgspec.json.encode(message) + b"\n")

    async def stop(self, own_end_s: float = 0.0) -> None:
        self.stopped += 1
