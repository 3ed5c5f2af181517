"""Command-line options of the servers as values. Imports little, so that servers start quickly."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.engines import BACKENDS, DEFAULT_BACKEND

if TYPE_CHECKING:
    from laneway.base.settings import Settings


class CodexChoice(msgspec.Struct, frozen=True):
    """Which Codex binary is run, and against a real or a scripted model."""

    codex_bin: str | None = None
    """Named by a flag."""
    configured_bin: str | None = None
    """Named by a setting; without either it is looked for on PATH."""
    is_rehearsal: bool = False
    """The real Codex against a scripted model, in a throw-away home."""


class ClaudeChoice(msgspec.Struct, frozen=True):
    """Which Claude Code is run, and how many of its processes stay awake."""

    claude_bin: str | None = None
    """Named by a flag."""
    configured_bin: str | None = None
    """Named by a setting; without either it is looked for on PATH."""
    is_rehearsal: bool = False
    """The real Claude Code against a scripted model, in a throw-away home."""
    idle_s: float = 600.0
    max_awake: int = 8


class McpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `laneway mcp` that are not settings."""

    codex: CodexChoice
    config: dict[str, Any]
    """Overrides of Codex's config, for every thread."""
    is_read_only: bool = False
    serves_http: bool = False
    claims_identity: bool = False
    """The identity was named by a flag: it is claimed from the start."""
    resume: str | None = None
    """The session that the first `codex` call continues; empty for the latest of the identity."""
    is_fast: bool = False
    role: str | None = None
    claude: ClaudeChoice | None = None
    """None where there is no Claude Code."""

    @property
    def backends(self) -> tuple[str, ...]:
        """The keys of the engines that a call may name, the default first."""
        return (DEFAULT_BACKEND,) if self.claude is None else tuple(BACKENDS)


class DropInOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `laneway mcp-server`, which hold for every thread that it starts."""

    codex: CodexChoice
    cwd: Path
    config: dict[str, Any]
    model: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None


def tool_groups(settings: Settings) -> tuple[str, ...]:
    """The groups of tools that clients get. Below a worker of a background job there are no jobs."""
    groups = settings.tools
    if "jobs" in groups:
        from laneway.jobs.lineage import is_in_worker

        if is_in_worker(os.environ):
            return tuple(group for group in groups if group != "jobs")
    return groups
