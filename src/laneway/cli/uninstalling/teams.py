"""Remnants in Claude Code's teams: members that Laneway registered and did not remove again."""

from __future__ import annotations

from collections.abc import Iterator

from laneway.base.errors import StoreError
from laneway.base.plain import code_label
from laneway.cli.uninstalling.model import Remnant, Surroundings
from laneway.mail.places import Places
from laneway.mail.roster import Member, Roster


def find(around: Surroundings) -> list[Remnant]:
    mail = Places.of(around.environment, around.home)
    return [remnant for team in mail.teams() for remnant in _of_team(Roster(mail, team))]


def _of_team(roster: Roster) -> Iterator[Remnant]:
    try:
        members = [member for member in roster.read().members if member.owner is not None]
    except StoreError as problem:
        yield Remnant("teams", code_label(roster.team), roster.path, why=f"it could not be read: {problem}")
        return
    for member in members:
        yield _of_member(member, roster)


def _of_member(member: Member, roster: Roster) -> Remnant:
    assert member.owner is not None
    what = f"{code_label(member.name)} in the team {code_label(roster.team)}"
    match member.owner.fate():
        case "gone":
            return Remnant("teams", what, roster.path, lambda: _clear(roster))
        case "alive":
            why = f"its process {member.owner.pid} is running, and takes it out when it ends"
        case _:
            why = "it was registered in a container or on another machine: end Laneway there"
    return Remnant("teams", what, roster.path, why=why)


def _clear(roster: Roster) -> None:
    """Remove all members of dead processes; the mail in their inboxes belongs to the team and stays."""
    roster.clear_dead()
