"""What Claude Code can do beyond threads and turns. Known without starting it."""

from __future__ import annotations

from laneway.claude.access import READ_ONLY
from laneway.core.offers import Offers


def offers() -> Offers:
    return Offers(
        steering=True,
        images=True,
        forks=True,
        schemas=True,
        sandboxes=(READ_ONLY,),
        approvals=("untrusted", "on-request", "never"),
        compaction=True,
    )
