"""Every setting and every flag of `laneway mcp` has an effect that can be seen (FR-12, FR-13)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.doors.mcp.support import Client, Message, stage
from tests.doors.mcp.views import QUIET, base_of, configure, git, repository, texts

TABLE = "[plugins.atm-agent-mcp]\n"


async def started(client: Client, **arguments: Any) -> Message:
    """How Codex says that it has started a session."""
    client.heard.clear()
    await client.content("codex", prompt="%say x", **arguments)
    message: Message = (await client.wait_event("session_configured"))["params"]["msg"]
    return message


def sandbox(how: Message) -> str:
    """By what the profile lets a session write."""
    profile = how["permission_profile"]
    if profile["type"] == "disabled":
        return "danger-full-access"
    rights = {entry["access"] for entry in profile["file_system"]["entries"]}
    return "workspace-write" if "write" in rights else "read-only"


@pytest.mark.covers("FR-12.1", "FR-12.3", "FR-12.4")
async def test_a_setting_holds_unless_a_nearer_one_says_otherwise(tmp_path: Path) -> None:
    """Default, global file, repository, environment, flag, call; and no model where nobody names one."""
    repo = repository(tmp_path / "project")
    async with stage(tmp_path / "state") as here:
        here.environment["HOME"] = str(tmp_path)  # where trust is kept
        async with here.server("mcp", cwd=repo, env=QUIET) as client:
            await started(client)
            assert here.requests[-1]["model"] == "gpt-5.5", "config.toml of the stage"
        configure(here, TABLE + 'model = "gpt-5.4"\nreasoning_effort = "low"\n')
        async with here.server("mcp", cwd=repo, env=QUIET) as client:
            await started(client)
            assert here.requests[-1]["model"] == "gpt-5.4"
            assert here.requests[-1]["reasoning"]["effort"] == "low"
        (repo / ".atm.toml").write_text(TABLE + 'model = "gpt-5.2"\n')
        trusting = await here.spawn("-m", "laneway", "config", "trust", "--yes", cwd=repo)
        await trusting.communicate()
        assert trusting.returncode == 0
        async with here.server("mcp", cwd=repo, env=QUIET) as client:
            await started(client)
            assert here.requests[-1]["model"] == "gpt-5.2"
            assert here.requests[-1]["reasoning"]["effort"] == "low", "key by key, not table by table"
        env = {**QUIET, "ATM_AGENT_MCP_MODEL": "gpt-5.3-codex"}
        async with here.server("mcp", cwd=repo, env=env) as client:
            await started(client)
            assert here.requests[-1]["model"] == "gpt-5.3-codex"
        async with here.server("mcp", "-m", "gpt-5.5", cwd=repo, env=env) as client:
            await started(client)
            assert here.requests[-1]["model"] == "gpt-5.5"
            await started(client, model="gpt-5.4")
            assert here.requests[-1]["model"] == "gpt-5.4"


@pytest.mark.covers("FR-12.1")
async def test_sandbox_approvals_and_prompt_files_are_taken_from_the_settings(tmp_path: Path) -> None:
    """The files are read from beside the settings; the caller's own words stand in front of theirs."""
    async with stage(tmp_path) as here:
        configure(
            here,
            TABLE + 'sandbox = "workspace-write"\napproval_policy = "never"\n'
            'base_prompt_file = "base.md"\nextra_instructions_file = "extra.md"\n',
        )
        folder = here.state / ".config" / "atm"
        (folder / "base.md").write_text("Be a base.")
        (folder / "extra.md").write_text("Be more.")
        async with here.server("mcp", env=QUIET) as client:
            how = await started(client, **{"developer-instructions": "Be mine."})
            request = here.requests[-1]
            await started(client, **{"base-instructions": "Be another base."})
            assert base_of(here.requests[-1]) == "Be another base."
            (folder / "extra.md").unlink()
            gone = await client.error("codex", prompt="%say x", identity="dev")
            assert (gone["code"], "prompt file" in gone["message"]) == (-32008, True)
            assert "dev" not in (await client.content("agent_status"))["identities"]

    assert (sandbox(how), how["approval_policy"]) == ("workspace-write", "never")
    assert base_of(request) == "Be a base."
    words = "\n".join(texts(request))
    assert 0 < words.index("Be mine.") < words.index("Be more.")


