"""`session/list`: Codex's threads as sessions, whichever program started them.

Codex keeps the list and its pages; a cursor of its own goes to the client and comes back untouched.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, Protocol

from laneway.base.errors import EngineRefused
from laneway.base.plain import label
from laneway.core.ports import ThreadInfo, ThreadList
from laneway.doors.acp.faults import INVALID_REQUEST, bad_params
from laneway.doors.acp.history.user_blocks import words

SESSIONS_A_PAGE = 50
"""What a list shows before somebody scrolls."""
TITLE_CHARS = 80
"""Of one title: without a name of its own, a thread is called by the whole first prompt."""


class Archive(Protocol):
    """What is needed of an engine."""

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList: ...


Names = Callable[[list[str]], Awaitable[dict[str, str]]]
"""From threads to the sessions that they are."""


class Empty(Protocol):
    """What is told of a session that nothing was said in yet."""

    @property
    def session_id(self) -> str: ...

    @property
    def cwd(self) -> str: ...

    @property
    def updated_at(self) -> int: ...


Empties = Callable[[str | None], Awaitable[Sequence[Empty]]]
"""The latest of those, in a folder or everywhere."""


async def nothing_empty(cwd: str | None) -> Sequence[Empty]:
    return ()


async def listed(
    engine: Archive, params: dict[str, Any], names: Names, empties: Empties = nothing_empty
) -> dict[str, Any]:
    """The answer to `session/list`. Its first page begins with what Codex does not know yet."""
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
    # A thread without a folder cannot be opened again, and the protocol has no way to show it.
    threads = [info for info in page.threads if PurePath(info.cwd).is_absolute()]
    named = await names([info.thread_id for info in threads])
    sessions = [session_info(info, named[info.thread_id]) for info in threads]
    if cursor is None:
        known = set(named.values())
        empty = [each for each in await empties(cwd) if each.session_id not in known]
        sessions = [*map(_empty_info, empty), *sessions]
    return {"sessions": sessions, **({"nextCursor": page.cursor} if page.cursor else {})}


def session_info(info: ThreadInfo, session_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = {"sessionId": session_id, "cwd": info.cwd}
    title = short_title(info.title)
    if title:
        shown["title"] = title
    if info.updated_at > 0:
        shown["updatedAt"] = stamp(info.updated_at)
    return shown


def _empty_info(empty: Empty) -> dict[str, Any]:
    return session_info(
        ThreadInfo(thread_id="", cwd=empty.cwd, updated_at=empty.updated_at), empty.session_id
    )


def short_title(text: str) -> str:
    """One line of what was said, without the files that came along."""
    return label(" ".join(words(text).split()), TITLE_CHARS)


def stamp(seconds: int) -> str:
    """RFC 3339, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
