"""`agent_sessions` and the list of resources by the page: bounded by default, complete on request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from laneway.core.named.records import Record
from laneway.doors.mcp.definitions import MAX_SESSIONS_A_PAGE, SESSIONS_A_PAGE
from laneway.store.layout import CODEX_SESSIONS
from laneway.store.records import entry_of
from laneway.store.registry import RegistryContent
from tests.doors.mcp.support import Client, Message, Stage, stage
from tests.doors.mcp.views import QUIET

CLOSED = 150


def keep(here: Stage, count: int = CLOSED, folder: Path | None = None) -> None:
    """As many closed sessions on the disk, the last one the newest."""
    for number in range(count):
        record = Record(
            agent_id=f"agent-{number:03}",
            identity=f"dev-{number % 10}",
            team="default",
            thread_id=f"thread-{number}",
            cwd=str(here.work),
            last_active=f"2025-01-01T00:{number // 60:02}:{number % 60:02}.000Z",
            status="closed",
        )
        home = (folder or here.sessions / "default") / record.identity
        home.mkdir(parents=True, exist_ok=True)
        path = home / "registry.json"
        others = json.loads(path.read_text())["sessions"] if path.exists() else []
        entry = json.loads(RegistryContent().put(entry_of(record)).render())["sessions"]
        path.write_text(json.dumps({"version": 1, "sessions": [*others, *entry]}))


@asynccontextmanager
async def crowded(tmp_path: Path) -> AsyncIterator[Client]:
    async with stage(tmp_path) as here:
        keep(here)
        async with here.server("mcp", env=QUIET) as client:
            yield client


async def pages(client: Client, **arguments: object) -> list[Message]:
    """All pages, to the last."""
    found: list[Message] = []
    cursor: dict[str, str] = {}
    while True:
        page = await client.content("agent_sessions", **arguments, **cursor)
        found.append(page)
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


async def test_by_default_the_live_ones_and_the_newest_are_listed(tmp_path: Path) -> None:
    """150 closed sessions were 82 kB for every model that asked."""
    async with crowded(tmp_path) as client:
        live = await client.content("codex", prompt="%say hi", identity="live")
        listed = await client.result("agent_sessions")
    page = listed["structuredContent"]
    ids = [row["agent_id"] for row in page["sessions"]]
    newest = [f"agent-{number:03}" for number in range(CLOSED - 1, 0, -1)]
    assert ids == [live["agent_id"], *newest[: SESSIONS_A_PAGE - 1]]
    assert page["total"] == CLOSED + 1
    assert len(listed["content"][0]["text"]) < 16_000


async def test_every_session_is_on_one_page_while_others_come_and_go(tmp_path: Path) -> None:
    async with crowded(tmp_path) as client:
        first = await client.content("agent_sessions", limit=MAX_SESSIONS_A_PAGE)
        await client.content("codex", prompt="%say hi", identity="late")
        second = await client.content("agent_sessions", limit=MAX_SESSIONS_A_PAGE, cursor=first["nextCursor"])
        whole = await pages(client, limit=40)
    ids = [row["agent_id"] for page in (first, second) for row in page["sessions"]]
    assert sorted(ids) == [f"agent-{number:03}" for number in range(CLOSED)]
    assert "nextCursor" not in second
    assert [len(page["sessions"]) for page in whole] == [40, 40, 40, 31]


async def test_filters_hold_on_every_page_and_bind_the_cursor(tmp_path: Path) -> None:
    async with crowded(tmp_path) as client:
        found = await pages(client, identity="dev-3", limit=4)
        rows = [row for page in found for row in page["sessions"]]
        assert [row["identity"] for row in rows] == ["dev-3"] * 15
        assert {page["total"] for page in found} == {15}
        cursor = found[0]["nextCursor"]
        error = await client.error("agent_sessions", identity="dev-4", cursor=cursor)
        assert (await client.content("agent_sessions", include_closed=False))["sessions"] == []
    assert error["code"] == -32602


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"cursor": "nonsense"},
            "This cursor is not valid for this list: start again without one.",
        ),
        ({"cursor": 7}, "cursor must be a string."),
        ({"limit": 0}, "limit must be a number from 1 to 100."),
        ({"limit": 101}, "limit must be a number from 1 to 100."),
        ({"limit": True}, "limit must be an integer."),
    ],
)
async def test_a_cursor_or_a_limit_that_is_none_is_one_sentence(
    tmp_path: Path, arguments: Message, words: str
) -> None:
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        error = await client.error("agent_sessions", **arguments)
    assert (error["code"], error["message"]) == (-32602, words)


async def test_the_list_of_resources_has_pages_too(tmp_path: Path) -> None:
    """A transcript and a summary for each session, and the instructions for jobs."""
    async with crowded(tmp_path) as client:
        first = (await client.ask("resources/list", {}))["result"]
        second = (await client.ask("resources/list", {"cursor": first["nextCursor"]}))["result"]
        refused = await client.ask("resources/list", {"cursor": "nonsense"})
        odd = await client.ask("resources/list", {"cursor": 7})
    uris = [each["uri"] for page in (first, second) for each in page["resources"]]
    assert len(set(uris)) == len(uris) == 2 * CLOSED + 1
    assert len(first["resources"]) == 200
    assert "nextCursor" not in second
    assert (refused["error"]["code"], odd["error"]["code"]) == (-32602, -32602)


async def test_the_older_names_have_pages_as_well(tmp_path: Path) -> None:
    """`codex_threads` of codex-mcp."""
    async with stage(tmp_path) as here:
        keep(here, 30, here.sessions.with_name(CODEX_SESSIONS))
        program = ("-c", "from laneway.cli.older_programs import codex_mcp; raise SystemExit(codex_mcp())")
        async with here.server("serve", program=program, env=QUIET) as client:
            first = await client.content("codex_threads")
            second = await client.content("codex_threads", cursor=first["nextCursor"])
    assert [row["codex_id"] for row in second["sessions"]][-1] == "agent-000"
    assert len(first["sessions"]) + len(second["sessions"]) == 30
