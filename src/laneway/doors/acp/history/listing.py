"""Answers `session/list`: Codex's threads as sessions, whichever program started them.

Codex has the list and its pages; its cursors are passed to the client and back unchanged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, Protocol

from laneway.base.errors import EngineRefused
from laneway.base.plain import label
from laneway.core.ports import ThreadInfo, ThreadList
from laneway.doors.acp.faults import bad_params
from laneway.doors.acp.history.user_blocks import without_resources
from laneway.wire.messages import INVALID_REQUEST

SESSIONS_A_PAGE = 50
"""In one page: more than a list shows without scrolling."""
TITLE_CHARS = 80
"""Of one title: a thread without a name has its whole first prompt as title."""


class ThreadSource(Protocol):
    """The part of an engine that lists threads."""

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList: ...


SessionIds = Callable[[list[str]], Awaitable[dict[str, str]]]
"""By thread id: the id of its session."""


class EmptySession(Protocol):
    """The listed fields of a session without a prompt."""

    @property
    def session_id(self) -> str: ...

    @property
    def cwd(self) -> str: ...

    @property
    def updated_at(self) -> int: ...


EmptySessions = Callable[[str | None], Awaitable[Sequence[EmptySession]]]
"""The latest sessions without a prompt, of one folder or of all."""


async def no_empty_sessions(cwd: str | None) -> Sequence[EmptySession]:
    return ()


async def list_sessions(
    engine: ThreadSource,
    params: dict[str, Any],
    session_ids: SessionIds,
    empty_sessions: EmptySessions = no_empty_sessions,
) -> dict[str, Any]:
    """The answer to `session/list`. Its first page begins with the sessions that Codex does not list yet."""
    cwd, cursor = params.get("cwd"), params.get("cursor")
    if cwd is not None and not (isinstance(cwd, str) and PurePath(cwd).is_absolute()):
        raise bad_params("cwd must be an absolute path.")
    if cursor is not None and not isinstance(cursor, str):
        raise bad_params("cursor must be the nextCursor of an earlier answer.")
    folder = Path(cwd) if cwd is not None else None
    try:
        page = await engine.list_threads(cwd=folder, cursor=cursor, limit=SESSIONS_A_PAGE)
    except EngineRefused as refused:
        if cursor is None or refused.code != INVALID_REQUEST:
            raise
        raise bad_params("This cursor does not lead to a page of the list.") from refused
    # A thread without a folder cannot be opened again, and the protocol requires one.
    threads = [info for info in page.threads if PurePath(info.cwd).is_absolute()]
    ids_by_thread = await session_ids([info.thread_id for info in threads])
    sessions = [session_info(info, ids_by_thread[info.thread_id]) for info in threads]
    if cursor is None:
        known_ids = set(ids_by_thread.values())
        empty = [session for session in await empty_sessions(cwd) if session.session_id not in known_ids]
        sessions = [*map(_empty_info, empty), *sessions]
    return {"sessions": sessions, **({"nextCursor": page.cursor} if page.cursor else {})}


def session_info(info: ThreadInfo, session_id: str) -> dict[str, Any]:
    row: dict[str, Any] = {"sessionId": session_id, "cwd": info.cwd}
    title = short_title(info.title)
    if title:
        row["title"] = title
    if info.updated_at > 0:
        row["updatedAt"] = stamp(info.updated_at)
    return row


def _empty_info(empty: EmptySession) -> dict[str, Any]:
    return session_info(
        ThreadInfo(thread_id="", cwd=empty.cwd, updated_at=empty.updated_at), empty.session_id
    )


def short_title(text: str) -> str:
    """A text as one line, without embedded files."""
    return label(" ".join(without_resources(text).split()), TITLE_CHARS)


def stamp(seconds: int) -> str:
    """A time as RFC 3339, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
