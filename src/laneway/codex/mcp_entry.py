"""The `mcp_servers` entry that gives Laneway's tools to threads and subagents without our dynamic tools.

Pure. Codex accepts dynamic tools only when a thread is started, keeps them over every resume, and gives
them to no subagent (seen from 0.104 to 0.163). A server entry reaches the thread and its subagents, but
costs a process for each, and newer models must search for its tools. So:

    a new thread                                     dynamic tools
    one that was started without them                an entry
    one for which subagents were asked for           both: the thread uses the tools, subagents the entry
    the removed `codex mcp-server`                   an entry

Subagents were asked for if `features.multi_agent` was switched on, by `--subagents` or a caller's
own config. By default Codex starts them only when it is told to, and those report to their parent,
which has the tools.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from laneway.base.errors import ConfigRefused
from laneway.core.overrides import merged, spelled
from laneway.core.ports import ThreadSpec

TABLE = "mcp_servers"
CALL_S = 120
"""For one call: a broadcast may wait for many inboxes."""
_SUBAGENTS = ("multi_agent", "multi_agent_v2")


def is_needed(spec: ThreadSpec, tools: Collection[str], *, takes_tools: bool = True) -> bool:
    """Whether the thread or its subagents would lack some of these tools without an entry."""
    return not takes_tools or not set(tools) <= set(spec.had_tools) or asks_for_subagents(spec.config)


def asks_for_subagents(config: Mapping[str, Any]) -> bool:
    features = merged(config).get("features")
    table = features if isinstance(features, dict) else {}
    return any(_is_on(table.get(name)) for name in _SUBAGENTS)


def _is_on(value: Any) -> bool:
    return value is True or (isinstance(value, dict) and value.get("enabled") is True)


def entry(name: str, argv: Sequence[str], environment: Mapping[str, str]) -> dict[str, Any]:
    """The config of an MCP server with this command line, whose tools need no approval.

    They act within the session's own rights: a model that may write text may send mail.
    """
    fields = {
        "command": argv[0],
        "args": list(argv[1:]),
        "env": dict(environment),
        "default_tools_approval_mode": "approve",
        "tool_timeout_sec": CALL_S,
    }
    return {TABLE: {name: fields}}


def check_is_free(name: str, config: Mapping[str, Any]) -> None:
    """Refuse a caller's server with our name: Codex would merge the two, and its tools pass for ours."""
    servers = merged(config).get(TABLE)
    if isinstance(servers, dict) and name in servers:
        key = spelled((TABLE, name))
        raise ConfigRefused(key, f"{key} is Laneway's own entry: give your MCP server another name.")
