"""Names of sessions: given once, bounded in number, held against others, free again (FR-2.5, 3, 20)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.doors.mcp.support import stage
from tests.doors.mcp.views import QUIET, configure, hanging, registry, states


@pytest.mark.covers("FR-2.5", "FR-3.1", "FR-3.4", "NFR-6/-32001")
async def test_of_twenty_starts_with_one_name_exactly_one_wins_and_the_name_comes_free(
    tmp_path: Path,
) -> None:
    """The others are told whose it is; when that one is closed, somebody else may be it."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        calls = [client.start("codex", prompt="%say mine", identity="one") for _ in range(20)]
        answers = await asyncio.gather(*calls)
        (won,) = [answer["result"]["structuredContent"] for answer in answers if "result" in answer]
        errors = [answer["error"] for answer in answers if "error" in answer]
        assert [error["code"] for error in errors] == [-32001] * 19
        assert errors[0]["data"] == {
            "error_source": "proxy",
            "identity": "one",
            "conflicting_agent_id": won["agent_id"],
        }
        assert won["agent_id"] in errors[0]["message"]
        assert await states(client) == {won["agent_id"]: ("active", "idle")}

        await client.content("agent_close", agent_id=won["agent_id"])
        again = await client.content("codex", prompt="%say mine", identity="one")

    assert (again["identity"], again["agent_id"] == won["agent_id"]) == ("one", False)


@pytest.mark.covers("FR-2.5")
@pytest.mark.parametrize("key", ["identity", "default_identity"])
async def test_a_session_without_a_name_gets_the_default_or_its_next_number(tmp_path: Path, key: str) -> None:
    """Only a name that was asked for can be in conflict; both spellings of the key are read."""
    async with stage(tmp_path) as here:
        configure(here, f'[plugins.atm-agent-mcp]\n{key} = "helper"\n')
        async with here.server("mcp", env=QUIET) as client:
            calls = [client.start("codex", prompt="%say x") for _ in range(3)]
            names = [(await call)["result"]["structuredContent"]["identity"] for call in calls]

    assert sorted(names) == ["helper", "helper-2", "helper-3"]


@pytest.mark.covers("FR-3.3", "FR-3.4", "NFR-6/-32004")
async def test_the_limit_counts_live_sessions_and_a_closed_one_makes_room(tmp_path: Path) -> None:
    """Ten by default; what failed to start or was closed takes no place."""
    async with stage(tmp_path) as here:
        async with here.server("mcp", env=QUIET) as client:
            assert (await client.content("agent_status"))["limit"] == 10
        async with here.server("mcp", "--max-sessions", "2", env=QUIET) as client:
            first = await client.content("codex", prompt="%say x")
            await client.error("codex", prompt="%say x", identity="x", config={"model_provider": "none"})
            await client.content("codex", prompt="%say x")
            full = await client.error("codex", prompt="%say x", identity="third")
            assert (full["code"], full["data"]["limit"]) == (-32004, 2)
            await client.content("agent_close", agent_id=first["agent_id"])
            third = await client.content("codex", prompt="%say x", identity="third")

    assert third["identity"] == "third"


