"""The programs that the seeds name, by their own commands, names and folders (FR-13, seed 000)."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from tests.doors.mcp.support import Stage, stage
from tests.doors.mcp.views import QUIET, configure, repository, texts

ATM = ("-c", "from laneway.cli.older_programs import atm_agent_mcp; raise SystemExit(atm_agent_mcp())")
CODEX = ("-c", "from laneway.cli.older_programs import codex_mcp; raise SystemExit(codex_mcp())")


async def run(here: Stage, program: tuple[str, ...], *words: str) -> tuple[int, str, str]:
    """A command to its end: exit code, standard output, standard error."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *program, *words, stdout=PIPE, stderr=PIPE, env=here.environment, cwd=here.work
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


@pytest.mark.covers("FR-13.1", "FR-13.2", "FR-13.4", "FR-13.5", "FR-13.6", "FR-3.3", "FR-14.1", "FR-18.4")
async def test_atm_agent_mcp_serves_lists_shows_and_prunes(tmp_path: Path) -> None:
    """`serve`, then `sessions` with its filters, `summary`, `config` and `--prune`."""
    one, two = repository(tmp_path / "one"), repository(tmp_path / "two")
    async with stage(tmp_path / "state") as here:
        here.environment["XDG_STATE_HOME"] = str(tmp_path / "own")  # other tests' editors keep sessions there
        configure(here, '[plugins.atm-agent-mcp.roles.reader]\nsandbox = "read-only"\n')
        words = ("serve", "--identity", "dev", "--role", "reader")
        async with here.server(*words, program=ATM) as client:
            first = await client.content("codex", prompt="%say x", cwd=str(one))
            await client.content("codex", prompt="%say x", cwd=str(two), identity="other")

        async def listed(*flags: str) -> list[dict[str, Any]]:
            code, out, err = await run(here, ATM, "sessions", "--json", *flags)
            assert (code, err) == (0, "")
            found: list[dict[str, Any]] = json.loads(out)["sessions"]
            return found

        assert {row["identity"] for row in await listed()} == {"dev", "other"}
        assert [row["identity"] for row in await listed("--identity", "dev")] == ["dev"]
        assert [row["identity"] for row in await listed("--repo", "two")] == ["other"]
        assert [row["identity"] for row in await listed("--repo", str(one))] == ["dev"]
        code, out, _ = await run(here, ATM, "summary", first["agent_id"])
        assert (code, "about to be closed" in out) == (0, True)
        assert (await run(here, ATM, "summary", "agent-unknown"))[0] == 2
        code, out, _ = await run(here, ATM, "config", "--json")
        shown = {name: found["value"] for name, found in json.loads(out)["settings"].items()}
        assert shown["roles.reader.sandbox"] == "read-only"
        limits = ("max_concurrent_threads", "request_timeout_secs", "approval_timeout_secs")
        assert [shown[name] for name in limits] == [10, 300, 300], "the seed's defaults"
        code, out, _ = await run(here, ATM, "sessions", "--prune", "--repo", "two", "--json")
        assert [row["identity"] for row in json.loads(out)["removed"]] == ["other"]
        code, out, _ = await run(here, ATM, "sessions", "--prune", "--json")
        assert [row["identity"] for row in json.loads(out)["removed"]] == ["dev"]
        assert await listed() == []


async def test_codex_mcp_has_the_names_the_folder_and_the_early_child_of_its_seed(
    tmp_path: Path,
) -> None:
    """`codex_id` in and out, `codex_threads|status|close`, and no team in its paths."""
    async with stage(tmp_path) as here:
        here.environment["XDG_STATE_HOME"] = str(tmp_path / "own")
        configure(here, '[plugins.codex-mcp]\nidentity = "older"\n')
        async with here.server("serve", program=CODEX, env=QUIET) as client:
            tools = {tool["name"] for tool in (await client.ask("tools/list"))["result"]["tools"]}
            assert {"codex", "codex-reply", "codex_threads", "codex_status", "codex_close"} <= tools
            assert not any(name.startswith("agent_") for name in tools)
            assert (await client.content("codex_status"))["child_alive"] is True
            session = await client.content("codex", prompt="%say x")
            assert session["identity"] == "older"
            assert "agent_id" not in session
            await client.content("codex-reply", prompt="%say y", codex_id=session["codex_id"])
            event = await client.wait_event("session_configured")
            assert event["params"]["codex_id"] == session["codex_id"]
            (row,) = (await client.content("codex_threads"))["sessions"]
            assert (row["codex_id"], "agent_id" in row) == (session["codex_id"], False)
            taken = await client.error("codex", prompt="%say x", identity="older")
            assert taken["code"] == -32001
            closed = await client.content("codex_close", codex_id=session["codex_id"])
            assert (closed["codex_id"], closed["status"]) == (session["codex_id"], "closed")
        root = here.state / ".config" / "atm" / "codex-sessions"
        kept = json.loads((root / "older" / "registry.json").read_text())["sessions"]
        assert [entry["agent_id"] for entry in kept] == [session["codex_id"]]
        assert not here.sessions.exists()
        code, out, _ = await run(here, CODEX, "threads", "--json")
        assert (code, [row["agent_id"] for row in json.loads(out)["sessions"]]) == (0, [session["codex_id"]])
        async with here.server("serve", program=CODEX) as client:
            await client.content("codex", prompt="%say again", codex_id=session["codex_id"])
        assert "%say again" in texts(here.requests[-1])
        code, out, _ = await run(here, CODEX, "summary", session["codex_id"])
        assert (code, bool(out.strip())) == (0, True)
