"""Settings of one live session: the user's choices, what the engine has of them, the record on disk.

At most one write is pending, and it saves the values of the moment when it runs. A failed write is
reported to the session's user and is not fatal.
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


class StoredSettings:
    """`record` holds what this class does not know of the session; `warn` shows its user a warning."""

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
        """The Codex home, while Codex has not written the thread to disk; none afterwards."""
        self._is_recorded_empty = False
        self._sending: Permit | None = None
        self._sent: Permit | None = None
        # No lingering: settings change too rarely for several changes to share one write.
        self._writer = Coalescer(self._write, TaskSet(), "writing a session down", linger_s=0.0)

    async def change(self, choices: Choices) -> bool:
        """Change the settings from the next turn on and save them; returns whether the mode changed."""
        old, self.choices = self.choices, choices
        self.save_soon()
        await self._writer.wait()
        return choices.mode != old.mode

    # ── settings of the engine ─────────────────────────────────────────────

    def turn_with_settings(self, turn: TurnSpec) -> TurnSpec:
        """The turn with every setting that differs from the engine's; the turn's own values win."""
        self._sending = session_settings.policy(self.choices, self.facts)
        return session_settings.turn_with_settings(turn, self.choices, self.facts)

    def on_turn_started(self) -> None:
        """The engine now has the settings that the turn brought."""
        self._sent = self._sending
        self.save_soon()

    def on_turn_done(self) -> None:
        """After the first turn the record must no longer say that the thread is empty."""
        if self._is_recorded_empty and self._empty_in() is None:
            self.save_soon()

    def on_thread(self, thread_id: str) -> None:
        """The session has a new thread, because the old one was lost while it was empty."""
        self._record = msgspec.structs.replace(self._record, thread_id=thread_id)
        self.save_soon()

    # ── the record on disk ──────────────────────────────────────────────────

    @property
    def record(self) -> SessionRecord:
        """The record from which the session can be reopened."""
        defaults = session_settings.defaults(self.choices, self.facts, sent=self._sent)
        defaults = msgspec.structs.replace(defaults, empty_in=self._empty_in())
        return msgspec.structs.replace(self._record, defaults=defaults)

    def save_soon(self) -> None:
        self._writer.stir()

    async def _write(self) -> None:
        record = self.record
        self._is_recorded_empty = record.defaults.empty_in is not None
        try:
            await asyncio.to_thread(self._records.put, record)
        except StoreError as problem:
            log.error("a session could not be written down: %s", problem)
            self._warn(f"This session's options are not kept: {problem}")

    async def wait_saved(self, timeout_s: float | None = None) -> None:
        """Wait until the record is written or the write has failed, or for `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._writer.wait()
        except TimeoutError:
            pass
