"""Bytes as JSON: what a fuzzer mutates becomes notifications that look nearly right.

Pure random JSON is refused at the first field. Here each byte chooses among the words of
the protocol, right and wrong types alike; input that begins with a bracket is JSON itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from laneway.codex.items import _MAKERS, TEXT_ITEMS
from laneway.codex.questions import _MAKERS as QUESTIONS
from laneway.codex.translate import _HANDLERS, DELTA_EVENTS

THREAD = "thread"
TURN = "turn"
METHODS = [*_HANDLERS, *DELTA_EVENTS, "serverRequest/resolved", "thread/started", "item/tool/call"]
REQUESTS = [*QUESTIONS, "item/tool/call", "unknown"]
TYPES = [*_MAKERS, *sorted(TEXT_ITEMS), "unknown"]
KEYS = re.findall(
    r"\w+",
    """threadId turnId itemId delta item turn id type status text error message codexErrorInfo plan step
 diff tokenUsage last total modelContextWindow inputTokens willRetry summary threadName threadSettings name
 changes kind move_path path command aggregatedOutput exitCode cwd commandActions server tool result content
 contentItems arguments query action results savedPath durationMs review receiverThreadIds rootTurnId
 clientId summaryIndex explanation requestId thread success prompt httpStatusCode questions options label
 header availableDecisions networkApprovalContext host fileChanges update requestedSchema url""",
)
TEXTS = [
    "",
    TURN,
    THREAD,
    "item",
    "other",
    "completed",
    "failed",
    "interrupted",
    "inProgress",
    "declined",
    "add",
    "@@ -1 +0 @@",
    "/bin/bash -lc 'ls",
    "é🐢\x00",
    "text",
    "reasoning",
    "agentMessage",
]
PLAIN: list[Any] = [None, True, False, 0, 1, -1, 2**70, 1.5, 1e308]
MAX_DEPTH = 4


class Shapes:
    keys: ClassVar = KEYS
    texts: ClassVar = TEXTS
    plain: ClassVar = PLAIN

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def notifications(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """For the translator: methods with params that are objects, as the link hands them on."""
        for message in self._messages():
            params = message.get("params")
            method = message.get("method")
            if isinstance(method, str):
                yield method, params if isinstance(params, dict) else {"value": params}

    def frames(self) -> Iterator[bytes]:
        if self._data[:1] in (b"{", b"["):
            yield from self._data.split(b"\n")
            return
        for message in self._messages():
            yield msgspec.json.encode(message)

    def _messages(self) -> Iterator[dict[str, Any]]:
        if self._data[:1] in (b"{", b"["):
            for line in self._data.split(b"\n"):
                try:
                    told = msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    continue
                if isinstance(told, dict):
                    yield told
            return
        while self._at < len(self._data):
            yield self._message()

    def _message(self) -> dict[str, Any]:
        kind = self._byte()
        message: dict[str, Any] = {"method": METHODS[kind % len(METHODS)]}
        if kind >= 224:
            message = {"method": REQUESTS[kind % len(REQUESTS)], "id": self._at}
        params = self._object(0)
        # Mostly right where being wrong ends it at once.
        params.setdefault("threadId", THREAD)
        params.setdefault("turnId", TURN)
        params.setdefault("turn", {"id": TURN})
        item = params.setdefault("item", self._object(1))
        if isinstance(item, dict):
            item.setdefault("type", TYPES[self._byte() % len(TYPES)])
            item.setdefault("id", "item")
        return {**message, "params": params}

    def _object(self, depth: int) -> dict[str, Any]:
        return {
            self.keys[self._byte() % len(self.keys)]: self._value(depth + 1) for _ in range(self._byte() % 6)
        }

    def _value(self, depth: int) -> Any:
        choice = self._byte()
        if choice < 96:
            return self.texts[choice % len(self.texts)]
        if choice < 144 or depth >= MAX_DEPTH:
            return self.plain[choice % len(self.plain)]
        if choice < 200:
            return self._object(depth)
        return [self._value(depth + 1) for _ in range(choice % 4)]

    def _byte(self) -> int:
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1]
