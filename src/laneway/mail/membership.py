"""Our sessions as members of the team: they join it, follow it where it goes, and leave it.

Owns which team mail goes through. The team is its owner's: one that was there and is removed is
left, quietly, and joined again if it comes back; it is never made anew. So are names: one that
somebody else registers is theirs, and we leave. All file work is done in threads, one change of the
roster at a time.
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
from laneway.mail.teams import Choice, mail_team

log = logging.getLogger(__name__)

PATIENCE = Patience(budget_s=1.0)
"""With whoever holds a roster or an inbox: we come again, and meanwhile a thread stands still for us."""


class Membership:
    def __init__(
        self,
        places: Places,
        choice: Choice,
        *,
        founds: bool = True,
        find: Callable[[], Choice] | None = None,
        patience: Patience = PATIENCE,
    ) -> None:
        """`founds`: a team that nobody has made yet is made when the first session joins it."""
        self.places = places
        self._choice = choice
        self._find = find or (lambda: mail_team(places, None))
        self._founds = founds
        self._patience = patience
        self._was_there: set[str] = set()
        self._cleared: set[str] = set()
        """Teams from which we have removed those that a killed Laneway left behind."""
        self._is_there = True
        """As far as we know; said once when it changes."""
        self._members: dict[str, object] = {}
        """By name, who joined under it."""
        self._roster_seen: Fingerprint | None = None
        self._lock = asyncio.Lock()

    @property
    def team(self) -> str:
        return self._choice.team

    @property
    def can_be_joined(self) -> bool:
        """Whether there is a team, or we may make it."""
        return self._is_there or self._may_found

    @property
    def _may_found(self) -> bool:
        return self._founds and self.team not in self._was_there

    async def follow(self) -> bool:
        """Look where the team is now; whether mail goes through another one from now on."""
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
                await self._drop_the_removed()
            return has_moved

    async def refresh(self) -> None:
        """See who is a member now, before something is done for one. Cheap if nobody wrote the roster.

        `StoreError` if that cannot be seen: then nobody can say whose a name is.
        """
        if await asyncio.to_thread(self._has_changed):
            async with self._lock:
                await self._drop_the_removed()

    def _has_changed(self) -> bool:
        found = swap.fingerprint(self.places.config(self.team))
        return found is not None and found != self._roster_seen

    async def _drop_the_removed(self) -> None:
        """Somebody may have written the roster from memory, or made the team anew: then we join again.

        Somebody else may have one of our names by now: then we leave.
        """
        present = await asyncio.to_thread(self._present)
        if present is not None:
            self._members = {name: who for name, who in self._members.items() if name in present}

    def _present(self) -> set[str] | None:
        """Who of us is in the roster and may be; `None` if it has not changed."""
        roster = self._roster(self.team)
        found = swap.fingerprint(roster.path)
        if found is None or found == self._roster_seen:
            return None
        if self.team not in self._cleared:
            self._cleared.add(self.team)
            roster.clear_dead()
        members = roster.read().members
        ours = {member.name for member in members if member.is_ours}
        theirs = {name for name in ours if owner_of(name, members) is not None}
        self._roster_seen = found if self._deregister(theirs) else None  # else this is tried again
        return ours - theirs

    def _deregister(self, names: set[str]) -> bool:
        """Whether all of them are out of the roster."""
        try:
            for name in names:
                self._roster(self.team).deregister(name)
        except StoreError as problem:
            log.info("%s stays in the roster for now: %s", ", ".join(sorted(names)), problem)
            return False
        return True

    def _look(self) -> tuple[Choice, bool]:
        choice = self._choice
        if choice.source != "said":
            found = self._find()
            # A session that ended takes nobody along to a team that it was not asked for.
            if found.source == "claude" or choice.source == "default":
                choice = found
        is_there = self.places.config(choice.team).is_file()
        if is_there:
            self._was_there.add(choice.team)
        return choice, is_there

    async def join(self, identity: str, who: object, *, model: str, cwd: str) -> Inbox:
        """Be a member, and have an inbox. `TeamGone`, `MemberForeign` or another `StoreError` if not."""
        async with self._lock:
            team = self.team
            await asyncio.to_thread(self._register, team, identity, model, cwd, create=self._may_found)
            self._is_there = True
            self._members[identity] = who
            return Inbox(self.places, team, identity, patience=self._patience)

    def _register(self, team: str, identity: str, model: str, cwd: str, *, create: bool) -> None:
        self._was_there.add(team)  # before: what we make may be removed while we do, and that counts
        try:
            self._roster(team).register(identity, model=model, cwd=cwd, create=create)
        except TeamGone:
            raise
        except StoreError:
            if create and not self.places.team(team).exists():
                self._was_there.discard(team)  # it could not be made, perhaps it can be later
            raise

    async def leave(self, identity: str, who: object) -> None:
        """Only for whoever joined: another may have the name by now."""
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