@pytest.mark.covers("FR-12.1")
async def test_the_codex_of_the_settings_is_the_one_that_runs(tmp_path: Path) -> None:
    """Seen by its own trace; the variable of the stage would go before it."""
    async with stage(tmp_path) as here:
        real = here.environment["LANEWAY_CODEX_BIN"]
        wrapper = tmp_path / "my-codex"
        wrapper.write_text(f'#!/bin/sh\necho "$1" >> "{tmp_path}/started.txt"\nexec "{real}" "$@"\n')
        wrapper.chmod(0o700)
        configure(here, TABLE + f'codex_bin = "{wrapper}"\n')
        async with here.server("mcp", env={**QUIET, "LANEWAY_CODEX_BIN": ""}) as client:
            assert not (tmp_path / "started.txt").exists()
            await client.content("codex", prompt="%say x")

    assert "app-server" in (tmp_path / "started.txt").read_text()


@pytest.mark.covers("FR-12.2", "FR-13.2", "FR-13.7", "FR-16.4")
async def test_a_role_is_a_preset_for_a_call_or_for_the_server(tmp_path: Path) -> None:
    """What it leaves open stays as it was; what the call says goes before it."""
    async with stage(tmp_path) as here:
        configure(
            here,
            TABLE + 'sandbox = "workspace-write"\n[plugins.atm-agent-mcp.roles.reviewer]\n'
            'model = "gpt-5.4"\napproval_policy = "never"\nreasoning_effort = "low"\n'
            '[plugins.atm-agent-mcp.roles.reader]\nsandbox = "read-only"\n',
        )
        async with here.server("mcp", "--role", "reviewer", env=QUIET) as client:
            how = await started(client)
            first = here.requests[-1]
            read = await started(client, role="reader", model="gpt-5.5")
            rows = (await client.content("agent_sessions"))["sessions"]

    assert (sandbox(how), how["approval_policy"]) == ("workspace-write", "never")
    assert (first["model"], first["reasoning"]["effort"]) == ("gpt-5.4", "low")
    assert (sandbox(read), here.requests[-1]["model"]) == ("read-only", "gpt-5.5")
    assert sorted(row["role"] for row in rows) == ["reader", "reviewer"]


@pytest.mark.covers("FR-12.5", "FR-13.7")
async def test_fast_takes_the_fast_model_where_nobody_names_one(tmp_path: Path) -> None:
    """An explicit model stays what it is."""
    async with stage(tmp_path) as here:
        configure(here, TABLE + 'fast_model = "gpt-5.4"\n')
        async with here.server("mcp", "--fast", env=QUIET) as client:
            await started(client)
            assert here.requests[-1]["model"] == "gpt-5.4"
        async with here.server("mcp", "--fast", "--model", "gpt-5.2", env=QUIET) as client:
            await started(client)
            assert here.requests[-1]["model"] == "gpt-5.2"


@pytest.mark.covers("FR-13.7")
@pytest.mark.parametrize("flag", ["--readonly", "--explore"])
async def test_a_read_only_server_writes_nothing_whatever_its_settings_say(tmp_path: Path, flag: str) -> None:
    """The sandbox of every session is read-only."""
    async with stage(tmp_path) as here:
        configure(here, TABLE + 'approval_policy = "never"\n')
        async with here.server("mcp", flag, env=QUIET) as client:
            how = await started(client)

    assert sandbox(how) == "read-only"


@pytest.mark.covers("FR-13.7")
@pytest.mark.needs("subagents")
async def test_flags_of_codex_itself_hold_and_subagents_are_a_switch(tmp_path: Path) -> None:
    """`-s -a -c` as `codex` takes them; agents of its own even where the user's config.toml has none."""
    async with stage(tmp_path) as here:
        config = here.home / "config.toml"
        config.write_text(config.read_text().replace("[features]", "[features]\nmulti_agent = false"))
        # Codex shows the tools for agents at once to models that it does not know.
        flags = ("-m", "no-such-model", "-s", "danger-full-access", "-a", "never")
        async with here.server("mcp", *flags, "-c", "model_reasoning_effort=low", env=QUIET) as client:
            how = await started(client)
            assert "spawn_agent" not in str(here.requests[-1]["tools"])
            assert here.requests[-1]["reasoning"]["effort"] == "low"
        async with here.server("mcp", *flags, "--subagents", env=QUIET) as client:
            await started(client)
            assert "spawn_agent" in str(here.requests[-1]["tools"])

    assert (sandbox(how), how["approval_policy"]) == ("danger-full-access", "never")


