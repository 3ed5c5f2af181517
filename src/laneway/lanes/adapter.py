"""Makes a `LanePlugin` a `Lane`: starts it once, runs one turn at a time, cancels what does not stop.

Owns the plugin's life. A plugin that raises has its turn failed and is stopped and forgotten: the next
turn starts a new one. After an interrupt it has `INTERRUPT_S` to end its turn, then its task is cancelled,
and one that ignores even that for `CANCEL_S` is left behind. Nothing that a plugin does or leaves undone
keeps a turn from ending.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from laneway.base.clock import LoopClock
from laneway.base.errors import SessionClosed, UsageError
from laneway.core.model import (
    Accepted,
    Answer,
    Asked,
    Event,
    Failure,
    Status,
    TurnDone,
    TurnStarted,
    Withdrawn,
)
from laneway.core.ports import Clock
from laneway.lanes.asking import LOOK_EVERY_S, Asking, after_answer, input_question, look, typed
from laneway.lanes.contract import LaneAbilities, LaneHost, LaneSummary, LaneTurn
from laneway.lanes.plugin_life import PluginExited, called, ends_within, stop
from laneway.lanes.protocol import LaneInput, LanePlugin
from laneway.lanes.registry import hears_interrupts
from laneway.lanes.show import MarkdownFormatter, TurnPlatform
from laneway.lanes.words import words_of

INTERRUPT_S = 10.0
"""For a turn to end after it was interrupted."""
CANCEL_S = 2.0
"""For a cancelled turn to end."""

_log = logging.getLogger(__name__)


class _PluginTurn:
    """The turn that runs."""

    def __init__(self, turn: LaneTurn) -> None:
        self.turn = turn
        self.plugin: LanePlugin | None = None
        """Once it has started."""
        self.task: asyncio.Task[str | None] | None = None
        self.is_interrupted = False
        self.is_accepted = False
        self.asking = Asking()
        self.question_id = ""
        self.questions = 0
        self.fault: BaseException | None = None
        """What the plugin raised elsewhere than in `run_turn`."""
        self.helpers: set[asyncio.Task[None]] = set()
        self.timers: list[Callable[[], None]] = []
        """What cancels them; the look at the plugin's flag is apart."""
        self.cancel_look: Callable[[], None] = _nothing
        self.is_settled = False
        """Its task has ended; the plugin may still be stopping."""


