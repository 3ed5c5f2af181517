"""Point 3: a session that is opened again has its mode, model and effort back, and never more access."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path

from laneway.doors.acp.ids import session_id, thread_id
from tests.doors.acp.golden import golden
from tests.doors.acp.support import FULL, UNSTABLE, Client, Stage, stage
from tests.doors.acp.witness import (
    INSIDE,
    NETWORK,
    OUTSIDE,
    choose,
    configure,
    current,
    tried,
    turns,
    untouched,
)

EVERYTHING = {INSIDE, OUTSIDE, NETWORK}
WIDE = 'sandbox_mode = "danger-full-access"\napproval_policy = "never"'
NARROW = 'sandbox_mode = "read-only"'
WORKSPACE = 'sandbox_mode = "workspace-write"'
MODES = {"config": set(), "read-only": set(), "code": {INSIDE}, "ask": {INSIDE}, "full": EVERYTHING}
"""What a session of each mode may do where config.toml says nothing."""
FORK = ("session/fork",)


async def started(here: Stage, modes: tuple[str, ...] = tuple(MODES)) -> dict[str, str]:
    """A session of each mode, with a turn; by an adapter that is gone then."""
    sessions = {}
    async with here.agent() as client:
        for mode in modes:
            sessions[mode] = session = await client.new()
            if mode != "config":
                await client.ask("session/set_mode", {"sessionId": session, "modeId": mode})
            await client.prompt(session, "%say Started.")
    return sessions


def allowed(client: Client) -> None:
    client.on_permission = lambda params: {"outcome": {"outcome": "selected", "optionId": "accept"}}


async def test_a_restarted_adapter_brings_back_every_mode_and_widens_none(tmp_path: Path) -> None:
    """Also where config.toml has become wider, or narrower, since: what was chosen then is what holds."""
    async with stage(tmp_path) as here:
        sessions = await started(here)
        for lines in (WIDE, NARROW):
            configure(here, lines)
            with untouched(here):
                async with here.agent() as client:
                    allowed(client)
                    for mode, session in sessions.items():
                        await (client.load if lines == WIDE else client.resume)(session)
                        shown = client.opened[session]["modes"]["currentModeId"]
                        if mode != "config":
                            assert shown == mode
                        could = await tried(here, client, session)
                        assert (lines, mode, could) == (lines, mode, MODES[mode])


async def test_model_effort_and_network_come_back_with_the_mode(tmp_path: Path) -> None:
    """Shown in the answer, and what the next turn runs with."""
    async with stage(tmp_path) as here:
        async with here.agent(capabilities=FULL) as client:
            session = await client.new()
            await choose(client, session, "mode", "code")
            await choose(client, session, "model", "gpt-6-luna")
            await choose(client, session, "thought_level", "high")
            options = await choose(client, session, "network", value=True)
            await client.prompt(session, "%say Before.")
        async with here.agent(capabilities=FULL) as client:
            await client.load(session)
            assert client.opened[session]["configOptions"] == options
            trace = client.trace()
            assert await tried(here, client, session) == {INSIDE, NETWORK}
        golden("point-03-reopened", trace)
        (before, after) = turns(here, session)
    assert before == after
    assert after[1:] == ("workspace-write", True, "gpt-6-luna", "high")


async def test_what_was_chosen_but_never_used_comes_back_too(tmp_path: Path) -> None:
    """The choice counts, not the turn that it waited for."""
    async with stage(tmp_path) as here:
        (session,) = (await started(here, ("config",))).values()
        async with here.agent() as client:
            await client.resume(session)
            await choose(client, session, "mode", "read-only")
            await choose(client, session, "thought_level", "low")
        configure(here, WIDE)
        async with here.agent() as client:
            await client.resume(session)
            options = current(client.opened[session]["configOptions"])
            assert (options["mode"], options["thought_level"]) == ("read-only", "low")
            assert await tried(here, client, session) == set()


async def copied(here: Stage, client: Client, session: str) -> str:
    where = {"sessionId": session, "cwd": str(here.work), "mcpServers": []}
    copy: str = (await client.ask("session/fork", where))["sessionId"]
    assert copy != session
    return copy


async def test_a_copy_may_do_no_more_than_its_original(tmp_path: Path) -> None:
    """Codex gives copies what config.toml says; here that is everything, and no session had that."""
    async with stage(tmp_path) as here:
        sessions = await started(here, ("config", "read-only", "code"))
        configure(here, WIDE)
        with untouched(here):
            async with here.agent(capabilities=UNSTABLE, unstable=FORK) as client:
                for mode, session in sessions.items():
                    copy = await copied(here, client, session)
                    assert (mode, await tried(here, client, copy)) == (mode, MODES[mode])
                    assert "Started." in str(here.requests[-1]["input"])  # the copy has what was said


async def test_a_copy_of_an_open_session_has_its_access_though_nothing_could_be_kept(tmp_path: Path) -> None:
    """A file stands where the folder for state should be: what is open is known all the same."""
    blocked = tmp_path / "state"
    blocked.write_text("no folder")
    env = {"XDG_STATE_HOME": str(blocked)}
    async with stage(tmp_path) as here:
        configure(here, WIDE)
        async with here.agent(env=env, capabilities=UNSTABLE, unstable=FORK) as client:
            session = await client.new()
            await client.ask("session/set_mode", {"sessionId": session, "modeId": "read-only"})
            await client.prompt(session, "%say Started.")
            assert await tried(here, client, await copied(here, client, session)) == set()


# ── threads of others ──────────────────────────────────────────────────────


async def exec_codex(here: Stage, *words: str) -> str:
    """A thread that `codex exec` started; its session."""
    known = set(here.home.glob("sessions/**/rollout-*.jsonl"))
    process = await asyncio.create_subprocess_exec(
        here.environment["LANEWAY_CODEX_BIN"],
        "exec",
        "--skip-git-repo-check",
        *words,
        "%say Hello.",
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env=here.environment,
        cwd=here.work,
    )
    _, errors = await process.communicate()
    assert process.returncode == 0, errors
    (path,) = set(here.home.glob("sessions/**/rollout-*.jsonl")) - known
    return session_id(path.stem[-36:])


async def test_a_copy_of_a_thread_of_others_may_only_read(tmp_path: Path) -> None:
    """Nothing is known of what it was meant to do, and config.toml would let it do everything."""
    async with stage(tmp_path) as here:
        session = await exec_codex(here, "-s", "workspace-write")
        configure(here, WIDE)
        async with here.agent(capabilities=UNSTABLE, unstable=FORK) as client:
            assert await tried(here, client, await copied(here, client, session)) == set()


async def test_a_thread_of_others_keeps_the_access_that_it_had(tmp_path: Path) -> None:
    """Whatever config.toml has become; the mode that is shown is the one that stands for it."""
    async with stage(tmp_path) as here:
        sessions = {
            "read-only": await exec_codex(here, "-s", "read-only"),
            "workspace": await exec_codex(here, "-s", "workspace-write"),
            "everything": await exec_codex(here, "-s", "danger-full-access"),
        }
        assert all(thread_id(session) for session in sessions.values())
        could = {}
        configure(here, WIDE)
        with untouched(here):
            async with here.agent() as client:
                for name, session in sessions.items():
                    await client.load(session)
                    could[name] = await tried(here, client, session)
        assert could == {"read-only": set(), "workspace": {INSIDE}, "everything": EVERYTHING}
