"""What one session is set to, what the engine was told of it, and what is kept of both on disk.

Only one write waits at most, and takes what holds then. A disk that will not take it is told to the
session's user and is not fatal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from laneway.base.errors import StoreError
from laneway.core import session_settings
from laneway.core.access import Permit
from laneway.core.background import Coalescer, TaskSet
from laneway.core.editor_sessions import SessionRecord, SessionRecords
from laneway.core.ports import TurnSpec
from laneway.core.session_settings import Choices, Facts

log = logging.getLogger(__name__)


class KeptSettings:
    """`record` is the session's, but for what is known here; `warn` tells its user something."""

    def __init__(
        self,
        records: SessionRecords,
        record: SessionRecord,
        choices: Choices,
        facts: Facts,
        warn: Callable[[str], None],
        empty_in: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.choices = choices
        self.facts = facts
        self._records = records
        self._record = record
        self._warn = warn
        self._empty_in = empty_in
        """The Codex home in which nothing of its thread is written down yet; none once there is."""
        self._is_kept_empty = False
        self._sending: Permit | None = None
        self._sent: Permit | None = None
        # Nothing else changes so often that it would be worth waiting for.
        self._writer = Coalescer(self._write, TaskSet(), "writing a session down", linger_s=0.0)

    async def change(self, choices: Choices) -> bool:
        """Set it otherwise, for the next turn on; whether that changed the mode. Written down by then."""
        before, self.choices = self.choices, choices
        self.keep_soon()
        await self._writer.wait()
        return choices.mode != before.mode

    # ── what the engine is told ────────────────────────────────────────────

    def equipped(self, turn: TurnSpec) -> TurnSpec:
        """With what differs from what the engine has; what the turn itself says goes first."""
        self._sending = session_settings.policy(self.choices, self.facts)
        return session_settings.equipped(turn, self.choices, self.facts)

    def on_turn_started(self) -> None:
        """The engine has what the turn was equipped with."""
        self._sent = self._sending
        self.keep_soon()

    def on_turn_done(self) -> None:
        """The first one ends that the session is kept as an empty one."""
        if self._is_kept_empty and self._empty_in() is None:
            self.keep_soon()

    def on_thread(self, thread_id: str) -> None:
        """Another than before, which was lost while it was empty."""
        self._record = msgspec.structs.replace(self._record, thread_id=thread_id)
        self.keep_soon()

    # ── what is kept ───────────────────────────────────────────────────────

    @property
    def record(self) -> SessionRecord:
        """What whoever goes on with this session has to know."""
        defaults = session_settings.defaults(self.choices, self.facts, sent=self._sent)
        defaults = msgspec.structs.replace(defaults, empty_in=self._empty_in())
        return msgspec.structs.replace(self._record, defaults=defaults)

    def keep_soon(self) -> None:
        self._writer.stir()

    async def _write(self) -> None:
        record = self.record
        self._is_kept_empty = record.defaults.empty_in is not None
        try:
            await asyncio.to_thread(self._records.put, record)
        except StoreError as problem:
            log.error("a session could not be written down: %s", problem)
            self._warn(f"This session's options are not kept: {problem}")

    async def wait_kept(self, timeout_s: float | None = None) -> None:
        """Until it is written down, or that has failed; no longer than this."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._writer.wait()
        except TimeoutError:
            pass
