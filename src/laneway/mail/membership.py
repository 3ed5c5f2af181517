"""Membership of our sessions in the team: they join it, move with it, and leave it.

Owns which team mail goes through. A team belongs to its owner: one that existed and was removed is left
quietly and joined again if it comes back; we never create it again. The same holds for names: one that
another program registers is theirs, and our session leaves. All file work is done in threads, one change
of the roster at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from laneway.base.errors import StoreError, TeamGone
from laneway.mail import swap
from laneway.mail.inbox import Inbox
from laneway.mail.locks import Patience
from laneway.mail.places import Places
from laneway.mail.roster import Roster, owner_of
from laneway.mail.swap import Fingerprint
from laneway.mail.teams import TeamChoice, mail_team

log = logging.getLogger(__name__)

PATIENCE = Patience(budget_s=1.0)
"""For the lock of a roster or an inbox: we try again later, and a thread is blocked meanwhile."""


class Membership:
    """Which of our sessions are in the team, and which team that is."""

    def __init__(
        self,
        places: Places,
        choice: TeamChoice,
        *,
        founds: bool = True,
        find: Callable[[], TeamChoice] | None = None,
        patience: Patience = PATIENCE,
    ) -> None:
        """`founds`: a team that does not exist yet is created when the first session joins it."""
        self.on_founded: Callable[[], None] = lambda: None
        """Called when that has happened: no watch can have seen it coming. Must not block."""
        self.places = places
        self._choice = choice
        self._find = find or (lambda: mail_team(places, None))
        self._founds = founds
        self._patience = patience
        self._was_there: set[str] = set()
        self._cleared: set[str] = set()
        """Teams from which we have removed the members that a killed Laneway left behind."""
        self._is_there = True
        """Whether the team exists, as far as we know; logged when it changes."""
        self._members: dict[str, object] = {}
        """By name, the carrier that joined under it."""
        self._roster_seen: Fingerprint | None = None
        self._lock = asyncio.Lock()

    @property
    def team(self) -> str:
        return self._choice.team

    @property
    def can_be_joined(self) -> bool:
        """Whether the team exists, or we may create it."""
        return self._is_there or self._may_found

    @property
    def _may_found(self) -> bool:
        return self._founds and self.team not in self._was_there

    async def follow(self) -> bool:
        """Check which team is ours now; whether mail goes through another one from now on."""
        async with self._lock:
            choice, is_there = await asyncio.to_thread(self._look)
            has_moved = choice.team != self.team
            if has_moved:
                log.info("Mail goes through the team %s now, no longer %s", choice.team, self.team)
                await self._leave_all()
            elif is_there != self._is_there and self.team in self._was_there:
                log.info("The team %s is %s", choice.team, "there again" if is_there else "gone")
            if has_moved or not is_there:
                self._members.clear()
                self._roster_seen = None
            self._choice, self._is_there = choice, is_there
            if is_there:
                await self._drop_removed()
            return has_moved

    async def refresh(self) -> None:
        """Read who is a member now, before something is done for one. Cheap if the roster has not changed.

        `StoreError` if it cannot be read: then it is not known who owns a name.
        """
        if await asyncio.to_thread(self._has_changed):
            async with self._lock:
                await self._drop_removed()

    def _has_changed(self) -> bool:
        fingerprint = swap.fingerprint(self.places.config(self.team))
        return fingerprint is not None and fingerprint != self._roster_seen

    async def _drop_removed(self) -> None:
        """Forget members that are no longer in the roster: their sessions join again.

        Another program may have written an old copy of it, or created the team again. Sessions whose name
        another has registered leave.
        """
        present = await asyncio.to_thread(self._present)
        if present is not None:
            self._members = {name: who for name, who in self._members.items() if name in present}

    def _present(self) -> set[str] | None:
        """Names of ours that are in the roster and may be; `None` if it has not changed."""
        roster = self._roster(self.team)
        fingerprint = swap.fingerprint(roster.path)
        if fingerprint is None or fingerprint == self._roster_seen:
            return None
        if self.team not in self._cleared:
            self._cleared.add(self.team)
            roster.clear_dead()
        members = roster.read().members
        ours = {member.name for member in members if member.is_ours}
        theirs = {name for name in ours if owner_of(name, members) is not None}
        self._roster_seen = fingerprint if self._deregister(theirs) else None  # else this is tried again
        return ours - theirs

    def _deregister(self, names: set[str]) -> bool:
        """Remove these names; whether all of them are out of the roster."""
        try:
            for name in names:
                self._roster(self.team).deregister(name)
        except StoreError as problem:
            log.info("%s stays in the roster for now: %s", ", ".join(sorted(names)), problem)
            return False
        return True

    def _look(self) -> tuple[TeamChoice, bool]:
        choice = self._choice
        if choice.source != "said":
            current = self._find()
            # When a Claude Code session ends, its members do not move to the default team.
            if current.source == "claude" or choice.source == "default":
                choice = current
        is_there = self.places.config(choice.team).is_file()
        if is_there:
            self._was_there.add(choice.team)
        return choice, is_there

    async def join(self, identity: str, who: object, *, model: str, cwd: str) -> Inbox:
        """Become a member with an inbox. Raises `TeamGone`, `MemberForeign` or another `StoreError`."""
        async with self._lock:
            team = self.team
            is_new = await asyncio.to_thread(
                self._register, team, identity, model, cwd, create=self._may_found
            )
            self._is_there = True
            if is_new:
                self.on_founded()
            self._members[identity] = who
            return Inbox(self.places, team, identity, patience=self._patience)

    def _register(self, team: str, identity: str, model: str, cwd: str, *, create: bool) -> bool:
        """Whether the team had no folder before."""
        is_new = not self.places.team(team).exists()
        self._was_there.add(team)  # before: a team that is removed while we create it counts as removed
        try:
            self._roster(team).register(identity, model=model, cwd=cwd, create=create)
        except TeamGone:
            raise
        except StoreError:
            if create and not self.places.team(team).exists():
                self._was_there.discard(team)  # it could not be created, perhaps it can be later
            raise
        return is_new

    async def leave(self, identity: str, who: object) -> None:
        """Leave the team, if `who` is the member: another carrier may have the name by now."""
        async with self._lock:
            if self._members.get(identity) is who:
                del self._members[identity]
                await asyncio.to_thread(self._roster(self.team).deregister, identity)

    def is_member(self, identity: str, who: object) -> bool:
        return self._members.get(identity) is who

    def _roster(self, team: str) -> Roster:
        return Roster(self.places, team, patience=self._patience)

    async def _leave_all(self) -> None:
        roster = self._roster(self.team)
        for identity in self._members:
            try:
                await asyncio.to_thread(roster.deregister, identity)
            except StoreError as problem:
                log.warning("%s stays in the roster of %s: %s", identity, self.team, problem)
