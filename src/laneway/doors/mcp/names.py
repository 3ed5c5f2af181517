"""What a session and the tools around it are called: the seeds differ, the program is the same."""

from __future__ import annotations

from typing import Any

import msgspec


class Names(msgspec.Struct, frozen=True):
    server: str
    title: str
    agent_id: str
    """The parameter and the field that name a session."""
    sessions: str
    status: str
    close: str
    answer: str

    def told(self, agent_id: str) -> dict[str, Any]:
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
"""Seed 001 (`atm-agent-mcp`), and `laneway mcp` itself."""

CODEX = Names(
    server="codex-mcp",
    title="Codex sessions",
    agent_id="codex_id",
    sessions="codex_threads",
    status="codex_status",
    close="codex_close",
    answer="codex_answer",
)
"""Seed 000 (`codex-mcp`)."""
