"""Who mail may be from and to: the one check of teams, senders, recipients and addresses.

Pure. What we call ourselves is narrow, because three programs make file names of it; whom we
write to may be called anything that Claude Code lets a teammate be called and that is no path.
Whether a name may be ours, given who is in the team, is decided here (`in_the_way`).
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
"""Names that Claude Code gives a meaning: mail from them that it did not write itself is called forged."""
REMOVED = ".deleted-"
"""Claude Code renames a team's folder to this before it removes it."""
MAX_SHOWN_CHARS = 80
_NOT_IN_FILES = re.compile(r"[^A-Za-z0-9_-]")


class Address(msgspec.Struct, frozen=True):
    agent: str
    team: str

    def __str__(self) -> str:
        return f"{self.agent}@{self.team}"


def check_team(name: str) -> str:
    if not TEAM.fullmatch(name) or REMOVED in name:
        raise BadName(
            f"{_shown(name)} cannot be the name of a team. Use up to 64 letters, digits, dots, dashes and "
            "underscores, with a letter or digit first."
        )
    return name


def check_sender(name: str) -> str:
    """A name that we may take: the name itself, or `BadName`."""
    if not IDENTITY.fullmatch(name):
        raise BadName(
            f"{_shown(name)} cannot be the name of an agent. Use up to 64 letters, digits, dashes and "
            "underscores, with a letter or digit first."
        )
    if name.lower() in RESERVED:
        raise BadName(f"Nobody may send or read mail as {name}: that name is reserved. Take another one.")
    return name


def check_recipient(name: str) -> str:
    """A name that somebody in a roster may have; whether somebody has is the roster's to say."""
    return check_name(name, "an agent")


def address(said: str, default_team: str) -> Address:
    """`agent` or `agent@team`; anything else is `BadName` with a sentence."""
    agent, at, team = said.partition("@")
    if "@" in team:
        raise BadName(f"{_shown(said)} has more than one @. Write agent or agent@team.")
    if not agent or (at and not team):
        raise BadName(f"{_shown(said)} lacks a name before or behind the @. Write agent or agent@team.")
    return Address(check_recipient(agent), check_team(team if at else default_team))


def inbox_name(agent: str) -> str:
    """The name that Claude Code gives the agent's inbox. It can be no path, whatever the agent is called."""
    return _NOT_IN_FILES.sub("-", agent)


HeldBy: TypeAlias = Literal["us", "others", "gone", "unknown"]
"""Whose a member is: this process's, somebody else's, a Laneway's that has ended, or a Laneway's of which
this machine cannot tell whether it lives."""


class Registered(msgspec.Struct, frozen=True):
    """A member of a team, as far as the right to a name goes."""

    name: str
    held_by: HeldBy


def in_the_way(name: str, members: Iterable[Registered]) -> Registered | None:
    """The member because of which `name` may not be ours; none if we may take it, or have it.

    A Laneway of unknown fate keeps us from all names but its own: whoever takes that one must hold its
    lock, which a living Laneway does not give away.
    """
    for member in members:
        if not is_taken_for(name, member.name) or member.held_by == "gone":
            continue
        if member.held_by == "others" or member.name != name:
            return member
    return None


def is_taken_for(one: str, other: str) -> bool:
    """Whether two names have one inbox, on whatever disk, or are one name to a reader."""
    return not _likenesses(one).isdisjoint(_likenesses(other))


def _likenesses(name: str) -> frozenset[str]:
    """The name of the inbox without regard to case, and what it were if the name was spelt plainly."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return frozenset(inbox_name(each).lower() for each in (name, unicodedata.normalize("NFKC", plain)))


def _shown(name: str) -> str:
    return ascii(name if len(name) <= MAX_SHOWN_CHARS else name[:MAX_SHOWN_CHARS] + "…")
