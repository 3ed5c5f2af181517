"""Validates the names of teams, senders and recipients, and decides whether a name is free in a team.

Pure. Names of our own are restricted, because three programs make file names of them; a recipient may
have any name that Claude Code allows a teammate and that is no path. `in_the_way` decides whether a
session may take a name, given who is in the team.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from laneway.base.errors import BadName
from laneway.base.kinds import IDENTITY, TEAM
from laneway.store.names import check_name

RESERVED = frozenset({"main", "team-lead", "user", "system"})
"""Names with a meaning in Claude Code: it reports mail from them that it did not write itself as forged."""
REMOVED = ".deleted-"
"""Claude Code puts this into the name of a team's folder before it removes it."""
MAX_SHOWN_CHARS = 80
_NOT_IN_FILES = re.compile(r"[^A-Za-z0-9_-]")


class Address(msgspec.Struct, frozen=True):
    """A recipient: a member of a team."""

    agent: str
    team: str

    def __str__(self) -> str:
        return f"{self.agent}@{self.team}"


def check_team(name: str) -> str:
    if not TEAM.fullmatch(name) or REMOVED in name:
        raise BadName(
            f"{_quoted(name)} cannot be the name of a team. Use up to 64 letters, digits, dots, dashes and "
            "underscores, with a letter or digit first."
        )
    return name


def check_sender(name: str) -> str:
    """A name that we may take: the name itself, or `BadName`."""
    if not IDENTITY.fullmatch(name):
        raise BadName(
            f"{_quoted(name)} cannot be the name of an agent. Use up to 64 letters, digits, dashes and "
            "underscores, with a letter or digit first."
        )
    if name.lower() in RESERVED:
        raise BadName(f"Nobody may send or read mail as {name}: that name is reserved. Take another one.")
    return name


def check_recipient(name: str) -> str:
    """A name that a member may have; whether one has it is in the roster."""
    return check_name(name, "an agent")


def address(text: str, default_team: str) -> Address:
    """Parse `agent` or `agent@team`; anything else is `BadName`."""
    agent, at, team = text.partition("@")
    if "@" in team:
        raise BadName(f"{_quoted(text)} has more than one @. Write agent or agent@team.")
    if not agent or (at and not team):
        raise BadName(f"{_quoted(text)} lacks a name before or behind the @. Write agent or agent@team.")
    return Address(check_recipient(agent), check_team(team if at else default_team))


def inbox_name(agent: str) -> str:
    """The file name of the agent's inbox, as Claude Code makes it. Never a path, whatever the name."""
    return _NOT_IN_FILES.sub("-", agent)


HeldBy: TypeAlias = Literal["us", "others", "gone", "unknown"]
"""Who registered a member: this process, another program, a Laneway that has ended, or a Laneway of which
this machine cannot tell whether it is alive."""


class Registered(msgspec.Struct, frozen=True):
    """A member's name and who holds it: all that matters for the right to a name."""

    name: str
    held_by: HeldBy


def in_the_way(name: str, members: Iterable[Registered]) -> Registered | None:
    """The member because of which `name` may not be ours; none if we may take it, or have it.

    A member of a Laneway that may be alive bars all similar names but exactly its own: to take that one
    a process must hold its lock, which a living Laneway does not give up.
    """
    for member in members:
        if not is_taken_for(name, member.name) or member.held_by == "gone":
            continue
        if member.held_by == "others" or member.name != name:
            return member
    return None


def is_taken_for(one: str, other: str) -> bool:
    """Whether two names share an inbox file on some disk, or look the same to a reader."""
    return not _likenesses(one).isdisjoint(_likenesses(other))


def _likenesses(name: str) -> frozenset[str]:
    """The inbox's file name in lower case, of the name as it is and of the name in plain letters."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return frozenset(inbox_name(each).lower() for each in (name, unicodedata.normalize("NFKC", plain)))


def _quoted(name: str) -> str:
    return ascii(name if len(name) <= MAX_SHOWN_CHARS else name[:MAX_SHOWN_CHARS] + "…")
