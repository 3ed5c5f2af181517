"""`session/list`: which sessions there are to load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laneway.base.errors import EngineRefused, RemoteError
from laneway.core.editor_sessions import SessionRecord
from laneway.core.ports import ThreadInfo, ThreadList
from laneway.doors.acp.history.listing import (
    SESSIONS_A_PAGE,
    TITLE_CHARS,
    list_sessions,
    session_info,
    short_title,
    stamp,
)
from laneway.doors.acp.ids import session_id
from laneway.doors.acp.sessions.prompts import parts
from tests.codex.support import play, real
from tests.doors.acp.lint import Lint


class Shelf:
    """An engine that lists what a test puts there, one thread a page."""

    def __init__(self, *threads: ThreadInfo) -> None:
        self.threads = threads
        self.asked: list[tuple[Path | None, str | None, int]] = []

    async def list_threads(
        self, *, cwd: Path | None = None, cursor: str | None = None, limit: int = 50
    ) -> ThreadList:
        self.asked.append((cwd, cursor, limit))
        if cursor == "nonsense":
            raise EngineRefused("thread/list", -32600, "invalid cursor: nonsense")
        at = int(cursor or 0)
        return ThreadList(self.threads[at : at + 1], str(at + 1) if at + 1 < len(self.threads) else None)


def check(answer: dict[str, Any]) -> None:
    lint = Lint()
    lint.check("client", {"jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {}})
    lint.check("agent", {"jsonrpc": "2.0", "id": 1, "result": answer})
    lint.assert_clean()


async def names(threads: list[str]) -> dict[str, str]:
    return {thread: session_id(thread) for thread in threads}


async def test_each_thread_is_a_session_and_pages_follow_codexs_own_cursor() -> None:
    """The last page has no cursor, so that a client knows the end."""
    shelf = Shelf(
        ThreadInfo(thread_id="t1", cwd="/w", title="One", updated_at=1_794_835_134),
        ThreadInfo(thread_id="t2", cwd="/w"),
    )
    first = await list_sessions(shelf, {"cwd": "/w"}, names)
    check(first)
    assert first == {
        "sessions": [
            {"sessionId": "sess_t1", "cwd": "/w", "title": "One", "updatedAt": "2026-11-16T13:18:54Z"}
        ],
        "nextCursor": "1",
    }
    second = await list_sessions(shelf, {"cwd": None, "cursor": "1"}, names)
    check(second)
    assert second == {"sessions": [{"sessionId": "sess_t2", "cwd": "/w"}]}
    assert shelf.asked == [(Path("/w"), None, SESSIONS_A_PAGE), (None, "1", SESSIONS_A_PAGE)]


async def test_sessions_without_a_prompt_stand_before_those_that_codex_lists() -> None:
    """On the first page only, and none twice."""
    shelf = Shelf(ThreadInfo(thread_id="t1", cwd="/w"), ThreadInfo(thread_id="t2", cwd="/w"))
    asked: list[str | None] = []

    async def empties(cwd: str | None) -> list[SessionRecord]:
        asked.append(cwd)
        new = SessionRecord(session_id="sess_new", thread_id="new", cwd="/w", updated_at=1_794_835_134)
        return [new, SessionRecord(session_id="sess_t1", thread_id="t1", cwd="/w")]

    first = await list_sessions(shelf, {"cwd": "/w"}, names, empties)
    check(first)
    assert first == {
        "sessions": [
            {"sessionId": "sess_new", "cwd": "/w", "updatedAt": "2026-11-16T13:18:54Z"},
            {"sessionId": "sess_t1", "cwd": "/w"},
        ],
        "nextCursor": "1",
    }
    second = await list_sessions(shelf, {"cursor": "1"}, names, empties)
    assert second == {"sessions": [{"sessionId": "sess_t2", "cwd": "/w"}]}
    assert asked == ["/w"]


@pytest.mark.parametrize("params", [{"cwd": "w"}, {"cwd": 7}, {"cursor": 7}, {"cursor": "nonsense"}])
async def test_what_leads_nowhere_is_refused_with_a_sentence(params: dict[str, Any]) -> None:
    """Codex's own words for it would not help anybody."""
    with pytest.raises(RemoteError) as refused:
        await list_sessions(Shelf(), params, names)
    assert refused.value.code == -32602


async def test_another_refusal_of_codex_is_not_taken_for_a_bad_cursor() -> None:
    """Without a cursor there is none to blame."""

    class Sulking(Shelf):
        async def list_threads(self, **_: Any) -> ThreadList:
            raise EngineRefused("thread/list", -32600, "not today")

    with pytest.raises(EngineRefused, match="not today"):
        await list_sessions(Sulking(), {}, names)


async def test_a_thread_without_a_folder_is_left_out() -> None:
    """The protocol wants an absolute path, and without one it could not be opened."""
    assert await list_sessions(Shelf(ThreadInfo(thread_id="t1")), {}, names) == {"sessions": []}


@given(st.text(max_size=1000))
def test_a_title_is_one_short_line(text: str) -> None:
    """A thread without a name is called by its whole first prompt."""
    title = short_title(text)
    assert len(title) <= TITLE_CHARS
    assert len(title.splitlines()) <= 1


def test_a_title_leaves_out_the_files_that_came_along() -> None:
    """Also where Codex's preview cut them in the middle."""
    blocks = [
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "text", "text": "Explain"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "secret\nplans"}},
        {"type": "text", "text": "this"},
    ]
    preview = "\n".join(part.text for part in parts(blocks, images=False))  # type: ignore[union-attr]
    assert short_title(preview) == "Explain this"
    assert short_title(preview[: preview.index("plans")]) == "Explain"


def test_times_are_rfc_3339_and_an_unknown_one_is_left_out() -> None:
    """In UTC, to the second, as Codex has them."""
    assert stamp(0) == "1970-01-01T00:00:00Z"
    assert "updatedAt" not in session_info(ThreadInfo(thread_id="t", cwd="/w"), "sess_t")


async def test_the_real_codex_lists_by_folder() -> None:
    """And its cursor, which is its own, comes back to it whole."""
    async with real() as here:
        first, second = await here.session(), await here.session()
        await play(first, "%say one")
        await play(second, "%say two")
        engine, work = here.rehearsal.engine, str(here.rehearsal.work)
        answer = await list_sessions(engine, {"cwd": work}, names)
        check(answer)
        titles = {shown["title"] for shown in answer["sessions"]}
        assert titles == {"%say one", "%say two"}
        assert await list_sessions(engine, {"cwd": str(here.rehearsal.home)}, names) == {"sessions": []}
        with pytest.raises(RemoteError, match="does not lead to a page"):
            await list_sessions(engine, {"cursor": "nonsense"}, names)
