"""Whether a repository's own `.codex/config.toml` makes Codex ask less than on request.

Codex reads that file in repositories that its user trusts. Where other people can write to a conversation,
only what the user has said themselves may keep Codex from asking. Blocking.
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


def repository_asks_less(cwd: str, codex_home: str, *, system_file: str = SYSTEM_FILE) -> bool:
    own = [_table(path) for path in (system_file, os.path.join(codex_home, "config.toml"))]
    if any("approval_policy" in table or "profile" in table for table in own if table is not None):
        return False
    for level in levels(cwd):
        table = _table(os.path.join(level, ".codex", "config.toml"))
        if table is None or table.get("approval_policy", ON_REQUEST) not in _ASKING:
            return True
    return False


def _table(path: str) -> dict[str, Any] | None:
    """Empty without a file; none for one that cannot be read: it may say anything."""
    try:
        text = read_regular(path, MAX_CONFIG_BYTES).decode()
        return None if too_deep(text) else tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError):
        return None
