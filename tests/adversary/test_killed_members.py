"""A server that its client kills within half a second, as Claude Code does: its sessions are gone for all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.mail.places import Places
from tests.cli.support import laneway
from tests.cli.watching import places
from tests.core.support import until
from tests.doors.mcp.support import Client, Stage, stage

TEAM = "crew"
SESSIONS = ("ann", "bob", "eve")


def members(home: Path) -> list[dict[str, Any]]:
    """As they stand in the file, for every program that reads it."""
    config = Places.of({"ATM_HOME": str(home)}).config(TEAM)
    found: list[dict[str, Any]] = json.loads(config.read_bytes())["members"] if config.exists() else []
    return found


@asynccontextmanager
async def killed_server(home: Path, run: Path, *foreign: str) -> AsyncIterator[tuple[Stage, dict[str, str]]]:
    """Three sessions in a team with others, and then no process any more."""
    env = {**places(run), "ATM_HOME": str(home), "ATM_TEAM": TEAM}
    config = Places.of({"ATM_HOME": str(home)}).config(TEAM)
    config.parent.mkdir(parents=True)
    rows = [{"agentId": f"{name}@{TEAM}", "name": name, "agentType": "claude"} for name in foreign]
    config.write_text(json.dumps({"name": TEAM, "leadAgentId": f"team-lead@{TEAM}", "members": rows}))
    async with stage(home) as here:
        async with here.server("mcp", env=env) as client:
            await asyncio.gather(*(client.content("codex", identity=who, prompt="hello") for who in SESSIONS))
            await until(lambda: {*SESSIONS} <= {row["name"] for row in members(home)})
            await kill(client)
        yield here, env


async def kill(client: Client) -> None:
    client.process.kill()
    await client.process.wait()


async def test_who_looks_sees_that_killed_sessions_are_gone(tmp_path: Path, run: Path) -> None:
    """The roster still has them; nobody is told that they are there."""
    async with killed_server(tmp_path, run, "team-lead") as (_, env):
        rows = json.loads((await laneway("mail", "members", "--json", env=env)).out)["members"]
        assert {row["name"]: row["is_gone"] for row in rows} == {
            "team-lead": False,
            **dict.fromkeys(SESSIONS, True),
        }
        shown = (await laneway("mail", "members", env=env)).out
        assert sum("gone" in line.split() for line in shown.splitlines()) == 3
        assert "laneway sessions --prune" in shown
        unknown = await laneway("mail", "send", "carl", "hi", "--as", "zoe", env=env)
        assert "team-lead" in unknown.err
        assert "bob" not in unknown.err


async def test_a_broadcast_does_not_go_to_killed_sessions_and_says_so(tmp_path: Path, run: Path) -> None:
    """From a terminal, and from a session of another server."""
    async with killed_server(tmp_path, run, "team-lead") as (here, env):
        sent = await laneway("mail", "broadcast", "hi", "--as", "zoe", "--json", env=env)
        told = json.loads(sent.out)
        assert [each["to"] for each in told["sent"]] == [f"team-lead@{TEAM}"]
        assert sorted(told["gone"]) == [f"{who}@{TEAM}" for who in SESSIONS]
        shown = await laneway("mail", "broadcast", "hi", "--as", "zoe", env=env)
        assert "their sessions have ended" in shown.err
        async with here.server("mcp", env=env) as client:
            rows = (await client.content("agent_sessions"))["sessions"]
            assert {row["identity"]: row["status"] for row in rows} == dict.fromkeys(SESSIONS, "stale")
            result = await client.result("atm_broadcast", identity="max", message="hello")
            assert [each["to"] for each in result["structuredContent"]["sent"]] == [f"team-lead@{TEAM}"]
        for who in SESSIONS:
            assert (
                json.loads((await laneway("mail", "pending", "--as", who, "--json", env=env)).out)["unread"]
                == 0
            )


async def test_pruning_removes_killed_members_and_nobody_elses(tmp_path: Path, run: Path) -> None:
    """Also the process that a foreign member names may be dead: it is not ours to judge."""
    async with killed_server(tmp_path, run, "team-lead", "worker") as (_, env):
        before = [row for row in members(tmp_path) if row["name"] not in SESSIONS]
        looked = json.loads((await laneway("sessions", "--prune", "--dry-run", "--json", env=env)).out)
        assert sorted(each["name"] for each in looked["members"]) == list(SESSIONS)
        assert len(members(tmp_path)) == 5
        pruned = json.loads((await laneway("sessions", "--prune", "--json", env=env)).out)
        assert sorted(each["name"] for each in pruned["members"]) == list(SESSIONS)
        assert len(pruned["removed"]) == 3
        assert members(tmp_path) == before
        again = await laneway("sessions", "--prune", env=env)
        assert (again.code, again.out) == (0, "There is nothing to remove.\n")


async def test_mail_to_a_killed_session_is_kept_and_the_sender_knows(tmp_path: Path, run: Path) -> None:
    """It can be resumed, and reads it then."""
    async with killed_server(tmp_path, run) as (_, env):
        sent = await laneway("mail", "send", "ann", "later", "--as", "zoe", env=env)
        assert sent.code == 0
        assert "has ended" in sent.out
        alone = await laneway("mail", "broadcast", "hi", "--as", "zoe", env=env)
        assert alone.code == 1
        assert "have ended" in alone.err
