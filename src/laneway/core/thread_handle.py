"""A session's handle on its engine thread: starts and interrupts turns, resumes it after a crash.

The session decides when a thread may be resumed; this module knows how.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from laneway.base.errors import EngineLost, EngineRefused, LanewayError, ThreadUnknown
from laneway.core.ports import Engine, Host, Thread, ThreadInfo, ThreadSpec, TurnSpec

log = logging.getLogger(__name__)

RELEASE_S = 5.0
"""For the engine to release a thread; after that the session closes anyway."""
INTERRUPT_AGAIN_S = 0.05
"""Before an interrupt is repeated: Codex takes some milliseconds to begin a turn. Doubled each time …"""
MAX_INTERRUPT_AGAIN_S = 3.2
"""… up to this: an engine that keeps refusing may have lost the turn."""


class ThreadHandle:
    """The engine's thread of one session, present or lost."""

    def __init__(self, engine: Engine, spec: ThreadSpec, *, has_history: bool) -> None:
        """`has_history`: whether the thread has had input, so that there is something to resume."""
        self.info = ThreadInfo(thread_id="")
        """The engine's facts about the thread, as of its opening."""
        self.lost_how: str | None = None
        """How the engine's process ended, if it did."""
        self.last_words = ""
        self.has_history = has_history
        self.is_cold = False
        """Whether the engine was restarted and has not begun a turn since."""
        self._again_s = INTERRUPT_AGAIN_S
        self._engine = engine
        self._spec = spec
        self._thread: Thread | None = None

    @property
    def is_lost(self) -> bool:
        return self._thread is None

    @property
    def thread_id(self) -> str:
        return self.info.thread_id

    @property
    def thread(self) -> Thread:
        if self._thread is None:
            raise self.loss()
        return self._thread

    def loss(self) -> EngineLost:
        return EngineLost(
            self.lost_how or "it is not running",
            self.last_words,
            engine=self._engine.name,
            is_shared=self._engine.shares_process,
        )

    # ── lost and resumed ───────────────────────────────────────────────────

    def take(self, thread: Thread) -> None:
        self._thread, self.info = thread, thread.info
        if thread.info.title:
            self.has_history = True  # the title is the thread's first prompt

    def rename(self, thread_id: str) -> None:
        self.info = msgspec.structs.replace(self.info, thread_id=thread_id)

    def lose(self, how: str, last_words: str = "") -> None:
        self._thread, self.lost_how, self.last_words = None, how, last_words

    async def bring_back(self, host: Host) -> bool:
        """Resume the thread; true if it was empty and had to be replaced by a new one."""
        try:
            thread, is_other = await self._engine.resume(self.thread_id, self._spec, host), False
        except ThreadUnknown:
            if self.has_history:
                raise
            thread, is_other = await self._engine.start(self._spec, host), True
        self.take(thread)
        self.is_cold = True
        return is_other

    async def release(self) -> None:
        if self._thread is None:
            return
        try:
            async with asyncio.timeout(RELEASE_S):
                await self._thread.release()
        except (LanewayError, TimeoutError) as error:
            log.info("thread %s was not released: %r", self.thread_id, error)

    # ── turns ──────────────────────────────────────────────────────────────

    async def start_turn(self, ticket: str, spec: TurnSpec, context: str) -> None:
        permit = spec.permit or (spec.permit_if_cold if self.is_cold else None)
        await self.thread.start_turn(ticket, msgspec.structs.replace(spec, context=context, permit=permit))

    def has_begun(self) -> None:
        """The engine has begun a turn of ours."""
        self.is_cold, self._again_s = False, INTERRUPT_AGAIN_S

    async def interrupt(self, turn_id: str, timeout_s: float) -> float | None:
        """Interrupt a turn. Returns after how many seconds to try again, if the engine refused."""
        try:
            # Codex may not answer an interrupt of a turn that has already been interrupted.
            async with asyncio.timeout(timeout_s):
                await self.thread.interrupt(turn_id)
        except EngineRefused as refused:
            # The turn has just ended; or Codex has only announced it, and must be interrupted again.
            log.debug("interrupting %s: %s", turn_id, refused)
            again_s, self._again_s = self._again_s, min(self._again_s * 2, MAX_INTERRUPT_AGAIN_S)
            return again_s
        except (LanewayError, TimeoutError) as problem:
            log.debug("interrupting %s: %r", turn_id, problem)
        return None
