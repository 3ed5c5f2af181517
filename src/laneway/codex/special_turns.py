"""Turns that begin by another call than `turn/start`, in app-server's words. Pure."""

from __future__ import annotations

from typing import Any

from laneway.core.offers import (
    Compaction,
    ReviewBranch,
    ReviewCommit,
    ReviewInstructions,
    ReviewUncommitted,
    SpecialTurn,
)


def call_of(errand: SpecialTurn) -> tuple[str, dict[str, Any]]:
    """The method, and its parameters beside the thread."""
    if isinstance(errand, Compaction):
        return "thread/compact/start", {}
    # Only inline: a thread whose history comes by the page takes no detached review.
    return "review/start", {"target": _target(errand), "delivery": "inline"}


def _target(
    review: ReviewUncommitted | ReviewBranch | ReviewCommit | ReviewInstructions,
) -> dict[str, Any]:
    match review:
        case ReviewUncommitted():
            return {"type": "uncommittedChanges"}
        case ReviewBranch(branch):
            return {"type": "baseBranch", "branch": branch}
        case ReviewCommit(sha, title):
            return {"type": "commit", "sha": sha, "title": title}
        case ReviewInstructions(text):
            return {"type": "custom", "instructions": text}