@pytest.mark.covers("FR-15.2", "FR-16.4")
async def test_tools_are_offered_in_groups(tmp_path: Path) -> None:
    """Each costs tokens; all names are our own, and before anything runs all are there."""
    groups = {
        "codex": {"codex", "codex-reply", "agent_answer"},
        "sessions": {"agent_sessions", "agent_status", "agent_close"},
    }
    async with stage(tmp_path) as here:
        async with here.server("mcp", env=QUIET) as client:
            tools = await offered(client)
            assert groups["codex"] | groups["sessions"] <= set(tools)
            assert here.requests == []
        for words in ("codex", "sessions", "sessions, codex"):
            async with here.server("mcp", "--tools", words, env=QUIET) as client:
                wanted = set().union(*(names for group, names in groups.items() if group in words))
                assert set(await offered(client)) == wanted

    schema = tools["codex"]["inputSchema"]
    assert {"identity", "prompt", "agent_file", "agent_id", "role", "cwd", "tag", "model"} <= set(
        schema["properties"]
    )
    assert "required" not in schema, "prompt, agent_file or agent_id"


async def offered(client: Client) -> dict[str, Message]:
    return {tool["name"]: tool for tool in (await client.ask("tools/list"))["result"]["tools"]}


@pytest.mark.covers("FR-12.1", "NFR-5")
async def test_a_wrong_key_is_told_with_its_place_and_logs_stay_off_the_protocol(tmp_path: Path) -> None:
    """Strict inside our own tables; standard output carries nothing but JSON-RPC, at any log level."""
    async with stage(tmp_path) as here:
        configure(here, TABLE + 'modell = "x"\n')
        async with here.server("mcp", greet=False) as client:
            assert await client.process.wait() == 2
            await client.aclose()
            assert "line 2" in client.stderr
            assert "modell" in client.stderr
        configure(here, TABLE)
        async with here.server("mcp", "--log-level", "trace", env=QUIET) as client:
            await client.content("codex", prompt="%say x")
            await client.hang_up()
            await client.aclose()
            assert client.stderr, "and every line of standard output was read as JSON"


@pytest.mark.covers("FR-12.3")
async def test_a_repository_that_nobody_trusts_widens_nothing(tmp_path: Path) -> None:
    """What it may not set is named once on standard error; what it may, counts."""
    repo = repository(tmp_path / "project")
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o700)
    (repo / ".atm.toml").write_text(
        TABLE + f'codex_bin = "{evil}"\nsandbox = "danger-full-access"\nreasoning_effort = "low"\n'
    )
    git(repo, "add", ".atm.toml")
    async with stage(tmp_path / "state") as here, here.server("mcp", cwd=repo, env=QUIET) as client:
        how = await started(client)
        await client.hang_up()
        await client.aclose()

    assert sandbox(how) != "danger-full-access"
    assert here.requests[-1]["reasoning"]["effort"] == "low"
    assert client.stderr.count("is ignored") == 2
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("command", ["mcp", "mcp-server"])
async def test_the_settings_can_forbid_calls_to_set_what_is_not_harmless(
    tmp_path: Path, command: str
) -> None:
    """By default every key passes; with `harmless` the call is refused, and its flags still hold."""
    repo = repository(tmp_path / "project")
    asked = {"prompt": "%say x", "config": {"features": {"multi_agent": True}}}
    async with stage(tmp_path / "state") as here:
        async with here.server(command, cwd=repo, env=QUIET) as client:
            await client.content("codex", **asked)
        (repo / ".atm.toml").write_text('[laneway]\nconfig_keys = "harmless"\n')
        flags = ("-c", "features.multi_agent=true", "-s", "workspace-write")
        async with here.server(command, cwd=repo, env=QUIET) as client:
            answer = await client.call("codex", **asked)
            assert "features.multi_agent" in str(answer)
            assert "config_keys" in str(answer)
            assert ("error" in answer) == (command == "mcp")
            await client.content("codex", prompt="%say x", config={"model_reasoning_effort": "low"})
            assert here.requests[-1]["reasoning"]["effort"] == "low"
        async with here.server(command, *flags, cwd=repo, env=QUIET) as client:
            await client.content("codex", **asked)
            await client.content("codex", prompt="%run touch made\n%say x")

    assert (repo / "made").exists(), "the sandbox is another matter"


async def test_a_config_that_contradicts_itself_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """Codex would take it one way or the other, from call to call."""
    async with stage(tmp_path) as here, here.server("mcp", env=QUIET) as client:
        for config, key in (
            ({"features": "all", "features.multi_agent": True}, "features"),
            ({"mcp_servers.laneway_mail.command": "true"}, "mcp_servers.laneway_mail"),
            ({"a..b": 1}, "a..b"),
        ):
            error = await client.error("codex", prompt="%say x", identity="dev", config=config)
            assert (error["code"], error["data"]["key"]) == (-32007, key)
            assert key in error["message"]
        await client.content("codex", prompt="%say x", identity="dev")
