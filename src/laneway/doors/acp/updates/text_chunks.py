"""Text on its way to the client: deltas of one message joined, in order, none lost.

What comes in one turn of the loop leaves as one update; a client that does not read gets the
rest in fewer and larger ones. Encoded by hand: this is the path of tens of thousands of deltas.
"""

from __future__ import annotations

import asyncio
from typing import Literal

import msgspec

from laneway.doors.acp.client_channel import ClientChannel

Chunk = Literal["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"]

_encode = msgspec.json.Encoder().encode


def chunk(kind: Chunk, message_id: str | None, text: str) -> msgspec.Raw:
    """A `session/update` that carries text."""
    return msgspec.Raw(_head(kind, message_id) + _encode(text) + b"}}")


def _head(kind: Chunk, message_id: str | None) -> bytes:
    named = b'"messageId":' + _encode(message_id) + b"," if message_id else b""
    return b'{"sessionUpdate":"' + kind.encode() + b'",' + named + b'"content":{"type":"text","text":'


class TextChunks:
    def __init__(self, line: ClientChannel, session_id: str) -> None:
        self._line = line
        self._session_id = session_id
        self._kind: Chunk = "agent_message_chunk"
        self._message_id: str | None = None
        self._head = b""
        self._pieces: list[str] = []
        self._flush: asyncio.Handle | None = None
        self._waiting: asyncio.Task[None] | None = None

    def say(self, kind: Chunk, message_id: str, text: str) -> None:
        if message_id != self._message_id or kind != self._kind:
            self.flush()
            self._kind, self._message_id, self._head = kind, message_id, _head(kind, message_id)
        self._pieces.append(text)
        if self._flush is None and self._waiting is None:
            self._flush = asyncio.get_running_loop().call_soon(self._flush_soon)

    def flush(self) -> None:
        """Say now what is held: something else comes next."""
        if self._pieces:
            text = "".join(self._pieces)
            self._pieces.clear()
            self._line.update(self._session_id, msgspec.Raw(self._head + _encode(text) + b"}}"))

    def _flush_soon(self) -> None:
        self._flush = None
        if not self._line.is_behind:
            self.flush()
        elif self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_task(self._flush_later())

    async def _flush_later(self) -> None:
        try:
            await self._line.writable()
        finally:
            self._waiting = None
        self.flush()

    def close(self) -> None:
        self.flush()
        if self._flush is not None:
            self._flush.cancel()
        if self._waiting is not None:
            self._waiting.cancel()
