"""JSON-RPC batches: an array of messages in, one array of answers out.

Owns the limits and collects the answers; `Peer` reads the elements and produces the answers.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from laneway.wire.messages import INVALID_REQUEST, Fault, Raw, fault_of, is_utf8

MAX_BATCH = 1024
"""Messages in one array: no more requests could be served at once anyway."""
MAX_BATCH_COMMAS = 1_000_000
"""In the bytes of one array, counted before it is decoded: n elements have at least n - 1. Decoding it
then costs at most about 70 MB for a moment, instead of 35 bytes for each byte received."""
MAX_OPEN_BATCHES = 16
"""Arrays that wait for their last answer."""

_TOO_LARGE = Fault(
    INVALID_REQUEST, f"The batch has more than {MAX_BATCH} messages; send them one by one or in smaller ones"
)
_EMPTY = Fault(INVALID_REQUEST, "The batch is empty")
TOO_MANY = Fault(INVALID_REQUEST, f"More than {MAX_OPEN_BATCHES} batches at once; wait for an answer")
REFUSED = Fault(INVALID_REQUEST, "Batches are not served here; send the messages one by one")

_decode_batch = msgspec.json.Decoder(list[Raw]).decode


def is_array(frame: bytes) -> bool:
    return frame[:1] == b"[" or frame[:64].lstrip()[:1] == b"["


def elements(frame: bytes) -> list[bytes] | Fault:
    """The messages of a batch as received, or the reason why it is no batch."""
    if frame.count(b",") > MAX_BATCH_COMMAS:
        return _TOO_LARGE
    try:
        parts = _decode_batch(frame)
    except (msgspec.DecodeError, RecursionError):
        return fault_of(frame)
    if not is_utf8(frame):
        return fault_of(frame)
    if len(parts) > MAX_BATCH:
        return _TOO_LARGE
    return [bytes(part) for part in parts] or _EMPTY


class Batch:
    """The answers to one array, sent together when the last of them is there."""

    def __init__(self, on_complete: Callable[[list[bytes]], None]) -> None:
        self._on_complete = on_complete
        self._answers: list[bytes] = []
        # The reader counts as one: no array is complete while its elements are still being read.
        self._open = 1

    @property
    def is_open(self) -> bool:
        return self._open > 0

    def expect(self) -> None:
        """One more call of `answer` will come."""
        self._open += 1

    def answer(self, message: bytes | None) -> None:
        if message is not None:
            self._answers.append(message)
        self._open -= 1
        if not self._open:
            self._on_complete(self._answers)
