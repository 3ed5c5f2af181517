"""Requests, answers and notifications of the local socket, as msgspec structs.

Client and server may be of different versions, so most fields have a default.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from laneway.base.engines import DEFAULT_BACKEND
from laneway.base.errors import RemoteError
from laneway.core.model import Question
from laneway.doors.local.live import LocalSession
from laneway.wire.messages import INVALID_PARAMS, UNREADABLE, Raw

LIST, WATCH, STOP, CLOSE = "sessions/list", "sessions/watch", "sessions/stop", "sessions/close"
ANSWER = "sessions/answer"
SNAPSHOT, EVENT = "session/snapshot", "session/event"

NOT_HERE = -32002
"""No session of this process has that name."""
TOO_MANY = -32004
FROM_AGENT = -32005
"""The caller was started by an agent, or may have been: it may not ask."""
QUESTION_SETTLED = -32007
"""The question is answered or withdrawn, or does not take this answer."""
NOT_A_PERSON = -32008
"""Only a person at a terminal may answer."""


class Which(msgspec.Struct, frozen=True):
    """A session, by one of its names."""

    agent_id: str | None = None
    identity: str | None = None
    thread_id: str | None = None

    @property
    def name(self) -> str:
        return self.agent_id or self.identity or self.thread_id or ""

    def means(self, named: LocalSession) -> bool:
        pairs = (
            (self.agent_id, named.agent_id),
            (self.identity, named.identity),
            (self.thread_id, named.thread_id),
        )
        return any(selector and selector == own for selector, own in pairs)


def which(params: Raw) -> Which:
    """The session that a request names; raises the error of a request that names none."""
    try:
        selector = msgspec.json.decode(params or b"{}", type=Which)
    except UNREADABLE as problem:
        raise RemoteError(INVALID_PARAMS, f"Invalid params: {problem}") from problem
    if sum(bool(name) for name in msgspec.structs.astuple(selector)) != 1:
        raise RemoteError(INVALID_PARAMS, "Name a session by one of agent_id, identity and thread_id.")
    return selector


class Decision(msgspec.Struct, frozen=True):
    """A person's answer to an open question."""

    question_id: str
    choice_id: str
    values: dict[str, Any] = {}
    words: str = ""


def decision(params: Raw) -> Decision:
    try:
        return msgspec.json.decode(params or b"{}", type=Decision)
    except UNREADABLE as problem:
        raise RemoteError(INVALID_PARAMS, f"Invalid params: {problem}") from problem


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `sessions/answer`: the question is decided."""

    agent_id: str
    question_id: str


class LiveSessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A live session, as another terminal of its user sees it."""

    agent_id: str
    identity: str
    team: str
    thread_id: str = ""
    pid: int = 0
    state: Literal["busy", "idle", "closed"] = "idle"
    turns: int = 0
    tokens: int = 0
    open_questions: int = 0
    dropped_events: int = 0
    """Events that readers of this session missed because they were too slow."""
    door: str = ""
    """The front end that runs it, by its command: `mcp`, `acp`, `chat`, …; empty of an older Laneway."""
    last_text: str = ""
    """The beginning of the last message of its last turn."""
    backend: str = DEFAULT_BACKEND
    cwd: str | None = None
    branch: str | None = None
    tag: str | None = None
    role: str | None = None
    model: str | None = None
    started_at: str = ""
    last_active: str = ""


def session_info(named: LocalSession, pid: int, door: str = "") -> LiveSessionInfo:
    record = named.record
    return LiveSessionInfo(
        agent_id=named.agent_id,
        identity=named.identity,
        team=record.team,
        backend=record.backend,
        thread_id=named.thread_id,
        pid=pid,
        state=named.state,
        turns=named.turns,
        tokens=named.tokens,
        open_questions=len(named.session.questions),
        dropped_events=named.session.lost_events,
        door=door,
        last_text=named.session.last_text,
        cwd=record.cwd,
        branch=record.branch,
        tag=record.tag,
        role=record.role,
        model=record.model,
        started_at=record.started_at,
        last_active=record.last_active,
    )


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """All live sessions of one process."""

    pid: int
    version: str = ""
    sessions: tuple[LiveSessionInfo, ...] = ()


class SessionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a session when a watch begins."""

    session: LiveSessionInfo
    questions: tuple[Question, ...] = ()
    """The open ones."""


class WatchedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event, as `laneway.core.model.public` encodes it."""

    agent_id: str
    event: dict[str, Any]
    lost: int = 0
    """Events that this watcher has missed so far because it was too slow."""


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a watch: the session is closed."""

    agent_id: str
    lost: int = 0


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `sessions/stop`."""

    agent_id: str
    identity: str
    was: Literal["busy", "idle", "closed"]
    is_stopped: bool
    """False: it was told to stop, and has not done so yet."""
