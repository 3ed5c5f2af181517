"""Features of each Codex version, the oldest version that works, and the versions that are tested.

Starts no process on a start-up path: the version is read from app-server's first answer; only
`probe` runs the binary. The binary is found by `laneway.codex.locate`.
"""

from __future__ import annotations

import msgspec

from laneway.base.program_versions import ProgramVersions, parse_version, spell
from laneway.codex.locate import CODEX
from laneway.core.ports import Abilities

__all__ = [
    "FEATURES",
    "OLDEST",
    "TESTED",
    "Feature",
    "abilities",
    "cannot_run",
    "check_age",
    "missing_features",
    "parse_version",
    "probe",
    "spell",
    "untested_note",
]

OLDEST = (0, 104, 0)
"""The first version whose app-server speaks the protocol we drive."""
TESTED = ("0.163.0", "0.169.0", "0.166.0", "0.153.4", "0.133.0", "0.104.0")
"""Versions that `make test` and `make test-peers` have run."""


class Feature(msgspec.Struct, frozen=True):
    """Something that came after `OLDEST`: the first version seen with it, and its use to people."""

    name: str
    since: tuple[int, ...]
    benefit: str


FEATURES = (
    Feature("history_pages", (0, 133, 0), "history by the page instead of all at once"),
    Feature("inject", (0, 133, 0), "context for a turn, as a message in the conversation"),
    Feature("item_before_question", (0, 133, 0), "a command is announced before its approval is asked for"),
    Feature("tool_items", (0, 133, 0), "calls of our own tools are shown as activities"),
    Feature("user_questions", (0, 133, 0), "the model can ask a person outside of plan mode"),
    Feature("subagents", (0, 133, 0), "what subagents do is told"),
    Feature("settings_between_turns", (0, 133, 0), "plan mode is switched without a prompt"),
    Feature("turn_context", (0, 144, 4), "context for a turn, outside of the conversation"),
    Feature("commands_in_history", (0, 153, 4), "a loaded session shows the commands that were run"),
    Feature("delete", (0, 153, 4), "sessions can be deleted"),
    Feature("input_kept", (0, 153, 4), "what was accepted survives a kill of Codex in that instant"),
    Feature("one_command", (0, 153, 4), "a cancel ends its own turn's commands and none of earlier turns"),
    Feature("writer_lock", (0, 153, 4), "two processes cannot write one thread"),
)
"""All differences between versions. Checked by `make test-peers`, printed in docs/codex-versions.md."""


_VERSIONS = ProgramVersions(CODEX, OLDEST, TESTED, upgrade="npm install -g @openai/codex")
probe = _VERSIONS.probe
cannot_run = _VERSIONS.cannot_run
check_age = _VERSIONS.check_age
untested_note = _VERSIONS.untested_note


def missing_features(version: tuple[int, ...]) -> list[Feature]:
    """The features that this version does not have."""
    return [feature for feature in FEATURES if version < feature.since]


def abilities(version: tuple[int, ...]) -> Abilities:
    """The abilities of an engine on this version."""
    missing = {feature.name for feature in missing_features(version)}
    return Abilities(
        version=spell(version),
        turn_context="turn_context" not in missing,
        inject="inject" not in missing,
        history_pages="history_pages" not in missing,
        ends_one_command="one_command" not in missing,
    )
