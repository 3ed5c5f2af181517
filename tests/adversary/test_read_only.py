"""`laneway mcp --readonly` writes nothing and starts nothing that a call asks for, on the real Codex."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.adversary import marking_tools
from tests.core.support import until
from tests.doors.mcp.support import FORMS, Message, stage
from tests.doors.mcp.test_seeds import ATM, CODEX
from tests.doors.mcp.views import QUIET, audit, configure

Config = dict[str, Any]
LANEWAY = ("-m", "laneway")
UNKNOWN = ("-m", "no-such-model")
"""Codex shows such a model the tools of all MCP servers at once."""
BECAUSE = "Declined, because this server was started with --readonly"


def marking(mark: Path) -> list[str]:
    """A program that leaves this file behind."""
    return ["/bin/sh", "-c", f"touch '{mark}'"]


def server(mark: Path) -> Config:
    command, *args = marking(mark)
    return {"command": command, "args": args}


def dotted(mark: Path) -> Config:
    return {f"mcp_servers.evil.{key}": value for key, value in server(mark).items()}


WORKING: dict[str, Callable[[Path], Config]] = {
    "nested": lambda mark: {"mcp_servers": {"evil": server(mark)}},
    "dotted": dotted,
    "quoted": lambda mark: {f'mcp_servers."evil".{key}': value for key, value in server(mark).items()},
    "half dotted": lambda mark: {"mcp_servers.evil": server(mark)},
    "notify": lambda mark: {"notify": marking(mark)},
}
"""Configs that start a program where nobody forbids it."""
WIDER: dict[str, Callable[[Path], Config]] = {
    **WORKING,
    "hidden behind a harmless key": lambda mark: {"model": "gpt-5.4", **dotted(mark)},
    "quoted whole": lambda mark: {'"mcp_servers".evil.command': "/bin/true"},
    "hooks": lambda mark: {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "true"}]}]}},
    "provider": lambda mark: {"model_providers": {"mine": {"auth": {"command": "/bin/true"}}}},
    "sandbox": lambda mark: {"sandbox_mode": "danger-full-access"},
    "roots": lambda mark: {"sandbox_workspace_write.writable_roots": [str(mark.parent)]},
    "permissions": lambda mark: {"default_permissions": ":workspace"},
    "reviewer": lambda mark: {"approvals_reviewer": "auto_review"},
    "trust": lambda mark: {"projects": {str(mark.parent): {"trust_level": "trusted"}}},
    "feature": lambda mark: {"features.multi_agent": True},
    "profile": lambda mark: {"profile": "wide"},
}


def written(folder: Path) -> list[str]:
    """The names of what is in a folder."""
    return sorted(os.listdir(folder))


async def wait_there(mark: Path) -> None:
    await until(lambda: mark.name in written(mark.parent))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Where servers are started and sessions work: in no repository, or they would work at its root."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


async def test_elsewhere_such_a_config_starts_its_program(tmp_path: Path, work: Path) -> None:
    """So that the next tests look at something: without the flag the file is there."""
    async with stage(tmp_path / "state") as here, here.server("mcp", env=QUIET, cwd=work) as client:
        for number, make in enumerate(WORKING.values()):
            mark = tmp_path / f"mark-{number}"
            await client.content("codex", prompt="%say x", config=make(mark))
            await wait_there(mark)


@pytest.mark.parametrize(
    ("program", "command"),
    [(LANEWAY, "mcp"), (ATM, "serve"), (CODEX, "serve")],
    ids=["laneway", "atm", "codex"],
)
async def test_no_key_that_starts_a_program_or_widens_access_passes(
    tmp_path: Path, work: Path, program: tuple[str, ...], command: str
) -> None:
    """Refused before there is a session, in a sentence that names the key; what is harmless passes."""
    mark = tmp_path / "mark"
    async with (
        stage(tmp_path / "state") as here,
        here.server(command, "--readonly", env=QUIET, cwd=work, program=program) as client,
    ):
        for name, make in WIDER.items():
            config = make(mark)
            key = next(key for key in config if key != "model").replace('"', "").partition(".")[0]
            error = await client.error("codex", prompt="%say x", config=config)
            assert (error["code"], error["data"]["key"].partition(".")[0]) == (-32007, key), name
            assert f"may not set {error['data']['key']}" in error["message"]
        error = await client.error("codex", prompt="%say x", profile="wide")
        assert (error["code"], error["data"]["key"]) == (-32007, "profile")
        done = await client.content("codex", prompt="%say x", config={"model_reasoning_effort": "low"})
        assert here.requests[-1]["reasoning"]["effort"] == "low"
        assert len(here.requests) == 1
        own = next(done[name] for name in ("agent_id", "codex_id") if name in done)
        again = {name: own for name in ("agent_id", "codex_id") if name in done}
        error = await client.error("codex", prompt="%say x", config=dotted(mark), **again)
        assert error["code"] == -32007, "nor when it is resumed"

    assert not mark.exists()


@pytest.mark.parametrize("policy", ["on-request", "untrusted", "never", None])
async def test_an_escalation_is_declined_though_the_client_would_accept_it(
    tmp_path: Path, work: Path, policy: str | None
) -> None:
    """By command and by patch; nobody is asked, nothing is written, and the result says why."""
    steps = "%run! touch 'by command.txt'\n%patch patched.txt hello"
    policies = {} if policy is None else {"approval-policy": policy}
    async with stage(tmp_path / "state") as here:
        async with here.server("mcp", "--readonly", capabilities=FORMS, env=QUIET, cwd=work) as client:
            client.on_ask = lambda message: {"action": "accept", "content": {}}
            done = await client.content("codex", prompt=steps, **policies)
            asked = [message for message in client.heard if "id" in message]
        lines = [line["outcome"] for line in audit(here) if line["event_type"] == "approval"]

        assert written(work) == []
    assert asked == []
    if policy != "never":
        assert BECAUSE in done["content"]
        assert set(lines) == {"read-only"}


async def test_neither_does_a_stateless_or_a_parked_question_reach_anybody(
    tmp_path: Path, work: Path
) -> None:
    """The call comes back complete, and there is nothing to answer."""
    call = {"name": "codex", "arguments": {"prompt": "%run! touch made\n%say went on"}}
    async with (
        stage(tmp_path / "state") as here,
        here.server("mcp", "--readonly", "--unattended", "park", greet=False, env=QUIET, cwd=work) as client,
    ):
        for capabilities in (FORMS, {}):
            answer = await client.stateless("tools/call", call, capabilities)
            told: Message = answer["result"]["structuredContent"]
            assert "status" not in told
            assert BECAUSE in told["content"]
        assert written(work) == []


async def test_a_reviewer_of_codexs_own_cannot_grant_what_we_would_decline(
    tmp_path: Path, work: Path
) -> None:
    """`approvals_reviewer` of the user's config.toml lets a model decide; here the question comes to us."""
    async with stage(tmp_path / "state") as here:
        config = here.home / "config.toml"
        config.write_text('approvals_reviewer = "auto_review"\n' + config.read_text())
        async with here.server("mcp", "--readonly", capabilities=FORMS, env=QUIET, cwd=work) as client:
            done = await client.content("codex", prompt="%run! touch made\n%say went on")
            again = await client.content(
                "codex-reply", agent_id=done["agent_id"], prompt="%run! touch made\n%say x"
            )
        async with here.server("mcp", "--readonly", capabilities=FORMS, env=QUIET, cwd=work) as client:
            resumed = await client.content(
                "codex", agent_id=done["agent_id"], prompt="%run! touch made\n%say went on"
            )
        assert written(work) == []

    assert [BECAUSE in each["content"] for each in (done, again, resumed)] == [True] * 3