class PluginLane:
    """One plugin in one conversation."""

    def __init__(self, cls: type[LanePlugin], clock: Clock | None = None) -> None:
        self._cls = cls
        self._clock: Clock = clock or LoopClock()
        self._cwd: Path | None = None
        self._host: LaneHost | None = None
        self._plugin: LanePlugin | None = None
        self._running: _PluginTurn | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._is_closed = False
        self._platform = TurnPlatform(self._emit, self._on_shown)

    # ── facts ──────────────────────────────────────────────────────────────

    @property
    def name(self) -> str:
        return self._cls.command.lower()

    @property
    def usage(self) -> str:
        return self._cls.usage

    @property
    def description(self) -> str:
        return self._cls.description

    @property
    def abilities(self) -> LaneAbilities:
        return LaneAbilities(takes_images=True)

    @property
    def thread_id(self) -> str | None:
        return None

    async def probe(self) -> str | None:
        return None

    # ── a lane's life ──────────────────────────────────────────────────────

    async def open(self, cwd: Path, host: LaneHost, *, resume: str | None = None) -> None:
        if resume is not None:
            raise UsageError(f"The lane {self.name} cannot go on with an earlier conversation.")
        self._cwd, self._host = cwd, host

    async def close(self) -> None:
        self._is_closed = True
        running = self._running
        if running is not None and running.task is not None and not running.is_settled:
            running.is_interrupted = True
            running.task.cancel()
            if not await ends_within(running.task, CANCEL_S, self._clock):
                self._abandon(running)
        if self._plugin is not None:
            self._forget(self._plugin)
        if self._leaving:
            await asyncio.wait(self._leaving)

    # ── turns ──────────────────────────────────────────────────────────────

    def begin(self, turn: LaneTurn) -> None:
        if self._host is None or self._is_closed:
            raise SessionClosed(f"The lane {self.name} is not open.")
        if self._running is not None:
            raise UsageError(f"The lane {self.name} is still in a turn.")
        running = self._running = _PluginTurn(turn)
        self._platform.begin(turn.ticket)
        self._emit(TurnStarted(turn_id=turn.ticket, ticket=turn.ticket))
        running.task = asyncio.create_task(self._play(running))
        running.task.add_done_callback(lambda task: self._settle(running, task))

    async def steer(self, turn: LaneTurn) -> bool:
        return False

    async def interrupt(self) -> None:
        running = self._running
        if running is None or running.is_settled or running.is_interrupted:
            return
        running.is_interrupted = True
        if running.plugin is None or not hears_interrupts(running.plugin):
            self._cancel(running)
            return
        running.timers.append(self._clock.after(INTERRUPT_S, lambda: self._cancel(running)))
        self._help(running, running.plugin.interrupt)

    def answer(self, question_id: str, answer: Answer) -> None:
        running = self._running
        if running is None or running.plugin is None:
            return
        if not running.asking.is_open or question_id != running.question_id:
            return
        running.asking = after_answer(running.asking, self._clock.now())
        self._emit(Withdrawn(question_id=question_id))
        text, plugin = typed(answer), running.plugin
        self._help(running, lambda: plugin.handle_user_input(text))

    async def _play(self, running: _PluginTurn) -> str | None:
        """The turn's task: what happens in it is the plugin's own."""
        turn = running.turn
        plugin = self._plugin
        if plugin is None:
            plugin = await self._start()
        self._plugin = running.plugin = plugin
        self._look_later(running)
        text = f"{turn.context}\n\n{turn.text}" if turn.context else turn.text
        words = LaneInput(text, [str(path) for path in turn.images])
        return await called(lambda: plugin.run_turn(words))

    async def _start(self) -> LanePlugin:
        plugin: LanePlugin | None = None
        try:
            plugin = self._cls()
            # By keyword, as the document calls it.
            await plugin.start(cwd=str(self._cwd), platform=self._platform, formatter=MarkdownFormatter())
        except BaseException as error:
            leaving = None if plugin is None else self._forget(plugin)
            if isinstance(error, (Exception, SystemExit)):
                if leaving is not None:
                    await asyncio.wait({leaving})
                raise _NotStarted(f"Failed to start {self.name}: {words_of(error)}") from error
            raise
        return plugin

    # ── ends of turns ──────────────────────────────────────────────────────

    def _settle(self, running: _PluginTurn, task: asyncio.Task[str | None]) -> None:
        """The turn's task has ended. A plugin that raised is stopped before its turn is told to be over."""
        running.is_settled = True
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if self._running is not running:
            if error is not None and not task.cancelled():
                _log.info("lane %s, left behind, has ended: %s", self.name, words_of(error))
            return
        error = running.fault or error
        if error is None:
            self._accept(running)
            summary = task.result()
            if summary:
                self._emit(LaneSummary(turn_id=running.turn.ticket, summary=str(summary)))
        status: Status = "interrupted" if running.is_interrupted else "failed" if error else "completed"
        is_kept = error is None or (running.is_interrupted and task.cancelled() and running.fault is None)
        leaving = None
        if not is_kept and running.plugin is not None:
            leaving = self._forget(running.plugin)
        failure = self._failure(error) if error is not None and status == "failed" else None
        if leaving is None:
            self._end(running, status, failure)
        else:
            leaving.add_done_callback(lambda _: self._end(running, status, failure))

    def _end(self, running: _PluginTurn, status: Status, failure: Failure | None = None) -> None:
        if self._running is not running:
            return
        for cancel in (running.cancel_look, *running.timers):
            cancel()
        for helper in running.helpers:
            helper.cancel()
        if running.asking.is_open:
            self._emit(Withdrawn(question_id=running.question_id))
        last = self._platform.last_message
        self._platform.end()
        self._running = None
        self._emit(TurnDone(turn_id=running.turn.ticket, status=status, text=last, failure=failure))

    def _failure(self, error: BaseException) -> Failure:
        _log.debug("lane %s failed", self.name, exc_info=error)
        if isinstance(error, _NotStarted):
            return Failure(kind="lane_start", message=str(error))
        if isinstance(error, asyncio.CancelledError):
            return Failure(kind="lane_error", message=f"Lane {self.name} error: its turn was cancelled")
        return Failure(kind="lane_error", message=f"Lane {self.name} error: {words_of(error)}")

    def _cancel(self, running: _PluginTurn) -> None:
        if self._running is not running or running.is_settled or running.task is None:
            return
        running.task.cancel()
        running.timers.append(self._clock.after(CANCEL_S, lambda: self._abandon(running)))

    def _abandon(self, running: _PluginTurn) -> None:
        """The plugin goes on in spite of everything: without us."""
        if self._running is not running or running.is_settled:
            return
        if running.plugin is not None:
            self._forget(running.plugin)
        if running.fault is not None and not running.is_interrupted:
            self._end(running, "failed", self._failure(running.fault))
        else:
            self._end(running, "interrupted")

    def _forget(self, plugin: LanePlugin) -> asyncio.Task[None]:
        if self._plugin is plugin:
            self._plugin = None
        leaving = asyncio.create_task(stop(self.name, plugin, self._clock))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        return leaving

    # ── questions ──────────────────────────────────────────────────────────

    def _on_shown(self) -> None:
        running = self._running
        if running is not None:
            self._accept(running)
            self._look(running, has_spoken=True)

    def _look_later(self, running: _PluginTurn) -> None:
        def again() -> None:
            if self._running is running:
                self._look(running)
                self._look_later(running)

        running.cancel_look = self._clock.after(LOOK_EVERY_S, again)

    def _look(self, running: _PluginTurn, *, has_spoken: bool = False) -> None:
        plugin = running.plugin
        if plugin is None or running.is_settled or running.fault is not None:
            return
        try:
            wants = bool(plugin.wants_user_input)
        except (Exception, SystemExit) as error:  # noqa: BLE001  it ends the plugin's turn, nothing else
            self._fail(running, PluginExited(error.code) if isinstance(error, SystemExit) else error)
            return
        now = self._clock.now()
        running.asking, effect = look(running.asking, wants=wants, now=now, has_spoken=has_spoken)
        if effect == "ask":
            self._accept(running)
            running.questions += 1
            running.question_id = f"{running.turn.ticket}?{running.questions}"
            words = self._platform.last_message
            self._emit(
                Asked(question=input_question(self.name, running.turn.ticket, running.question_id, words))
            )
        elif effect == "withdraw":
            self._emit(Withdrawn(question_id=running.question_id))

    # ── helpers ────────────────────────────────────────────────────────────

    def _help(self, running: _PluginTurn, call: Callable[[], Awaitable[None]]) -> None:
        """Call a method of the plugin beside its turn."""

        def settle(task: asyncio.Task[None]) -> None:
            running.helpers.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                self._fail(running, error)

        helper = asyncio.create_task(called(call))
        running.helpers.add(helper)
        helper.add_done_callback(settle)

    def _fail(self, running: _PluginTurn, error: BaseException) -> None:
        if self._running is running and running.fault is None:
            running.fault = error
            self._cancel(running)

    def _accept(self, running: _PluginTurn) -> None:
        """The first sign that the plugin has its input."""
        if not running.is_accepted:
            running.is_accepted = True
            self._emit(Accepted(turn_id=running.turn.ticket, client_id=running.turn.ticket))

    def _emit(self, event: Event) -> None:
        if self._host is not None:
            self._host.on_event(event)


class _NotStarted(Exception):
    """The plugin could not be started; the text is for users."""


def _nothing() -> None:
    """Nothing to cancel yet."""
