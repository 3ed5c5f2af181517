"""Joins text deltas of one message into fewer `session/update`s, in order and without loss.

The deltas of one iteration of the event loop are sent as one update; a client that reads too slowly gets
fewer and larger ones. Encoded by hand, because a session has tens of thousands of deltas.
"""

from __future__ import annotations

import asyncio
from typing import Literal

import msgspec

from laneway.doors.acp.client_channel import ClientChannel

Chunk = Literal["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"]

_encode = msgspec.json.Encoder().encode


def chunk(kind: Chunk, message_id: str | None, text: str) -> msgspec.Raw:
    """The update for a piece of text, encoded."""
    return msgspec.Raw(_prefix(kind, message_id) + _encode(text) + b"}}")


def _prefix(kind: Chunk, message_id: str | None) -> bytes:
    id_field = b'"messageId":' + _encode(message_id) + b"," if message_id else b""
    return b'{"sessionUpdate":"' + kind.encode() + b'",' + id_field + b'"content":{"type":"text","text":'


class TextChunks:
    def __init__(self, channel: ClientChannel, session_id: str) -> None:
        self._channel = channel
        self._session_id = session_id
        self._kind: Chunk = "agent_message_chunk"
        self._message_id: str | None = None
        self._prefix = b""
        self._pieces: list[str] = []
        self._is_due = False
        """Whether the channel will call us before its next write."""
        self._waiting: asyncio.Task[None] | None = None

    def add(self, kind: Chunk, message_id: str, text: str) -> None:
        if message_id != self._message_id or kind != self._kind:
            self.flush()
            self._kind, self._message_id, self._prefix = kind, message_id, _prefix(kind, message_id)
        self._pieces.append(text)
        if not self._is_due and self._waiting is None:
            self._is_due = True
            self._channel.before_write(self._flush_now)

    def flush(self) -> None:
        """Send the text gathered so far, before an update of another kind."""
        if self._pieces:
            text = "".join(self._pieces)
            self._pieces.clear()
            self._channel.update(self._session_id, msgspec.Raw(self._prefix + _encode(text) + b"}}"))

    def _flush_now(self) -> None:
        self._is_due = False
        if not self._channel.is_behind:
            self.flush()
        elif self._pieces and self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_task(self._flush_later())

    async def _flush_later(self) -> None:
        try:
            await self._channel.writable()
        finally:
            self._waiting = None
        self.flush()

    def close(self) -> None:
        self.flush()
        if self._waiting is not None:
            self._waiting.cancel()
