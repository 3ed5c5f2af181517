"""Point 3: config.toml rules until a mode is chosen; then just what was chosen, and that for real."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doors.acp.golden import golden
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import FULL, Message, select, stage
from tests.doors.acp.witness import (
    INSIDE,
    NETWORK,
    OUTSIDE,
    Ran,
    choose,
    configure,
    current,
    said_to_codex,
    tapped,
    tried,
    turns,
    untouched,
)

EVERYTHING = {INSIDE, OUTSIDE, NETWORK}
MODEL = "gpt-5.5"
CONFIGS = {
    "nothing": ("", "", set(), ("on-request", "read-only", False)),
    "workspace": (
        'sandbox_mode = "workspace-write"\napproval_policy = "never"',
        "",
        {INSIDE},
        ("never", "workspace-write", False),
    ),
    "workspace and network": (
        'sandbox_mode = "workspace-write"\nsandbox_workspace_write.network_access = true',
        "",
        {INSIDE, NETWORK},
        ("on-request", "workspace-write", True),
    ),
    "everything": (
        'sandbox_mode = "danger-full-access"\napproval_policy = "never"\nmodel_reasoning_effort = "high"',
        "",
        EVERYTHING,
        ("never", "danger-full-access", True),
    ),
    "a profile": (
        'default_permissions = "mine"',
        '[permissions.mine.filesystem]\n":root" = "read"\n":workspace_roots" = { "." = "write" }\n',
        {INSIDE},
        None,
    ),
}
OPTIONS = ["mode", "model", "thought_level", "reasoning_summary", "network"]
"""And the personality, for the few models that have one."""
SETTINGS = {"model", "effort", "summary", "personality", "approvalPolicy", "sandboxPolicy", "permissions"}


@pytest.mark.parametrize("name", CONFIGS)
async def test_until_a_mode_is_chosen_the_users_settings_rule(tmp_path: Path, name: str) -> None:
    """Whatever they are: seen in what a command can do, in Codex's record, and in the mode's description."""
    lines, tables, powers, ran = CONFIGS[name]
    async with stage(tmp_path) as here:
        configure(here, lines, tables)
        with untouched(here):
            async with here.agent() as client:
                session = await client.new()
                assert client.opened[session]["modes"]["currentModeId"] == "config"
                assert await tried(here, client, session) == powers
                assert client.asked == []
        (turn,) = turns(here, session)
    if ran is not None:
        assert (turn.approval, turn.sandbox, turn.network) == ran
    assert turn.effort == ("high" if "effort" in lines else None)


@pytest.mark.parametrize("lines", ["", 'sandbox_mode = "workspace-write"'], ids=["nothing", "workspace"])
async def test_no_folder_is_trusted_but_by_the_user(tmp_path: Path, lines: str) -> None:
    """Neither in config.toml nor for the session: what lies in the folder itself does not rule there."""
    async with stage(tmp_path) as here:
        (here.work / ".codex").mkdir()
        (here.work / ".codex" / "config.toml").write_text('model_reasoning_effort = "high"\n')
        by_user = f'[projects."{here.work}"]\ntrust_level = "trusted"\n'
        for tables, effort in (("", None), (by_user, "high")):
            configure(here, lines, tables)
            with untouched(here):
                async with here.agent() as client:
                    session = await client.new()
                    for mode in ("config", "code", "full"):
                        await client.ask("session/set_mode", {"sessionId": session, "modeId": mode})
                        await client.prompt(session, "%say Hello.")
            assert [turn.effort for turn in turns(here, session)] == [effort] * 3


async def test_nothing_is_sent_along_until_something_is_chosen_and_then_only_that(tmp_path: Path) -> None:
    """As Codex hears it: the wire between it and us is tapped."""
    log = tmp_path / "log"
    async with stage(tmp_path) as here, here.agent(env=tapped(here, log)) as client:
        session = await client.new()
        await client.prompt(session, "%say One.")
        await choose(client, session, "thought_level", "high")
        await client.prompt(session, "%say Two.")
        await choose(client, session, "mode", "code")
        await client.prompt(session, "%say Three.")
    (start,) = said_to_codex(log, "thread/start")
    assert not start.keys() & {"sandbox", "approvalPolicy", "permissions", "model"}
    brought = [SETTINGS & params.keys() for params in said_to_codex(log, "turn/start")]
    assert brought == [set(), {"effort"}, {"effort", "approvalPolicy", "sandboxPolicy"}]
    assert said_to_codex(log, "thread/settings/update") == []


async def test_every_mode_is_what_it_says_and_back_is_back(tmp_path: Path) -> None:
    """Tried with real writes and a real connection, in one session after the other mode."""
    expected = {
        "ask": ({INSIDE}, Ran("untrusted", "workspace-write", False, MODEL, None)),
        "code": ({INSIDE}, Ran("on-request", "workspace-write", False, MODEL, None)),
        "read-only": (set(), Ran("on-request", "read-only", False, MODEL, None)),
        "full": (EVERYTHING, Ran("never", "danger-full-access", True, MODEL, None)),
        "config": ({INSIDE}, Ran("never", "workspace-write", False, MODEL, None)),
    }
    async with stage(tmp_path) as here:
        configure(here, 'sandbox_mode = "workspace-write"\napproval_policy = "never"')
        with untouched(here):
            async with here.agent() as client:
                client.on_permission = lambda params: select(params, "allow_once")
                session = await client.new()
                for mode, (powers, _) in expected.items():
                    await client.ask("session/set_mode", {"sessionId": session, "modeId": mode})
                    assert (mode, await tried(here, client, session)) == (mode, powers)
        assert dict(zip(expected, turns(here, session), strict=True)) == {
            mode: ran for mode, (_, ran) in expected.items()
        }
    assert len(client.asked) == 1  # only the mode that asks has asked


@pytest.mark.parametrize(("name", "capabilities"), [("bare", {}), ("full", FULL)], ids=["bare", "full"])
async def test_the_network_is_a_switch_of_its_own_in_every_mode(
    shared: Shared, name: str, capabilities: Message
) -> None:
    """On and off in the mode of config.toml and in another; a switch or two words, as the client can show."""
    on, off = (True, False) if capabilities else ("on", "off")
    async with shared.stage() as here, here.agent(capabilities=capabilities) as client:
        session = await client.new()
        assert current(client.opened[session]["configOptions"])["network"] == off
        assert current(await choose(client, session, "network", on))["network"] == on
        assert await tried(here, client, session) == {NETWORK}
        await client.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
        assert await tried(here, client, session) == {INSIDE, NETWORK}
        assert current(await choose(client, session, "network", off))["mode"] == "code"
        assert await tried(here, client, session) == {INSIDE}
        await choose(client, session, "mode", "config")
        assert await tried(here, client, session) == set()
        assert [turn[:3] for turn in turns(here, session)] == [
            ("on-request", "read-only", True),
            ("on-request", "workspace-write", True),
            ("on-request", "workspace-write", False),
            ("on-request", "read-only", False),
        ]


@pytest.mark.parametrize(("name", "capabilities"), [("bare", {}), ("full", FULL)], ids=["bare", "full"])
async def test_the_options_are_told_whole_at_every_change(
    shared: Shared, name: str, capabilities: Message
) -> None:
    """The story for the record: as configured, then a mode, an effort and the network."""
    async with shared.stage() as here, here.agent(capabilities=capabilities) as client:
        session = await client.new()
        await client.prompt(session, "%say As configured.")
        await client.ask("session/set_mode", {"sessionId": session, "modeId": "code"})
        await choose(client, session, "thought_level", "high")
        options = await choose(client, session, "network", True if capabilities else "on")
        await client.prompt(session, "%say As chosen.")
        assert [each for each in current(options) if each != "personality"] == OPTIONS
        assert {"mode": "code", "thought_level": "high"}.items() <= current(options).items()
        assert [turn.effort for turn in turns(here, session)] == [None, "high"]
        assert [request["reasoning"]["effort"] for request in here.requests] == ["medium", "high"]
    golden(f"point-03-config-rules-{name}", client.trace())


async def test_reasoning_is_shown_as_configured_until_somebody_chooses(tmp_path: Path) -> None:
    """As the model is asked for it; also with an API key, and what it shows is told as thoughts."""
    async with stage(tmp_path) as here:
        configure(here, 'model_reasoning_summary = "detailed"')
        async with here.agent(env={"OPENAI_API_KEY": "sk-rehearsal-0123456789"}) as client:
            await client.ask("authenticate", {"methodId": "api-key"})
            session = await client.new()
            options = client.opened[session]["configOptions"]
            for wanted in ("detailed", "concise", "none"):
                if wanted != "detailed":
                    options = await choose(client, session, "reasoning_summary", wanted)
                assert current(options)["reasoning_summary"] == wanted
                await client.prompt(session, "%think Hm.\n%say Hello.")
        asked = [request["reasoning"].get("summary") for request in here.requests]
    assert asked == ["detailed", "concise", None]
    assert client.messages(session, "agent_thought_chunk") == ["Hm."] * 3
