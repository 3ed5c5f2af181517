"""The outputs of one conversation: numbers them, stores them, and only then shows them, in order.

So whoever saw a number finds it in the store, also after this process was killed. What is not stored goes
straight on unless something before it is being stored; of that, too much is dropped.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from laneway.base.errors import StoreError
from laneway.core.background import TaskSet
from laneway.core.conversations import OutputRecord
from laneway.doors.chat.ordered_store import OrderedStore
from laneway.doors.chat.outputs import VOLATILE, AnyOutput, Shown

MAX_BATCH = 256
"""Outputs that are stored in one transaction."""
MAX_WAITING_DELTAS = 10_000
"""Behind a store that hangs: the text comes whole at its end."""

log = logging.getLogger(__name__)
_encoder = msgspec.json.Encoder(enc_hook=str)
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(AnyOutput)


class OutputLog:
    def __init__(
        self,
        conversation_id: str,
        store: OrderedStore,
        last_number: int,
        wall: Callable[[], float],
        deliver: Callable[[Shown], None],
        tasks: TaskSet,
    ) -> None:
        self._conversation_id = conversation_id
        self._store = store
        self._number = last_number
        self._wall = wall
        self._deliver = deliver
        self._tasks = tasks
        self._waiting: deque[Shown | Callable[[], object]] = deque()
        self._is_writing = False
        self.shown_number = last_number
        """Of the last output that the views have got."""

    def put(self, output: AnyOutput) -> None:
        is_stored = not isinstance(output, VOLATILE)
        if is_stored:
            self._number += 1
        shown = Shown(
            conversation_id=self._conversation_id,
            number=self._number if is_stored else 0,
            at=self._wall(),
            output=output,
        )
        if not is_stored and not self._is_writing:
            self._deliver(shown)
            return
        if not is_stored and len(self._waiting) > MAX_WAITING_DELTAS:
            return
        self._waiting.append(shown)
        if not self._is_writing:
            self._is_writing = True
            self._tasks.spawn(self._write(), "outputs of a conversation")

    def then(self, work: Callable[[], object]) -> None:
        """Do this in the store once all outputs so far are there: what is marked as over has been told."""
        if self._is_writing:
            self._waiting.append(work)
        else:
            self._store.soon(work)

    async def _write(self) -> None:
        try:
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]
                records = [_record(each) for each in batch if isinstance(each, Shown) and each.number]
                if records:
                    await self._keep(records)
                for each in batch:
                    if isinstance(each, Shown):
                        self.shown_number = max(self.shown_number, each.number)
                        self._deliver(each)
                    else:
                        self._store.soon(each)
        finally:
            self._is_writing = False

    async def _keep(self, records: list[OutputRecord]) -> None:
        try:
            await self._store.call(self._store.port.add_outputs, records)
        except StoreError as problem:
            # Shown all the same: people see what happens, and lose only the looking back.
            log.error("outputs could not be stored: %s", problem)

    @property
    def is_idle(self) -> bool:
        return not self._is_writing


def _record(shown: Shown) -> OutputRecord:
    return OutputRecord(
        conversation_id=shown.conversation_id,
        number=shown.number,
        at=shown.at,
        output=_encoder.encode(shown.output),
    )


def decoded(record: OutputRecord) -> Shown | None:
    """None for one that cannot be read, such as one of a newer Laneway."""
    try:
        output = _decoder.decode(record.output)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        log.warning("output %d of %s cannot be read", record.number, record.conversation_id)
        return None
    return Shown(conversation_id=record.conversation_id, number=record.number, at=record.at, output=output)
