"""The live sessions of all serving processes, for the console: each is reached by its process's socket."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from laneway.base.engines import BACKENDS
from laneway.base.errors import LanewayError, QuestionGone, RemoteError, SessionUnknown, WireBroken
from laneway.core.model import Answer
from laneway.doors.console.panels.ports import LiveSessionRow, ProcessProblem, SessionRows, SessionViewer
from laneway.doors.local.client import connect
from laneway.doors.local.event_decoding import event_of
from laneway.doors.local.scan import LiveScan, ask
from laneway.doors.local.shapes import (
    ANSWER,
    EVENT,
    NOT_A_PERSON,
    NOT_HERE,
    QUESTION_SETTLED,
    SNAPSHOT,
    STOP,
    WATCH,
    Decided,
    LiveSessionInfo,
    SessionSnapshot,
    Stopped,
    Watched,
    WatchedEvent,
)
from laneway.doors.local.socket_files import SocketFile, live_sockets
from laneway.wire.messages import METHOD_NOT_FOUND, Raw

ROWS_S = 2.0
"""For a process to list its sessions. One that is stopped must not delay the others for long."""
BEGIN_S = 5.0
"""For a process to tell the state of a session, or to take an answer."""
STOP_S = 20.0
"""For a turn to be stopped: the session itself gives up on a stuck one after ten seconds."""
ELSEWHERE = "The question waits for an answer where the session was started."

T = TypeVar("T")


class SocketSessions:
    """The `LiveSessions` of the console. It asks the processes anew each time."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = environment
        self._sockets: dict[str, SocketFile] = {}
        """Where sessions were when they were last listed."""

    async def rows(self) -> SessionRows:
        scan = await self._scan()
        silent = [ProcessProblem(each.pid, f"no answer within {ROWS_S:g} s") for each in scan.silent]
        refused = [ProcessProblem(each.pid, why) for each, why in scan.refused]
        rows = [session_row(each.info) for each in scan.sessions]
        rows.sort(key=lambda row: (row.state != "busy", row.door, row.name, row.agent_id))
        return SessionRows(tuple(rows), (*silent, *refused))

    async def _scan(self) -> LiveScan:
        scan = await ask(await asyncio.to_thread(live_sockets, self._environment), ROWS_S)
        self._sockets = {each.info.agent_id: each.socket for each in scan.sessions}
        return scan

    async def watch(self, agent_id: str, viewer: SessionViewer) -> None:
        socket = await self._socket(agent_id)
        listener = ViewerListener(viewer)
        try:
            async with asyncio.timeout(BEGIN_S) as deadline:
                listener.deadline = deadline
                async with connect(socket.path, listener.on_notification) as client:
                    await client.call(WATCH, {"agent_id": agent_id}, reply=Watched)
        except TimeoutError:
            raise _silent(socket) from None
        except RemoteError as refused:
            raise _problem(refused, agent_id) from None
        except WireBroken:
            raise WireBroken(f"Process {socket.pid}, which ran the session, has ended.") from None

    async def stop(self, agent_id: str) -> bool:
        return (await self._call(agent_id, STOP, {}, Stopped, STOP_S)).is_stopped

    async def answer(self, agent_id: str, question_id: str, answer: Answer) -> None:
        if (await self._socket(agent_id)).pid == os.getpid():
            raise LanewayError("This page holds the session's conversation itself: answer there.")
        facts = {
            "question_id": question_id,
            "choice_id": answer.choice_id,
            "values": answer.values,
            "words": answer.words,
        }
        await self._call(agent_id, ANSWER, facts, Decided, BEGIN_S)

    async def _call(
        self, agent_id: str, method: str, params: dict[str, Any], reply: type[T], most_s: float
    ) -> T:
        socket = await self._socket(agent_id)
        try:
            async with asyncio.timeout(most_s), connect(socket.path) as client:
                return await client.call(method, {"agent_id": agent_id, **params}, reply=reply)
        except TimeoutError:
            raise _silent(socket) from None
        except RemoteError as refused:
            raise _problem(refused, agent_id) from None
        except WireBroken:
            raise SessionUnknown(agent_id) from None

    async def _socket(self, agent_id: str) -> SocketFile:
        """The socket of the process that runs the session."""
        if agent_id not in self._sockets:
            await self._scan()
        if agent_id not in self._sockets:
            raise SessionUnknown(agent_id)
        return self._sockets[agent_id]


class ViewerListener:
    """Passes the notifications of a watch to a viewer. Only the first one has a deadline."""

    def __init__(self, viewer: SessionViewer) -> None:
        self.deadline: asyncio.Timeout
        self._viewer = viewer
        self._lost = 0

    def on_notification(self, method: str, params: Raw) -> None:
        if method == SNAPSHOT:
            self.deadline.reschedule(None)
            snapshot = msgspec.json.decode(params, type=SessionSnapshot)
            self._viewer.begin(session_row(snapshot.session), snapshot.questions)
        elif method == EVENT:
            watched = msgspec.json.decode(params, type=WatchedEvent)
            if watched.lost > self._lost:
                self._viewer.miss(watched.lost - self._lost)
                self._lost = watched.lost
            event = event_of(watched.event)
            if event is not None:  # else it is of a newer Laneway, and unknown here
                self._viewer.show(event)


def session_row(info: LiveSessionInfo) -> LiveSessionRow:
    return LiveSessionRow(
        agent_id=info.agent_id,
        name=info.identity,
        team=info.team,
        door=info.door,
        pid=info.pid,
        state=info.state,
        engine=BACKENDS.get(info.backend, info.backend),
        cwd=info.cwd or "",
        branch=info.branch or "",
        model=info.model or "",
        turns=info.turns,
        tokens=info.tokens,
        open_questions=info.open_questions,
        last_text=info.last_text,
        last_active=info.last_active,
    )


def _silent(socket: SocketFile) -> WireBroken:
    return WireBroken(f"Process {socket.pid} did not answer in time: it may be stopped, or very busy.")


def _problem(refused: RemoteError, agent_id: str) -> LanewayError:
    """What a refusal of the process means here."""
    if refused.code == NOT_HERE:
        return SessionUnknown(agent_id)
    if refused.code == QUESTION_SETTLED:
        return QuestionGone(refused.message)
    if refused.code == NOT_A_PERSON:
        return LanewayError(
            "Answers are taken only from a console that a person has started at a terminal, in the "
            f"foreground. {ELSEWHERE}"
        )
    if refused.code == METHOD_NOT_FOUND:
        return LanewayError(f"An older Laneway runs this session. {ELSEWHERE}")
    return LanewayError(refused.message)
