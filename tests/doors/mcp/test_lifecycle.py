"""Busy, idle, closed and back: what may follow what, and what goes first (FR-17)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from laneway.core.named.closer import SUMMARY_PROMPT
from laneway.rehearsal.answer import Refuse
from tests.doors.mcp.support import FORMS, stage
from tests.doors.mcp.views import QUIET, hanging, registry, states, texts, without_summaries

ASKS = "%run! echo asked"
FIELDS = {
    *("agent_id", "backend", "backend_id", "team", "identity", "agent_name", "agent_source"),
    *("status", "last_active_at", "tag", "resumable"),
}
"""Of a row of agent_sessions, by the seed."""


@pytest.mark.covers("FR-17.1", "FR-17.2", "FR-17.3", "FR-17.8", "FR-17.9", "FR-10.1", "FR-15.2")
async def test_a_session_is_busy_then_idle_then_closed_and_closing_again_is_harmless(tmp_path: Path) -> None:
    """A new one may take its name; the old one stays listed."""
    async with stage(tmp_path) as here, here.server("mcp") as client:
        first = await client.content("codex", prompt="%say x", identity="dev")
        agent_id = first["agent_id"]
        assert await states(client) == {agent_id: ("active", "idle")}
        client.heard.clear()
        client.start("codex-reply", prompt="%hang", agent_id=agent_id)
        await client.wait_event("task_started")
        assert await states(client) == {agent_id: ("active", "busy")}
        client.tell("notifications/cancelled", {"requestId": client.last_id - 1})
        await client.wait_event("turn_aborted")
        await client.content("codex-reply", prompt="%say after", agent_id=agent_id)
        assert await states(client) == {agent_id: ("active", "idle")}

        closed = [await client.content("agent_close", identity="dev") for _ in range(2)]
        assert [(end["agent_id"], end["status"]) for end in closed] == [(agent_id, "closed")] * 2
        assert (closed[0]["was"], closed[0]["summary"]) == ("idle", None)
        second = await client.content("codex", prompt="%say x", identity="dev")
        assert await states(client) == {
            agent_id: ("closed", "closed"),
            second["agent_id"]: ("active", "idle"),
        }
        again = await client.content("agent_close", agent_id=agent_id)
        rows = (await client.content("agent_sessions", identity="dev", include_closed=False))["sessions"]
        assert [row["agent_id"] for row in rows] == [second["agent_id"]]
        assert (await client.content("agent_sessions", identity="other"))["sessions"] == []
        assert set(rows[0]) >= FIELDS
        assert (rows[0]["backend"], rows[0]["backend_id"]) == ("codex", second["threadId"])

    assert (again["was"], again["status"]) == ("closed", "closed")
    assert second["threadId"] != first["threadId"]


@pytest.mark.covers("FR-17.10", "FR-17.11", "FR-18.5", "NFR-6/-32003")
async def test_closing_goes_before_everything_that_runs_or_waits(tmp_path: Path) -> None:
    """The open question is declined, the turn and the queue hear -32003, and the name is free."""
    async with stage(tmp_path) as here, here.server("mcp", capabilities=FORMS, env=QUIET) as client:
        client.on_ask = lambda message: None
        running = client.start("codex", prompt=ASKS, identity="dev", cwd=str(tmp_path))
        asked = await client.wait_heard(lambda message: message["method"] == "elicitation/create")
        agent_id = asked["params"]["agent_id"]
        queued = [client.start("codex-reply", prompt="%say late", agent_id=agent_id) for _ in range(2)]
        closed = await client.content("agent_close", agent_id=agent_id)
        ends = [await call for call in (running, *queued)]
        withdrawn = await client.wait_heard(lambda m: m["method"] == "notifications/cancelled")
        freed = await client.content("codex", prompt="%say x", identity="dev")

    assert (closed["was"], closed["status"]) == ("busy", "closed")
    assert [end["error"]["code"] for end in ends] == [-32003] * 3
    assert withdrawn["params"]["requestId"] == asked["id"]
    assert freed["identity"] == "dev"
    assert not any("%say late" in text for request in here.requests for text in texts(request))


@pytest.mark.covers("FR-17.4", "FR-6.4", "FR-7.2")
async def test_a_busy_session_sums_up_before_it_is_closed(tmp_path: Path) -> None:
    """The turn is stopped first; what the session said is in the answer and in its file."""
    async with stage(tmp_path) as here, here.server("mcp") as client:
        agent_id, running = await hanging(client, identity="dev")
        closed = await client.content("agent_close", agent_id=agent_id)
        assert (await running)["error"]["code"] == -32003

        assert (closed["was"], closed["status"]) == ("busy", "closed")
        assert SUMMARY_PROMPT in texts(here.requests[-1])
        folder = here.sessions / "default" / "dev" / closed["thread_id"]
        assert (folder / "summary.md").read_text().strip() == closed["summary"]


@pytest.mark.covers("FR-17.4", "FR-7.2", "FR-6.3")
async def test_a_session_that_cannot_sum_up_is_interrupted_and_can_be_had_back(tmp_path: Path) -> None:
    """No placeholder is kept in the place of a summary, and none is told to the model."""
    silent = without_summaries(Refuse(400, "no"))
    async with (
        stage(tmp_path, answerer=silent) as here,
        here.server("mcp", "--log-level", "warning") as client,
    ):
        agent_id, _ = await hanging(client, identity="dev")
        closed = await client.content("agent_close", agent_id=agent_id)
        assert (closed["status"], closed["summary"]) == ("interrupted", None)
        assert registry(here, "dev")[0]["status"] == "interrupted"
        assert not list(here.sessions.rglob("summary.md"))
        back = await client.content("codex-reply", prompt="%say back", agent_id=agent_id)
        assert not any("last closed" in text for text in texts(here.requests[-1]))
        await client.hang_up()
        await client.aclose()

    assert back["content"] == "back"
    assert "There is no summary" in client.stderr


@pytest.mark.covers("FR-17.7", "FR-16.3")
async def test_a_closed_session_is_resumed_by_codex_and_by_nothing_else(tmp_path: Path) -> None:
    """With the summary in front of its first words, under its own name; a reply says what to do."""
    async with stage(tmp_path) as here, here.server("mcp") as client:
        agent_id, _ = await hanging(client, identity="dev")
        summary = (await client.content("agent_close", agent_id=agent_id))["summary"]
        refused = await client.error("codex-reply", prompt="%say x", agent_id=agent_id)
        assert refused["code"] == -32003
        assert "Call codex with its agent_id" in refused["message"]
        taken = await client.content("codex", prompt="%say x", identity="dev")
        conflict = await client.error("codex", prompt="%say x", agent_id=agent_id)
        assert conflict["data"]["conflicting_agent_id"] == taken["agent_id"]
        await client.content("agent_close", agent_id=taken["agent_id"])

        back = await client.content("codex", prompt="%say back", agent_id=agent_id)
        first = texts(here.requests[-1])
        await client.content("codex-reply", prompt="%say more", agent_id=agent_id)
        assert (back["agent_id"], back["identity"], back["content"]) == (agent_id, "dev", "back")
        assert sum(summary in text and "last closed" in text for text in first) == 1
        newest = texts(here.requests[-1])
        assert sum(summary in text and "last closed" in text for text in newest) == 1
        kept = {entry["agent_id"]: entry["status"] for entry in registry(here, "dev")}
        assert kept == {agent_id: "active", taken["agent_id"]: "closed"}


@pytest.mark.covers("FR-16.3", "FR-10.2")
async def test_a_live_session_is_resumed_as_it_is_and_goes_on_without_a_word(tmp_path: Path) -> None:
    """`codex` with an agent_id needs no prompt; the health tells who is bound."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        session = await client.content("codex", prompt="%say x", identity="dev")
        gone_on = await client.content("codex", agent_id=session["agent_id"])
        health = await client.content("agent_status")
        health.pop("mail", None)  # its postman begins with the first session, some time after it

    assert gone_on["threadId"] == session["threadId"]
    assert "Go on where you left off." in texts(here.requests[-1])
    assert health.pop("uptime_s") > 0
    assert isinstance(health.pop("child_pid"), int)
    assert health == {
        "child_alive": True,
        "child_ended": None,
        "team": "default",
        "active": 1,
        "limit": 10,
        "identities": {
            "dev": {"agent_id": session["agent_id"], "thread_id": session["threadId"], "state": "idle"}
        },
        "pending_mail": 0,
    }


@pytest.mark.covers("FR-8.9")
async def test_replies_to_one_session_run_one_after_another_in_their_order(tmp_path: Path) -> None:
    """However many are sent at once; every one gets its own answer."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        session = await client.content("codex", prompt="%say 0")
        calls = [
            client.start("codex-reply", prompt=f"%say {n}", agent_id=session["agent_id"]) for n in range(1, 6)
        ]
        answers = await asyncio.gather(*calls)

    assert [a["result"]["structuredContent"]["content"] for a in answers] == ["1", "2", "3", "4", "5"]
    assert [a["result"]["_meta"]["turns"] for a in answers] == sorted(
        a["result"]["_meta"]["turns"] for a in answers
    )
