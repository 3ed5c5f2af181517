"""A temporary home for the real Claude Code on a scripted model, with a folder to work in.

Nothing of the user's own settings, logins and providers reaches such a Claude Code, and it sends no
traffic but the conversation. The folder is locked and removed as in `laneway.rehearsal.home`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from laneway.rehearsal.home import held_folder

API_KEY = "sk-rehearsal-of-claude-code"
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
}
"""No traffic but the conversation, and failures are reported at once."""
FOREIGN = ("ANTHROPIC_", "CLAUDE_", "CLAUDECODE")
"""The beginnings of the user's variables that choose another model, provider or login."""


class ClaudeFolder(msgspec.Struct, frozen=True):
    """Where a rehearsing Claude Code lives, and the variables that lead it there."""

    config: Path
    """Its settings and transcripts."""
    work: Path
    """An empty folder to work in; trusted."""
    variables: dict[str, str]

    @property
    def state(self) -> Path:
        """Where Laneway keeps its sessions of this rehearsal, apart from real ones."""
        return self.config.parent / "sessions"

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """An environment that leads nowhere else."""
        return {k: v for k, v in inherited.items() if not k.startswith(FOREIGN)} | self.variables


@contextmanager
def throwaway_claude(model_origin: str) -> Iterator[ClaudeFolder]:
    """Make a home in which Claude Code asks for no login, colours or trust; remove it at the end."""
    with held_folder() as folder:
        work, config = folder / "work", folder / "claude"
        for each in (work, config):
            each.mkdir(mode=0o700)
        state = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
            "projects": {str(work.resolve()): {"hasTrustDialogAccepted": True}},
        }
        (config / ".claude.json").write_text(json.dumps(state))
        variables = {
            **QUIET,
            "CLAUDE_CONFIG_DIR": str(config),
            "CLAUDE_CODE_TMPDIR": str(folder),
            "ANTHROPIC_BASE_URL": model_origin,
            "ANTHROPIC_API_KEY": API_KEY,
            "NO_PROXY": "127.0.0.1",
        }
        yield ClaudeFolder(config, work, variables)
