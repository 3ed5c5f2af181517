"""Names of the MCP server, its tools and its session ids: `laneway mcp` and `codex-mcp` differ in them."""

from __future__ import annotations

from typing import Any

import msgspec


class Names(msgspec.Struct, frozen=True):
    """How one command names itself, its session tools and the id of a session."""

    server: str
    title: str
    agent_id: str
    """The parameter and the result field that hold a session's id."""
    sessions: str
    status: str
    close: str
    answer: str

    def id_fields(self, agent_id: str) -> dict[str, Any]:
        """The fields of a result that name its session."""
        return {self.agent_id: agent_id}


AGENTS = Names(
    server="laneway",
    title="Laneway: Codex as a colleague",
    agent_id="agent_id",
    sessions="agent_sessions",
    status="agent_status",
    close="agent_close",
    answer="agent_answer",
)
"""Of `laneway mcp`, and of its older name `atm-agent-mcp`."""

CODEX = Names(
    server="codex-mcp",
    title="Codex sessions",
    agent_id="codex_id",
    sessions="codex_threads",
    status="codex_status",
    close="codex_close",
    answer="codex_answer",
)
"""Of `codex-mcp`, whose clients know the older names."""
