"""What can be asked of the sessions here. The local user may see all of them, whoever's they are.

Owns the answers to requests and the watches; knows no socket.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

from laneway import __version__
from laneway.base.errors import LanewayError, QuestionGone, RemoteError
from laneway.core.colleague import Colleague
from laneway.core.colleagues import Colleagues
from laneway.core.model import Answer, Closed, EngineGone, Event, TurnDone
from laneway.core.ports import Clock
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
    seen,
    which,
)
from laneway.doors.local.watch import Line, Watch
from laneway.wire.messages import INTERNAL_ERROR, METHOD_NOT_FOUND, SHOWN_CHARS, Raw

MAX_WATCHES = 64
"""In this process: windows that people have open. Each costs every event once more."""
STOP_S = 12.0
"""For a turn to end once it was cancelled: longer than a session waits before it calls it stuck."""
LOOK_S = 0.25
"""Between two looks at a session that was told to stop: a turn that never began ends without an event."""


class Counter:
    def __init__(self, colleagues: Colleagues, clock: Clock) -> None:
        self._colleagues = colleagues
        self._clock = clock
        self._watches: set[Watch] = set()

    async def serve(self, line: Line, method: str, params: Raw) -> Any:
        """Answer one request, or raise what becomes its error."""
        answer = _METHODS.get(method)
        if answer is None:
            raise RemoteError(METHOD_NOT_FOUND, f"method not found: {method[:SHOWN_CHARS]}")
        try:
            return await answer(self, line, params)
        except RemoteError:
            raise
        except LanewayError as error:
            raise RemoteError(INTERNAL_ERROR, str(error)) from error

    async def wait_told(self) -> None:
        """Until everybody who watches a session that is over has heard so."""
        for watch in list(self._watches):
            if watch.is_over:
                await watch.told.wait()

    def _find(self, wanted: Which) -> Colleague:
        for colleague in self._colleagues.live():
            if wanted.means(colleague):
                return colleague
        raise RemoteError(NOT_HERE, f"There is no session {wanted.name[:SHOWN_CHARS]} here.")

    # ── the methods ────────────────────────────────────────────────────────

    async def _list(self, line: Line, params: Raw) -> Listed:
        pid = os.getpid()
        rows = tuple(seen(colleague, pid) for colleague in self._colleagues.live())
        return Listed(pid=pid, version=__version__, sessions=rows)

    async def _watch(self, line: Line, params: Raw) -> Watched:
        colleague = self._find(which(params))
        if len(self._watches) >= MAX_WATCHES:
            raise RemoteError(TOO_MANY, f"No more than {MAX_WATCHES} watchers at once.")
        watch = Watch(colleague, line)
        self._watches.add(watch)
        try:
            return await watch.run()
        finally:
            self._watches.discard(watch)

    async def _stop(self, line: Line, params: Raw) -> Stopped:
        colleague = self._find(which(params))
        was = colleague.state
        is_stopped = True
        if was == "busy":
            self._colleagues.note("stop", colleague, outcome="by the local user")
            is_stopped = await self._cancel(colleague)
        return Stopped(
            agent_id=colleague.agent_id, identity=colleague.identity, was=was, is_stopped=is_stopped
        )

    async def _cancel(self, colleague: Colleague) -> bool:
        """Take back what runs and what waits; whether that has come to its end."""
        ending = _Ending()
        colleague.session.attach(ending)
        colleague.session.cancel_all()
        last = self._clock.now() + STOP_S
        try:
            while not ending.is_over and colleague.state == "busy" and self._clock.now() < last:
                ending.news.clear()
                stop_clock = self._clock.after(LOOK_S, ending.news.set)
                try:
                    await ending.news.wait()
                finally:
                    stop_clock()
        finally:
            colleague.session.unsubscribe(ending)
        return ending.is_over or colleague.state != "busy"

    async def _close(self, line: Line, params: Raw) -> Any:
        colleague = self._find(which(params))
        return await self._colleagues.close(colleague.principal, agent_id=colleague.agent_id)

    async def _answer(self, line: Line, params: Raw) -> Decided:
        """The first valid answer wins: whoever else was asked hears that the question is settled."""
        colleague, given = self._find(which(params)), decision(params)
        if not await line.is_person():
            raise RemoteError(NOT_A_PERSON, "A question is answered by a person at a terminal only.")
        answer = Answer(choice_id=given.choice_id, values=given.values)
        try:
            await colleague.session.answer(given.question_id, answer)
        except QuestionGone as gone:
            raise RemoteError(QUESTION_SETTLED, "The question is settled, or takes no such answer.") from gone
        self._colleagues.note("answer", colleague, outcome=f"{given.choice_id} by the local user")
        return Decided(agent_id=colleague.agent_id, question_id=given.question_id)


class _Ending:
    """Hears the end of a turn."""

    lost = 0

    def __init__(self) -> None:
        self.news = asyncio.Event()
        self.is_over = False

    def push(self, event: Event) -> None:
        if isinstance(event, (TurnDone, EngineGone, Closed)):
            self.is_over = True
            self.news.set()

    def close(self) -> None:
        self.news.set()


_METHODS: dict[str, Callable[[Counter, Line, Raw], Awaitable[Any]]] = {
    LIST: Counter._list,
    WATCH: Counter._watch,
    STOP: Counter._stop,
    CLOSE: Counter._close,
    ANSWER: Counter._answer,
}
