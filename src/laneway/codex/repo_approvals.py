"""How Codex must be told to ask where other people can write to a conversation: at least on request.

Codex reads a repository's `.codex/config.toml` if its user trusts that, and there it goes before the user's
own. In such a conversation only what the user has said themselves may keep Codex from asking. Blocking.
"""

from __future__ import annotations

import os
import tomllib
from typing import Any

from laneway.base.foreign_files import read_regular
from laneway.base.toml_lines import too_deep
from laneway.codex.exec.config import MAX_CONFIG_BYTES, SYSTEM_FILE, levels

ON_REQUEST = "on-request"
_ASKING = ("untrusted", ON_REQUEST)


def policy_against(cwd: str, codex_home: str, *, system_file: str = SYSTEM_FILE) -> str | None:
    """The approval policy that a thread needs, as its repository would have Codex ask less. None if that does
    not, or if the user has said themselves that Codex asks less."""
    own = _own_policy([system_file, os.path.join(codex_home, "config.toml")])
    if own is not None and own not in _ASKING:
        return None
    for level in levels(cwd):
        table = _table(os.path.join(level, ".codex", "config.toml"))
        is_asking = table is not None and table.get("approval_policy", ON_REQUEST) in _ASKING
        if not is_asking or "profile" in (table or {}):
            return ON_REQUEST if own is None else str(own)
    return None


def _own_policy(paths: list[str]) -> Any:
    """As the user has set it, in a profile or outside of one; none if nowhere. The later file wins."""
    own: Any = None
    for path in paths:
        table = _table(path) or {}
        profiles = table.get("profiles")
        profile = profiles.get(str(table.get("profile"))) if isinstance(profiles, dict) else None
        for each in (table, profile):
            if isinstance(each, dict):
                own = each.get("approval_policy", own)
    return own


def _table(path: str) -> dict[str, Any] | None:
    """Empty without a file; none for one that cannot be read: it may say anything."""
    try:
        text = read_regular(path, MAX_CONFIG_BYTES).decode()
        return None if too_deep(text) else tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError):
        return None
