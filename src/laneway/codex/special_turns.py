"""Calls that begin a turn instead of `turn/start`: reviews and compaction. Pure."""

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


def call_of(special_turn: SpecialTurn) -> tuple[str, dict[str, Any]]:
    """The method, and its parameters except the thread."""
    if isinstance(special_turn, Compaction):
        return "thread/compact/start", {}
    # Only inline: a thread with paged history accepts no detached review.
    return "review/start", {"target": _target(special_turn), "delivery": "inline"}


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
