"""What is said over the socket, as values. Both ends may be of different versions: most has a default."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from laneway.base.errors import RemoteError
from laneway.core.colleague import Colleague
from laneway.core.model import Question
from laneway.wire.messages import INVALID_PARAMS, UNREADABLE, Raw

LIST, WATCH, STOP, CLOSE = "sessions/list", "sessions/watch", "sessions/stop", "sessions/close"
ANSWER = "sessions/answer"
SNAPSHOT, EVENT = "session/snapshot", "session/event"

NOT_HERE = -32002
"""No session of this process is meant."""
TOO_MANY = -32004
FROM_AGENT = -32005
"""An agent started whoever asks, or it cannot be told: it may not ask."""
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

    def means(self, colleague: Colleague) -> bool:
        given_and_had = (
            (self.agent_id, colleague.agent_id),
            (self.identity, colleague.identity),
            (self.thread_id, colleague.thread_id),
        )
        return any(given and given == had for given, had in given_and_had)


def which(params: Raw) -> Which:
    """The session that a request names, or the error that it gets."""
    try:
        given = msgspec.json.decode(params or b"{}", type=Which)
    except UNREADABLE as problem:
        raise RemoteError(INVALID_PARAMS, f"Invalid params: {problem}") from problem
    if sum(bool(name) for name in msgspec.structs.astuple(given)) != 1:
        raise RemoteError(INVALID_PARAMS, "Name a session by one of agent_id, identity and thread_id.")
    return given


class Decision(msgspec.Struct, frozen=True):
    """A person's answer to an open question."""

    question_id: str
    choice_id: str
    values: dict[str, Any] = {}


def decision(params: Raw) -> Decision:
    try:
        return msgspec.json.decode(params or b"{}", type=Decision)
    except UNREADABLE as problem:
        raise RemoteError(INVALID_PARAMS, f"Invalid params: {problem}") from problem


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    agent_id: str
    question_id: str


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A live session, as its user sees it from outside."""

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
    """Events that readers of this session were too slow for."""
    cwd: str | None = None
    branch: str | None = None
    tag: str | None = None
    role: str | None = None
    model: str | None = None
    started_at: str = ""
    last_active: str = ""


def seen(colleague: Colleague, pid: int) -> Seen:
    record = colleague.record
    return Seen(
        agent_id=colleague.agent_id,
        identity=colleague.identity,
        team=record.team,
        thread_id=colleague.thread_id,
        pid=pid,
        state=colleague.state,
        turns=colleague.turns,
        tokens=colleague.tokens,
        open_questions=len(colleague.session.questions),
        dropped_events=colleague.session.lost_events,
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
    sessions: tuple[Seen, ...] = ()


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a watcher must know before the first event."""

    session: Seen
    questions: tuple[Question, ...] = ()
    """Those that are open."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """One event, as `laneway.core.model.public` words it."""

    agent_id: str
    event: dict[str, Any]
    lost: int = 0
    """Events that this watcher was too slow for, so far."""


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a watch: the session is closed."""

    agent_id: str
    lost: int = 0


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    agent_id: str
    identity: str
    was: Literal["busy", "idle", "closed"]
    is_stopped: bool
    """False: it was told to stop, and has not done so yet."""