@pytest.mark.covers("FR-3.4", "NFR-6/child")
async def test_a_start_that_codex_refuses_leaves_nothing_bound(tmp_path: Path) -> None:
    """Neither the thread nor its first turn; and the error says that it was Codex who refused."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        refused = await client.error(
            "codex", prompt="%say x", identity="dev", config={"model_provider": "none"}
        )
        assert refused["data"]["error_source"] == "child"
        assert "none" in refused["data"]["child_error"]["message"]
        assert await states(client) == {}
        assert (await client.content("agent_status"))["identities"] == {}
        too_long = await client.error("codex", prompt="x" * 1_100_000, identity="dev")
        assert too_long["data"]["error_source"] == "child"
        assert (await client.content("agent_status"))["identities"] == {}
        now = await client.content("codex", prompt="%say x", identity="dev")

    assert now["content"] == "x"


@pytest.mark.covers("FR-20.1", "FR-20.3", "FR-11.3", "NFR-2", "NFR-6/-32001")
async def test_a_name_that_another_process_has_is_refused_until_that_one_is_gone(tmp_path: Path) -> None:
    """Also by kill -9. Both write their own sessions and neither loses one."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as second:
        async with here.server("mcp", env=QUIET) as first:
            held = await first.content("codex", prompt="%say x", identity="dev")
            beside = await second.content("codex", prompt="%say x", identity="other")
            lock = json.loads((here.sessions / "default" / "dev.lock").read_text())
            assert (lock["pid"], lock["agent_id"]) == (first.process.pid, held["agent_id"])
            refused = await second.error("codex", prompt="%say x", identity="dev")
            assert (refused["code"], refused["data"]["holder_pid"]) == (-32001, first.process.pid)
            assert refused["data"]["conflicting_agent_id"] == held["agent_id"]
            assert (await second.content("codex", prompt="%say x"))["identity"] == "codex"
            for tool in ("codex", "codex-reply", "agent_close"):
                words = {} if tool == "agent_close" else {"prompt": "%say x"}
                theirs = await second.error(tool, agent_id=held["agent_id"], **words)
                assert (theirs["code"], theirs["data"]["holder_pid"]) == (-32001, first.process.pid)
            first.process.kill()
            await first.process.wait()
        assert (await states(second))[held["agent_id"]] == ("stale", "closed")
        taken = await second.content("codex", prompt="%say x", identity="dev")

        assert [entry["agent_id"] for entry in registry(here, "other")] == [beside["agent_id"]]
        assert {entry["agent_id"] for entry in registry(here, "dev")} == {
            held["agent_id"],
            taken["agent_id"],
        }


@pytest.mark.covers("FR-20.1", "FR-13.2")
async def test_a_name_given_at_start_up_is_claimed_then_and_a_second_server_says_so(tmp_path: Path) -> None:
    """Before any session is started, and between two of them."""
    async with stage(tmp_path) as here, here.server("mcp", "--identity", "dev", env=QUIET) as first:
        async with here.server("mcp", "--identity", "dev", env=QUIET, greet=False) as second:
            assert await second.process.wait() == 1
            await second.aclose()
            assert "dev is in use by process" in second.stderr
        session = await first.content("codex", prompt="%say x")
        assert session["identity"] == "dev"
        await first.content("agent_close", identity="dev")
        async with here.server("mcp", env=QUIET) as third:
            assert (await third.error("codex", prompt="%say x", identity="dev"))["code"] == -32001


@pytest.mark.covers("FR-5.1", "FR-5.2", "FR-5.3", "FR-5.4", "FR-5.5", "FR-17.5")
async def test_a_session_is_on_the_disk_while_it_works_with_all_that_the_seed_names(tmp_path: Path) -> None:
    """Under its team and its identity, from before its first turn ends."""
    async with stage(tmp_path) as here, here.server("mcp", "--team", "crew", env=QUIET) as client:
        agent_id, _ = await hanging(client, identity="dev", tag="blue", cwd=str(tmp_path))
        (entry,) = registry(here, "dev", "crew")
        begun = await client.wait_event("session_configured")

        wanted = {
            "agent_id": agent_id,
            "backend_id": begun["params"]["msg"]["session_id"],
            "thread_id": begun["params"]["msg"]["session_id"],
            "identity": "dev",
            "team": "crew",
            "repo_root": None,
            "repo_name": None,
            "branch": None,
            "cwd": str(tmp_path),
            "status": "active",
            "tag": "blue",
        }
        assert {name: entry[name] for name in wanted} == wanted
        assert entry["started_at"] <= entry["last_active"]
        assert (await states(client))[agent_id] == ("active", "busy")
        closed = await client.content("agent_close", agent_id=agent_id)
        assert (registry(here, "dev", "crew")[0]["status"], closed["status"]) == ("closed", "closed")
