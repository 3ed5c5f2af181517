"""How Claude Code must be told to ask where other people can write to a conversation: at least on request.

A repository whose content is trusted can set the mode in which Claude Code asks, and goes before the user's
own settings there. In such a conversation only the user's own word may keep it from asking. Blocking.
"""

from __future__ import annotations

import json
import os
from typing import Any

from laneway.base.foreign_files import read_regular

ON_REQUEST = "on-request"
DEFAULT_MODE = "default"
WIDEST_MODE = "bypassPermissions"
MAX_BYTES = 1024 * 1024
FILES = ("settings.json", "settings.local.json")


def policy_against(cwd: str, config_home: str) -> str | None:
    """The approval policy that a session needs, so that its folder cannot have Claude Code ask less; none
    where the user's own word holds."""
    own = _mode(os.path.join(config_home, FILES[0]))
    if own == WIDEST_MODE:
        return None
    if own in (None, DEFAULT_MODE):
        return ON_REQUEST
    modes = [_mode(os.path.join(cwd, ".claude", name)) for name in FILES]
    return None if modes == [None, None] else ON_REQUEST


def _mode(path: str) -> Any:
    """The mode that this file sets; none if it sets none. Of one that cannot be read it is not known."""
    try:
        tree = json.loads(read_regular(path, MAX_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError):
        return "?"
    permissions = tree.get("permissions") if isinstance(tree, dict) else None
    return permissions.get("defaultMode") if isinstance(permissions, dict) else None
