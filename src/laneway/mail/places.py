"""Paths of rosters, inboxes and the spool. The only module that builds paths from names of teams and agents.

    <teams>/<team>/config.json                the roster, Claude Code's
    <teams>/<team>/inboxes/<agent>.json       one inbox, shared by all programs
    <spool>/<root>/<team>/<agent>/*.json      ours: mail whose inbox was locked

`<teams>` is `$CLAUDE_CONFIG_DIR/teams`, else `.claude/teams` under `$ATM_HOME` or the home folder.

The spool is our own and not ATM's: ATM delivers from its spool in no order, creates the folder of a
removed team again, and does not expect a reader that removes delivered mail from its inbox.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from laneway.base.errors import StoreError
from laneway.mail.names import check_recipient, check_team, inbox_name
from laneway.store.files import trouble


class Places(msgspec.Struct, frozen=True):
    """The roots of all mail files, and the paths below them."""

    teams_root: Path
    spool_root: Path

    @classmethod
    def of(cls, environment: Mapping[str, str] | None = None, home: Path | None = None) -> Places:
        environment = os.environ if environment is None else environment
        atm_home = environment.get("ATM_HOME", "").strip()
        base = Path(atm_home) if atm_home else home or Path.home()
        claude = environment.get("CLAUDE_CONFIG_DIR", "").strip()
        return cls(
            (Path(claude) if claude else base / ".claude") / "teams",
            base / ".config" / "atm" / "laneway-spool",
        )

    def team(self, team: str) -> Path:
        return self.teams_root / check_team(team)

    def config(self, team: str) -> Path:
        return self.team(team) / "config.json"

    def inboxes(self, team: str) -> Path:
        return self.team(team) / "inboxes"

    def inbox(self, team: str, agent: str) -> Path:
        return self.inboxes(team) / f"{inbox_name(check_recipient(agent))}.json"

    @property
    def spool(self) -> Path:
        """The spool of these teams: another root may have other teams of the same names."""
        digest = hashlib.blake2b(os.fsencode(self.teams_root), digest_size=8).hexdigest()
        return self.spool_root / digest

    def spooled(self, team: str, agent: str) -> Path:
        return self.spool / check_team(team) / inbox_name(check_recipient(agent))

    def teams(self) -> tuple[str, ...]:
        """The names of all existing teams."""
        try:
            with os.scandir(self.teams_root) as items:
                names = sorted(item.name for item in items)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as problem:
            raise trouble(self.teams_root, problem, "read") from problem
        return tuple(name for name in names if self._is_team(name))

    def _is_team(self, name: str) -> bool:
        try:
            return self.config(name).is_file()
        except (StoreError, OSError):
            return False  # not a team's folder, or one that we may not read
