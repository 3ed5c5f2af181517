"""When a thread gets a server entry for our tools, and what stands in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.codex.mcp_entry import entry, is_needed
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
        ({"features": "nonsense", "features.multi_agent": "yes"}, TOOLS, True, False),
    ],
)
def test_a_process_is_paid_for_only_where_tools_would_not_reach(
    config: dict[str, Any], had: tuple[str, ...], takes_tools: bool, expected: bool
) -> None:
    """A thread that was started with them has them for life; its subagents never do."""
    assert is_needed(spec(config, had), TOOLS, takes_tools=takes_tools) is expected


def test_an_entry_is_dotted_keys_beside_everything_else() -> None:
    """So that it takes nothing away from the user's own servers."""
    assert entry("ours", ["python", "-I", "bridge.py"], {"KEY": "k"}) == {
        "mcp_servers.ours.command": "python",
        "mcp_servers.ours.args": ["-I", "bridge.py"],
        "mcp_servers.ours.env": {"KEY": "k"},
        "mcp_servers.ours.default_tools_approval_mode": "approve",
        "mcp_servers.ours.tool_timeout_sec": 120,
    }
