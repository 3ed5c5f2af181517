"""Chooses the team: the configured one, that of the Claude Code session that started us, or `default`.

A Claude Code session is candidates by its process: the config.json of its team names the leading process, and
one of our ancestors is it. The team can move (a new session in the same process) or vanish; `whereabouts`
tells.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from laneway.base.errors import StoreError
from laneway.mail.ancestry import Ancestry, lineage
from laneway.mail.names import check_team
from laneway.mail.places import Places
from laneway.mail.roster import SESSION, Roster

DEFAULT = "default"


class TeamChoice(msgspec.Struct, frozen=True):
    """A team, and why it was chosen."""

    team: str
    source: Literal["said", "claude", "default"]
    """`said`: configured by the user."""


class Here(msgspec.Struct, frozen=True):
    """The team still exists."""


class Moved(msgspec.Struct, frozen=True):
    """Its Claude Code has another team now."""

    team: str


class TeamRemoved(msgspec.Struct, frozen=True):
    """Its owner removed it."""


Whereabouts: TypeAlias = Here | Moved | TeamRemoved


def mail_team(places: Places, configured: str | None, ancestors: Ancestry | None = None) -> TeamChoice:
    """`configured` is the team of an argument, a variable or a config file, `None` if there is none.

    What the user chose comes first, then the Claude Code session that started us.
    """
    if configured:
        return TeamChoice(check_team(configured), "said")
    session = session_team(places, ancestors)
    return TeamChoice(session, "claude") if session else TeamChoice(DEFAULT, "default")


def session_team(places: Places, ancestors: Ancestry | None = None) -> str | None:
    """The team of the Claude Code session that started us."""
    names = [name for name in places.teams() if name.startswith(SESSION)]
    if not names:
        return None
    ancestors = ancestors or lineage()
    depth = {member.pid: number for number, member in enumerate(ancestors.members)}
    candidates: list[tuple[int, float, str]] = []
    for name in names:
        try:
            lead = Roster(places, name).read().lead
        except StoreError:
            continue  # gone meanwhile, or unreadable: it cannot be known
        if lead is not None and ancestors.has(lead.pid, lead.start, lead.space):
            candidates.append((-depth[lead.pid], lead.claimed_at, name))
    # The nearest ancestor's; of several sessions of one process the latest.
    return max(candidates)[2] if candidates else None


def whereabouts(places: Places, team: str, ancestors: Ancestry | None = None) -> Whereabouts:
    """What happened to a team that we were in."""
    if places.config(team).is_file():
        return Here()
    session = session_team(places, ancestors) if team.startswith(SESSION) else None
    return Moved(session) if session else TeamRemoved()
