"""The methods of the local server: list, watch, stop, close and answer for the sessions of this process.

The local user may see all sessions, whichever client they belong to. Owns the watches; knows no socket.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

from laneway import __version__
from laneway.base.errors import LanewayError, QuestionGone, RemoteError
from laneway.core.model import Answer, Closed, EngineGone, Event, TurnDone
from laneway.core.ports import Clock
from laneway.doors.local.live import LocalSession, LocalSessions
from laneway.doors.local.shapes import (
    ANSWER,
    CLOSE,
    LIST,
    NOT_A_PERSON,
    NOT_HERE,
    QUESTION_SETTLED,
    STOP,
    TOO_MANY,
    WATCH,
    Decided,
    Listed,
    Stopped,
    Watched,
    Which,
    decision,
    session_info,
    which,
)
from laneway.doors.local.watch import SessionWatch, WatcherChannel
from laneway.wire.messages import INTERNAL_ERROR, METHOD_NOT_FOUND, SHOWN_CHARS, Raw

MAX_WATCHES = 64
"""In this process: windows that people have open. Each watch costs a copy of every event."""
STOP_S = 12.0
"""For a cancelled turn to end: longer than a session waits before it calls a turn stuck."""
LOOK_S = 0.25
"""Between two checks of a session that was told to stop: a turn that never began ends without an event."""


class LocalApi:
    """Answers the requests of all local connections."""

    def __init__(self, sessions: LocalSessions, clock: Clock, door: str = "") -> None:
        self._sessions = sessions
        self._clock = clock
        self._door = door
        self._watches: set[SessionWatch] = set()

    async def serve(self, channel: WatcherChannel, method: str, params: Raw) -> Any:
        """Answer one request, or raise what becomes its error."""
        answer = _METHODS.get(method)
        if answer is None:
            raise RemoteError(METHOD_NOT_FOUND, f"method not found: {method[:SHOWN_CHARS]}")
        try:
            return await answer(self, channel, params)
        except RemoteError:
            raise
        except LanewayError as error:
            raise RemoteError(INTERNAL_ERROR, str(error)) from error

    async def wait_watches_over(self) -> None:
        """Wait until every watcher of a closed session has been sent its end."""
        for watch in list(self._watches):
            if watch.is_over:
                await watch.done.wait()

    def _find(self, selector: Which) -> LocalSession:
        for named in self._sessions.live():
            if selector.means(named):
                return named
        raise RemoteError(NOT_HERE, f"There is no session {selector.name[:SHOWN_CHARS]} here.")

    # ── the methods ────────────────────────────────────────────────────────

    async def _list(self, channel: WatcherChannel, params: Raw) -> Listed:
        pid = os.getpid()
        rows = tuple(session_info(named, pid, self._door) for named in self._sessions.live())
        return Listed(pid=pid, version=__version__, sessions=rows)

    async def _watch(self, channel: WatcherChannel, params: Raw) -> Watched:
        named = self._find(which(params))
        if len(self._watches) >= MAX_WATCHES:
            raise RemoteError(TOO_MANY, f"No more than {MAX_WATCHES} watchers at once.")
        watch = SessionWatch(named, channel, self._door)
        self._watches.add(watch)
        try:
            return await watch.run()
        finally:
            self._watches.discard(watch)

    async def _stop(self, channel: WatcherChannel, params: Raw) -> Stopped:
        named = self._find(which(params))
        was = named.state
        is_stopped = True
        if was == "busy":
            self._sessions.note("stop", named, outcome="by the local user")
            is_stopped = await self._cancel(named)
        return Stopped(
            agent_id=named.agent_id,
            identity=named.identity or named.agent_id,
            was=was,
            is_stopped=is_stopped,
        )

    async def _cancel(self, named: LocalSession) -> bool:
        """Cancel the running turn and those that wait; whether they have ended in time."""
        turn_end = _TurnEnd()
        named.session.attach(turn_end)
        named.session.cancel_all()
        last = self._clock.now() + STOP_S
        try:
            while not turn_end.is_over and named.state == "busy" and self._clock.now() < last:
                turn_end.changed.clear()
                stop_clock = self._clock.after(LOOK_S, turn_end.changed.set)
                try:
                    await turn_end.changed.wait()
                finally:
                    stop_clock()
        finally:
            named.session.unsubscribe(turn_end)
        return turn_end.is_over or named.state != "busy"

    async def _close(self, channel: WatcherChannel, params: Raw) -> Any:
        named = self._find(which(params))
        return await self._sessions.close(named.principal, agent_id=named.agent_id)

    async def _answer(self, channel: WatcherChannel, params: Raw) -> Decided:
        """The first valid answer wins: others who were asked learn that the question is settled."""
        named, decided = self._find(which(params)), decision(params)
        if not await channel.is_person():
            raise RemoteError(NOT_A_PERSON, "A question is answered by a person at a terminal only.")
        answer = Answer(choice_id=decided.choice_id, values=decided.values, words=decided.words)
        try:
            await named.session.answer(decided.question_id, answer)
        except QuestionGone as gone:
            raise RemoteError(QUESTION_SETTLED, "The question is settled, or takes no such answer.") from gone
        self._sessions.note("answer", named, outcome=f"{decided.choice_id} by the local user")
        return Decided(agent_id=named.agent_id, question_id=decided.question_id)


class _TurnEnd:
    """A reader of events that waits for the end of a turn."""

    lost = 0

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.is_over = False

    def push(self, event: Event) -> None:
        if isinstance(event, (TurnDone, EngineGone, Closed)):
            self.is_over = True
            self.changed.set()

    def close(self) -> None:
        self.changed.set()


_METHODS: dict[str, Callable[[LocalApi, WatcherChannel, Raw], Awaitable[Any]]] = {
    LIST: LocalApi._list,
    WATCH: LocalApi._watch,
    STOP: LocalApi._stop,
    CLOSE: LocalApi._close,
    ANSWER: LocalApi._answer,
}
