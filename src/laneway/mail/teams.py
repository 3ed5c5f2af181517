"""Which team: the one that was said, the Claude Code session that we are part of, or `default`.

A Claude Code session is found by its process: one of ours above us says in its team's config.json
that it leads it. The team can move (a new session in the same process) or vanish; `whereabouts` tells.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from laneway.base.errors import StoreError
from laneway.mail.family import Family, lineage
from laneway.mail.names import check_team
from laneway.mail.places import Places
from laneway.mail.roster import SESSION, Roster

DEFAULT = "default"


class Choice(msgspec.Struct, frozen=True):
    team: str
    source: Literal["said", "claude", "default"]


class Here(msgspec.Struct, frozen=True):
    """The team is where it was."""


class Moved(msgspec.Struct, frozen=True):
    """Its Claude Code goes on under another name."""

    team: str


class Gone(msgspec.Struct, frozen=True):
    """Its owner removed it."""


Whereabouts: TypeAlias = Here | Moved | Gone


def mail_team(places: Places, said: str | None, family: Family | None = None) -> Choice:
    """Ruling 16. `said` is what an argument, a variable or a config file says, `None` if none does."""
    if said:
        return Choice(check_team(said), "said")
    session = session_team(places, family)
    return Choice(session, "claude") if session else Choice(DEFAULT, "default")


def session_team(places: Places, family: Family | None = None) -> str | None:
    """The team of the Claude Code session that started us."""
    names = [name for name in places.teams() if name.startswith(SESSION)]
    if not names:
        return None
    family = family or lineage()
    depth = {member.pid: number for number, member in enumerate(family.members)}
    found: list[tuple[int, float, str]] = []
    for name in names:
        try:
            lead = Roster(places, name).read().lead
        except StoreError:
            continue  # gone meanwhile, or unreadable: then it is not ours to judge
        if lead is not None and family.has(lead.pid, lead.start, lead.space):
            found.append((-depth[lead.pid], lead.claimed_at, name))
    # The nearest above us; of several sessions of one process the latest.
    return max(found)[2] if found else None


def whereabouts(places: Places, team: str, family: Family | None = None) -> Whereabouts:
    """What became of a team that we were in."""
    if places.config(team).is_file():
        return Here()
    session = session_team(places, family) if team.startswith(SESSION) else None
    return Moved(session) if session else Gone()
