"""From what a call asks for to a thread: what passes, what is refused, what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import ConfigRefused, RemoteError
from laneway.codex import config_keys
from laneway.codex.config_keys import narrowing
from laneway.core.ports import ThreadSpec
from laneway.doors.mcp.presets import Preset, SessionDefaults, changes_of, left_out_notes, spec_of

HERE = Path("/")
EVIL = {"mcp_servers.evil.command": "x"}


def mail_stage(**fields: Any) -> SessionDefaults:
    return SessionDefaults(cwd=HERE, base_dir=HERE, rules=config_keys, **fields)


def test_a_calls_config_lies_over_the_servers_in_one_nested_table() -> None:
    """In whatever spelling either came."""
    ours = {"features": {"multi_agent": True}, "model_verbosity": "low"}
    asked = {"features.x": 1, "mcp_servers": {"my.server": {"command": "y"}}, "model_verbosity": "high"}
    spec = spec_of(
        mail_stage(config=ours), {"config": asked, "compact-prompt": "short", "include-plan-tool": True}
    )
    assert spec.config == {
        "features": {"multi_agent": True, "x": 1},
        "model_verbosity": "high",
        "mcp_servers": {"my.server": {"command": "y"}},
        "compact_prompt": "short",
        "tools": {"update_plan": {"enabled": True}},
    }


@pytest.mark.parametrize(
    ("narrow", "says"), [({"is_read_only": True}, "--readonly"), ({"config_keys": "harmless"}, "config_keys")]
)
def test_a_narrow_server_refuses_what_is_not_harmless(narrow: dict[str, Any], says: str) -> None:
    """For a new session and for one that is had back; by `config` and by `profile`."""
    cases: list[dict[str, Any]] = [
        {"config": EVIL},
        {"profile": "p"},
        {"config": {"mcp_servers": {"evil": {}}}},
    ]
    for arguments in cases:
        for read in (spec_of, changes_of):
            with pytest.raises(ConfigRefused, match=says) as refused:
                read(mail_stage(**narrow), arguments)
            assert refused.value.key in str(refused.value)
    fine = {"config": {"model_verbosity": "low"}, "compact-prompt": "short", "include-plan-tool": True}
    assert spec_of(mail_stage(**narrow), fine).config["model_verbosity"] == "low"


def test_the_flags_of_whoever_started_it_pass_and_are_not_taken_as_the_calls() -> None:
    """What a call says of its own is looked at; also where it changes a flag's value."""
    own = {"mcp_servers": {"mine": {"command": "x"}}}
    assert spec_of(mail_stage(is_read_only=True, config=own), {}).config == own
    assert spec_of(mail_stage(is_read_only=True, config=own), {"config": own}).config == own
    with pytest.raises(ConfigRefused, match=r"mcp_servers\.mine\.command"):
        spec_of(mail_stage(is_read_only=True, config=own), {"config": {"mcp_servers.mine.command": "y"}})


def test_a_wider_sandbox_is_refused_to_a_call_and_not_held_against_the_settings() -> None:
    """Who writes `sandbox = "workspace-write"` into their settings can still start a read-only server."""
    writer = {"writer": Preset(sandbox="workspace-write")}
    narrow = mail_stage(is_read_only=True, sandbox="workspace-write", roles=writer)
    assert spec_of(narrow, {}).sandbox == "read-only"
    for wider in ({"sandbox": "workspace-write"}, {"sandbox": "danger-full-access"}, {"role": "writer"}):
        with pytest.raises(RemoteError, match="--readonly"):
            spec_of(narrow, wider)
    assert spec_of(mail_stage(sandbox="workspace-write"), {}).sandbox == "workspace-write"


def test_every_thread_of_a_read_only_server_is_narrowed_as_it_is_opened() -> None:
    """Also one that nobody's call has asked for; what we equip it with comes behind, and stays."""

    def equip(agent_id: str, spec: ThreadSpec) -> ThreadSpec:
        assert spec.sandbox == "read-only"
        return ThreadSpec(cwd=spec.cwd, config=spec.config, extras={"equipped": agent_id})

    kept = ThreadSpec(cwd=HERE, sandbox="danger-full-access", config={**EVIL, "model": "m"})
    narrowed = narrowing({}, is_read_only=True, keys="any", equip=equip)("agent-1", kept)
    assert (narrowed.config, narrowed.extras) == ({"model": "m"}, {"equipped": "agent-1"})
    as_it_is = narrowing({}, is_read_only=False, keys="any", equip=lambda _, spec: spec)
    assert as_it_is("agent-1", kept) is kept
    harmless = narrowing({}, is_read_only=False, keys="harmless", equip=lambda _, spec: spec)
    assert (harmless("a", kept).config, harmless("a", kept).sandbox) == ({"model": "m"}, "danger-full-access")


def test_what_is_left_out_is_named_and_not_at_length() -> None:
    """Each server or table once, and no more than a few."""
    assert left_out_notes(mail_stage(), EVIL) == ()
    assert left_out_notes(mail_stage(is_read_only=True), {"model": "m"}) == ()
    (said,) = left_out_notes(
        mail_stage(is_read_only=True), {**EVIL, "mcp_servers.evil.args": [], "notify": ["x"]}
    )
    assert said.endswith("because this server was started with --readonly: mcp_servers.evil, notify")
    many = {f"mcp_servers.s{number}.command": "x" for number in range(8)}
    (said,) = left_out_notes(mail_stage(config_keys="harmless"), many)
    assert said.endswith(
        "because config_keys forbids it: " + ", ".join(f"mcp_servers.s{n}" for n in range(5)) + " and 3 more"
    )
