"""Paths of a team's files. The only module that builds paths from names.

    <root>/<team>/audit.jsonl
    <root>/<team>/<identity>.lock
    <root>/<team>/<identity>/registry.json
    <root>/<team>/<identity>/<backend id>/summary.md
    <root>/<team>/registry.json          of the original atm-agent-mcp: read, never written

A flat layout (the older `codex-sessions`) is the same without the team's folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from laneway.store.names import check_name, is_name

REGISTRY = "registry.json"
AGENT_SESSIONS = "agent-sessions"
CODEX_SESSIONS = "codex-sessions"
"""The older folder, without teams, which `codex-mcp` still uses."""


def sessions_root(name: str = AGENT_SESSIONS, environment: Mapping[str, str] | None = None) -> Path:
    """`~/.config/atm/<name>`, under `ATM_HOME` where that is set."""
    environment = os.environ if environment is None else environment
    home = environment.get("ATM_HOME", "").strip()
    return (Path(home) if home else Path.home()) / ".config" / "atm" / name


class Layout(msgspec.Struct, frozen=True):
    folder: Path

    @classmethod
    def of(cls, root: Path, team: str, *, flat: bool = False) -> Layout:
        check_name(team, "a team")
        return cls(root if flat else root / team)

    @property
    def audit(self) -> Path:
        return self.folder / "audit.jsonl"

    @property
    def audit_gate(self) -> Path:
        return self.folder / ".audit.lock"

    @property
    def claims_gate(self) -> Path:
        return self.folder / ".claims.lock"

    @property
    def old_registry(self) -> Path:
        return self.folder / REGISTRY

    def lock(self, identity: str) -> Path:
        return self.folder / f"{check_name(identity, 'an identity')}.lock"

    def home(self, identity: str) -> Path:
        return self.folder / check_name(identity, "an identity")

    def registry(self, identity: str) -> Path:
        return self.home(identity) / REGISTRY

    def registries(self, names: Iterable[str]) -> dict[str, str]:
        """The registries of all identities among these file names, by thousands: without `Path`s."""
        folder = f"{self.folder}/"
        return {
            name: f"{folder}{name}/{REGISTRY}" for name in names if name[-5:] != ".lock" and is_name(name)
        }

    def summary(self, identity: str, backend_id: str) -> Path:
        return self.home(identity) / check_name(backend_id, "a thread") / "summary.md"
