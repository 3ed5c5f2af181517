"""The panel of live sessions, of every front end on this machine: watched, answered and stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from laneway.base.errors import QuestionGone, SessionUnknown
from laneway.core.background import TaskSet
from laneway.core.ports import Clock
from laneway.doors.console.panels.news import news_of
from laneway.doors.console.panels.plain_json import shown
from laneway.doors.console.panels.ports import LiveSessions
from laneway.doors.console.panels.question_view import AnswerRefused, FilledIn, answer_of
from laneway.doors.console.panels.session_watches import SessionWatches, WatchedSession
from laneway.doors.page_parts import PageFeed, PageRefused, PageReply, PageRequest, json_reply, unknown

LOOK_S = 2.0
"""Between two looks at all processes, while a browser is open: each answers in a millisecond."""
GONE = "This session has ended, or its process has"


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request that says everything in its address."""


class SessionsPart:
    """A `PagePart`."""

    name = "sessions"
    title = "Sessions"
    static = Path(__file__).with_name("static") / "sessions"

    def __init__(self, sessions: LiveSessions, clock: Clock) -> None:
        self._sessions = sessions
        self._clock = clock
        self._watches: SessionWatches

    @asynccontextmanager
    async def running(self, feed: PageFeed) -> AsyncIterator[None]:
        tasks = TaskSet()
        self._watches = SessionWatches(self._sessions, feed, self._clock, tasks)
        try:
            async with news_of(feed, self._sessions.rows, self._clock, LOOK_S):
                yield
        finally:
            await tasks.cancel()

    async def get(self, request: PageRequest) -> PageReply:
        match request.path:
            case ():
                return json_reply(shown(await self._sessions.rows()))
            case (agent_id, "watch"):
                watch = await self._watch(agent_id)
                return json_reply(watch.since(request.query("watch"), request.whole("after", 0)))
            case _:
                raise unknown()

    async def post(self, request: PageRequest) -> PageReply:
        match request.path:
            case (agent_id, "stop"):
                await request.value(Nothing)
                return json_reply({"is_stopped": await self._stop(agent_id)})
            case (agent_id, "answer"):
                await self._answer(agent_id, await request.value(FilledIn))
                return json_reply({})
            case _:
                raise unknown()

    async def _watch(self, agent_id: str) -> WatchedSession:
        try:
            return await self._watches.of(agent_id)
        except SessionUnknown:
            raise PageRefused(404, GONE) from None

    async def _stop(self, agent_id: str) -> bool:
        try:
            return await self._sessions.stop(agent_id)
        except SessionUnknown:
            raise PageRefused(404, GONE) from None

    async def _answer(self, agent_id: str, filled: FilledIn) -> None:
        """Only a question that this console has seen open: what is answered must have been shown."""
        watch = await self._watch(agent_id)
        question = watch.log.questions.get(filled.question_id)
        if question is None:
            raise PageRefused(409, "The question is settled, or was withdrawn")
        try:
            answer = answer_of(question, filled)
        except AnswerRefused as refused:
            raise PageRefused(400, str(refused)) from None
        try:
            await self._sessions.answer(agent_id, question.question_id, answer)
        except SessionUnknown:
            raise PageRefused(404, GONE) from None
        except QuestionGone:
            raise PageRefused(409, "Somebody else was faster: the question is settled") from None