async def test_a_tool_of_the_users_own_server_that_may_write_is_declined(tmp_path: Path, work: Path) -> None:
    """It runs outside of the sandbox; Codex asks before it runs, and the willing client is not asked."""
    mark = tmp_path / "mark"
    own = f'[mcp_servers.own]\ncommand = "{sys.executable}"\nargs = ["{marking_tools.__file__}", "{mark}"]\n'
    async with (
        stage(tmp_path / "state", extra_config=own) as here,
        here.server("mcp", "--readonly", *UNKNOWN, capabilities=FORMS, env=QUIET, cwd=work) as client,
    ):
        client.on_ask = lambda message: {"action": "accept", "content": {}}
        done = await client.content("codex", prompt="%tool leave_a_mark {}\n%say went on")
        assert not [message for message in client.heard if "id" in message]

    assert mark.exists(), "the user's own servers run"
    assert BECAUSE in done["content"]
    assert not (tmp_path / "mark.called").exists()


@pytest.mark.parametrize("tool", ["codex", "codex-reply"])
async def test_a_session_from_a_writable_past_comes_back_without_its_programs(
    tmp_path: Path, work: Path, tool: str
) -> None:
    """It was kept with a server of its own and full access; it has neither here, and the result says so."""
    mark = tmp_path / "mark"
    async with stage(tmp_path / "state") as here:
        async with here.server("mcp", "-a", "never", env=QUIET, cwd=work) as client:
            session = await client.content(
                "codex", prompt="%run touch first", sandbox="danger-full-access", config=dotted(mark)
            )
            await wait_there(mark)
            client.process.kill()  # it stays open, for `codex-reply`
            await client.process.wait()
        mark.unlink()
        (work / "first").unlink()
        async with here.server("mcp", "--readonly", capabilities=FORMS, env=QUIET, cwd=work) as client:
            client.on_ask = lambda message: {"action": "accept", "content": {}}
            told = [
                (await client.content(tool, agent_id=session["agent_id"], prompt=prompt))["content"]
                for prompt in ("%run touch second\n%say one", "%run! touch third\n%say two")
            ]
        assert written(work) == []
        async with here.server("mcp", "-a", "never", env=QUIET, cwd=work) as client:
            await client.content("codex", agent_id=session["agent_id"], prompt="%say x")
            await wait_there(mark)

    assert "Left out of the session's config" in told[0]
    assert "mcp_servers.evil" in told[0]
    assert "Left out" not in told[1]


async def test_what_its_starter_says_by_flag_passes_and_a_call_may_repeat_it(
    tmp_path: Path, work: Path
) -> None:
    """The flags are the user's own; a sandbox among settings and flags yields to --readonly."""
    mark = tmp_path / "mark"
    command, *args = marking(mark)
    flags = ("-c", f'mcp_servers.mine.command="{command}"', "-c", f"mcp_servers.mine.args={args}")
    wide = ("-c", 'sandbox_mode="danger-full-access"', "-s", "workspace-write")
    async with stage(tmp_path / "state") as here:
        configure(here, '[laneway]\nsandbox = "workspace-write"\n')
        async with here.server("mcp", "--readonly", *flags, *wide, env=QUIET, cwd=work) as client:
            await client.content(
                "codex", prompt="%run touch made\n%say x", config={"mcp_servers.mine.command": command}
            )
            await wait_there(mark)
            error = await client.error(
                "codex", prompt="%say x", config={"mcp_servers.mine.args": ["-c", "x"]}
            )
        assert written(work) == []

    assert (error["code"], error["data"]["key"]) == (-32007, "mcp_servers.mine.args")
