"""A request for a new named session, and its conversion into a record and back into a thread's spec.

Pure. The record keeps what the caller asked for, not what the Hub or the engine make of it, so that
a resume can ask for the same again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from laneway.core.named.briefing import WorkFolder
from laneway.core.named.records import Record
from laneway.core.ports import ThreadSpec


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a new named session."""

    spec: ThreadSpec
    identity: str | None = None
    """None takes the default one, or its next free number."""
    tag: str | None = None
    role: str | None = None
    agent_name: str | None = None
    agent_source: str | None = None
    effort: str | None = None
    """Reasoning effort of every turn that names none."""


class Budget(msgspec.Struct, frozen=True):
    """What one session may use in all, across resumes; None is no limit."""

    max_turns: int | None = None
    max_tokens: int | None = None


_SPEC_FIELDS = (
    "backend",
    "model",
    "sandbox",
    "approval_policy",
    "base_instructions",
    "developer_instructions",
    "config",
    "native",
    "ephemeral",
)


_FOR_RESUME = frozenset({"base_instructions", "developer_instructions", "config", "native"})
"""Recorded verbatim, whatever a caller wrote there, because a resume has to send it again."""


def new_record(opening: Opening, identity: str, agent_id: str, team: str, now: str) -> Record:
    """The record of a session whose thread is not known yet."""
    left_out = _FOR_RESUME if opening.spec.ephemeral else frozenset()
    fields = {name: getattr(opening.spec, name) for name in _SPEC_FIELDS if name not in left_out}
    return Record(
        agent_id=agent_id,
        identity=identity,
        team=team,
        cwd=str(opening.spec.cwd),
        started_at=now,
        last_active=now,
        is_empty=True,
        tag=opening.tag,
        role=opening.role,
        agent_name=opening.agent_name,
        agent_source=opening.agent_source,
        effort=opening.effort,
        **fields,
    )


def spec_of(record: Record, changes: Mapping[str, Any], default_cwd: Path) -> ThreadSpec:
    """The spec of the recorded thread, with the caller's changes."""
    fields = {name: getattr(record, name) for name in _SPEC_FIELDS}
    tool_names = tuple(record.tools)
    spec = ThreadSpec(cwd=Path(record.cwd) if record.cwd else default_cwd, had_tools=tool_names, **fields)
    return msgspec.structs.replace(spec, moves="cwd" in changes, **changes)


def with_spec(record: Record, spec: ThreadSpec) -> Record:
    """The record of a session that continues with this spec."""
    fields = {name: getattr(spec, name) for name in _SPEC_FIELDS}
    return msgspec.structs.replace(record, cwd=str(spec.cwd), **fields)


def with_folder(record: Record, folder: WorkFolder) -> Record:
    """The record with the session's present repository and branch."""
    return msgspec.structs.replace(
        record, repo_root=folder.repo_root, repo_name=folder.repo_name, branch=folder.branch
    )
