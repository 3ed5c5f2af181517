"""The sessions that browsers watch: one watch for each, for all browsers, until none asks any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from laneway.base.errors import LanewayError, LimitReached, SessionUnknown
from laneway.base.ids import new_id
from laneway.core.background import TaskSet
from laneway.core.model import Event, Question
from laneway.core.ports import Clock
from laneway.doors.console.panels.ports import LiveSessionRow, LiveSessions
from laneway.doors.console.panels.session_log import SessionLog
from laneway.doors.page_parts import PageFeed

MAX_WATCHES = 32
"""At once: each holds a connection to its process, and what it was shown."""
UNASKED_S = 90.0
"""Until a watch that no browser asks about is ended. A page that shows one asks every 30 seconds."""
GATHER_S = 0.1
"""News of one session are published at most so often: browsers ask for what is new."""
WATCH = "watch"
"""The topic of news of one session."""


class SessionWatches:
    """All watches of this console."""

    def __init__(self, sessions: LiveSessions, feed: PageFeed, clock: Clock, tasks: TaskSet) -> None:
        self._sessions = sessions
        self._feed = feed
        self._clock = clock
        self._tasks = tasks
        self._watched: dict[str, WatchedSession] = {}

    async def of(self, agent_id: str) -> WatchedSession:
        """The watch of a session, begun if there is none. `SessionUnknown`."""
        watched = self._watched.get(agent_id)
        if watched is None:
            if len(self._watched) >= MAX_WATCHES:
                raise LimitReached("watched sessions", MAX_WATCHES)
            watched = self._watched[agent_id] = WatchedSession(agent_id, self._feed, self._clock)
            task = self._tasks.spawn(self._run(watched), f"watch {agent_id}")
            task.add_done_callback(lambda done: watched.stop_waiting())
            watched.end_with(task, lambda: self._forget(watched))
        watched.keep()
        await watched.begun.wait()
        if watched.problem is not None:
            raise watched.problem
        return watched

    async def _run(self, watched: WatchedSession) -> None:
        try:
            await self._sessions.watch(watched.agent_id, watched)
        except SessionUnknown as problem:
            self._lose(watched, problem, "The session was closed.")
        except LanewayError as problem:
            self._lose(watched, problem, str(problem))

    def _lose(self, watched: WatchedSession, problem: LanewayError, why: str) -> None:
        if watched.begun.is_set():
            watched.lose(why)
        else:
            watched.problem = problem
            self._forget(watched)

    def _forget(self, watched: WatchedSession) -> None:
        self._watched.pop(watched.agent_id, None)


class WatchedSession:
    """One watched session: a `SessionViewer` that publishes that there are news."""

    def __init__(self, agent_id: str, feed: PageFeed, clock: Clock) -> None:
        self.agent_id = agent_id
        self.run = new_id("watch")
        """Versions of the log are those of this watch only."""
        self.log = SessionLog()
        self.begun = asyncio.Event()
        """Set when its state is known, or `problem` is."""
        self.problem: LanewayError | None = None
        self._feed = feed
        self._clock = clock
        self._is_gathering = False
        self._stop_clock: Callable[[], None] = lambda: None
        self._end: Callable[[], None] = lambda: None

    def end_with(self, task: asyncio.Task[None], forget: Callable[[], None]) -> None:
        def end() -> None:
            forget()
            task.cancel()

        self._end = end

    def keep(self) -> None:
        """A browser has asked: go on for a while."""
        self._stop_clock()
        self._stop_clock = self._clock.after(UNASKED_S, self._end)

    def stop_waiting(self) -> None:
        self.begun.set()

    def begin(self, session: LiveSessionRow, questions: Sequence[Question]) -> None:
        self.log.begin(session, questions)
        self.begun.set()
        self._publish()

    def show(self, event: Event) -> None:
        self.log.show(event)
        self._gather()

    def miss(self, count: int) -> None:
        self.log.miss(count)
        self._gather()

    def lose(self, why: str) -> None:
        self.log.lose(why)
        self._publish()

    def _gather(self) -> None:
        if not self._is_gathering:
            self._is_gathering = True
            self._clock.after(GATHER_S, self._publish)

    def since(self, run: str | None, version: int) -> dict[str, Any]:
        """What is new after this version of this watch; all of it for whoever saw another watch."""
        return {"watch": self.run, **self.log.since(version if run == self.run else 0)}

    def _publish(self) -> None:
        self._is_gathering = False
        self._feed.publish(WATCH, {"agent_id": self.agent_id, "watch": self.run})
