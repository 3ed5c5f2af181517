"""How a colleague begins, as values: what is asked for, and the way from there to a record and back.

Pure. The record keeps what the caller said, not what the Hub or the engine make of it, so that
a resume can say the same again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from laneway.core.briefing import Place
from laneway.core.ports import ThreadSpec
from laneway.core.records import Record


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A new session with a name."""

    spec: ThreadSpec
    identity: str | None = None
    """None takes the default one, or its next free number."""
    tag: str | None = None
    role: str | None = None
    agent_name: str | None = None
    agent_source: str | None = None
    effort: str | None = None
    """For every turn that does not say otherwise."""


class Budget(msgspec.Struct, frozen=True):
    """What one session may use, over all its lives; None is no limit."""

    max_turns: int | None = None
    max_tokens: int | None = None


_SPEC_FIELDS = (
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
"""Kept word for word, whatever a caller wrote there, because a resume has to send it again."""


def new_record(opening: Opening, identity: str, agent_id: str, team: str, now: str) -> Record:
    """The session before its thread is known."""
    left_out = _FOR_RESUME if opening.spec.ephemeral else frozenset()
    said = {name: getattr(opening.spec, name) for name in _SPEC_FIELDS if name not in left_out}
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
        **said,
    )


def spec_of(record: Record, changes: Mapping[str, Any], here: Path) -> ThreadSpec:
    """The thread as it was, but for what the caller wants changed."""
    said = {name: getattr(record, name) for name in _SPEC_FIELDS}
    had = tuple(record.tools)
    spec = ThreadSpec(cwd=Path(record.cwd) if record.cwd else here, had_tools=had, **said)
    return msgspec.structs.replace(spec, moves="cwd" in changes, **changes)


def with_spec(record: Record, spec: ThreadSpec) -> Record:
    """The record of a session that goes on like this."""
    said = {name: getattr(spec, name) for name in _SPEC_FIELDS}
    return msgspec.structs.replace(record, cwd=str(spec.cwd), **said)


def at(record: Record, place: Place) -> Record:
    return msgspec.structs.replace(
        record, repo_root=place.repo_root, repo_name=place.repo_name, branch=place.branch
    )
