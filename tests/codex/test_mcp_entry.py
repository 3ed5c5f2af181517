"""When a thread gets an MCP server entry for our tools, and what the entry contains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import ConfigRefused
from laneway.codex.mcp_entry import check_is_free, entry, is_needed
from laneway.core.ports import ThreadSpec

TOOLS = ("atm_send", "atm_read")


def spec(config: dict[str, Any] | None = None, had: tuple[str, ...] = TOOLS) -> ThreadSpec:
    return ThreadSpec(cwd=Path("/"), config=config or {}, had_tools=had)


@pytest.mark.parametrize(
    ("config", "had", "takes_tools", "expected"),
    [
        ({}, TOOLS, True, False),
        ({}, (*TOOLS, "more"), True, False),
        ({}, (), True, True),
        ({}, ("atm_send",), True, True),
        ({}, TOOLS, False, True),
        ({"features.multi_agent": True}, TOOLS, True, True),
        ({"features.multi_agent": False}, TOOLS, True, False),
        ({"features": {"multi_agent": True}}, TOOLS, True, True),
        ({"features": {"multi_agent": False, "multi_agent_v2": True}}, TOOLS, True, True),
        ({"features.multi_agent_v2": {"enabled": True}}, TOOLS, True, True),
        ({"features.multi_agent_v2.enabled": True}, TOOLS, True, True),
        ({"features": "nonsense"}, TOOLS, True, False),
        ({"features.multi_agent": "yes"}, TOOLS, True, False),
    ],
)
def test_a_process_is_paid_for_only_where_tools_would_not_reach(
    config: dict[str, Any], had: tuple[str, ...], takes_tools: bool, expected: bool
) -> None:
    """A thread that was started with them has them for life; its subagents never do."""
    assert is_needed(spec(config, had), TOOLS, takes_tools=takes_tools) is expected


def test_an_entry_is_one_server_in_a_table_that_codex_merges_with_the_users_own() -> None:
    """Nested, so that nothing depends on the order in which Codex takes keys."""
    assert entry("ours", ["python", "-I", "bridge.py"], {"KEY": "k"}) == {
        "mcp_servers": {
            "ours": {
                "command": "python",
                "args": ["-I", "bridge.py"],
                "env": {"KEY": "k"},
                "default_tools_approval_mode": "approve",
                "tool_timeout_sec": 120,
            }
        }
    }


@pytest.mark.parametrize(
    "config",
    [
        {"mcp_servers": {"ours": {"command": "x"}, "theirs": {"command": "y"}}},
        {"mcp_servers.ours.command": "x"},
        {'mcp_servers."ours"': {"url": "http://127.0.0.1:1"}},
        {"mcp_servers.ours": None},
    ],
)
def test_a_caller_cannot_have_a_server_of_our_name(config: dict[str, Any]) -> None:
    """In whatever spelling, and whether or not our entry is needed: its tools would pass for ours."""
    with pytest.raises(ConfigRefused, match=r"mcp_servers\.ours is Laneway's own entry") as refused:
        check_is_free("ours", config)
    assert refused.value.key == "mcp_servers.ours"


def test_servers_of_other_names_are_left_alone() -> None:
    """Also one whose name only begins like ours."""
    for config in ({}, {"mcp_servers.ours2.command": "x"}, {"mcp_servers": "nonsense"}):
        check_is_free("ours", config)
