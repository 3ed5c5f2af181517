"""How far a Claude Code may go: sandbox and approval policy, in the terms of its own options.

Claude Code has no sandbox that we could enforce. It can be narrowed to tools that only read, and it asks
before it acts; everything else that a caller may ask for is refused with a sentence. Pure.
"""

from __future__ import annotations

import msgspec

from laneway.base.engines import CLAUDE
from laneway.base.errors import EngineCannot

READ_ONLY, WORKSPACE, FULL = "read-only", "workspace-write", "danger-full-access"
READING_TOOLS = ("Read", "Grep", "Glob")
ASKS, DENIES, BYPASSES = "default", "dontAsk", "bypassPermissions"
_MODES = {"untrusted": ASKS, "on-request": ASKS, "on-failure": ASKS}


class ClaudeAccess(msgspec.Struct, frozen=True):
    tools: tuple[str, ...] | None = None
    """The only built-in tools; none: all of them."""
    mode: str | None = None
    """The permission mode; none: as the user's own settings say."""

    @property
    def is_read_only(self) -> bool:
        return self.tools is not None


def access_of(sandbox: str | None, approval_policy: str | None) -> ClaudeAccess:
    """Raises `EngineCannot` for what cannot be enforced."""
    if sandbox not in (None, READ_ONLY, FULL):
        raise EngineCannot(
            CLAUDE,
            f"keep to the sandbox {sandbox}",
            "Leave the sandbox out, so that it asks before it acts, or choose read-only.",
        )
    mode = None if approval_policy is None else _MODES.get(approval_policy, DENIES)
    if sandbox == FULL and mode == DENIES:
        mode = BYPASSES
    return ClaudeAccess(READING_TOOLS if sandbox == READ_ONLY else None, mode)
