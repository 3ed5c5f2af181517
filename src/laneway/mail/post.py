"""The way out: to one member or to all, at once or through the spool, in order and once.

The sender's name is the caller's to have checked (a bound identity, `check_may_act_as`); that the
recipient is in the team is checked here. Blocking: from asyncio call through `asyncio.to_thread`.
"""

from __future__ import annotations

import logging
import uuid
from pathlib import Path
from typing import Literal

import msgspec

from laneway.base.errors import MailBusy, MemberUnknown, StoreError
from laneway.mail.draft import Draft, draft
from laneway.mail.entries import Urgency
from laneway.mail.inbox import Inbox
from laneway.mail.locks import Patience
from laneway.mail.names import Address, check_recipient
from laneway.mail.places import Places
from laneway.mail.roster import Roster
from laneway.mail.spool import GivenUp, Handed, Spool
from laneway.store.stamps import Now, utc_now

log = logging.getLogger(__name__)

HAND_OVER_S = 0.3
"""For one inbox when spooled mail is handed over: whoever calls does so again soon, and others wait, too."""


class Receipt(msgspec.Struct, frozen=True):
    to: Address
    message_id: str
    outcome: Literal["delivered", "spooled"]
    is_gone: bool = False
    """Whether the recipient is a session whose process has ended: the mail waits for its next life."""


class Refused(msgspec.Struct, frozen=True):
    to: Address
    error: StoreError


class Broadcast(msgspec.Struct, frozen=True):
    message_id: str
    """One for all recipients, as in ATM: an answer to it means the same to everybody."""
    results: tuple[Receipt | Refused, ...]
    gone: tuple[Address, ...] = ()
    """Sessions that are still in the roster and have ended: nothing was sent to them."""


class Drained(msgspec.Struct, frozen=True):
    delivered: tuple[Receipt, ...] = ()
    waiting: int = 0
    given_up: tuple[GivenUp, ...] = ()


class Post:
    def __init__(
        self,
        places: Places,
        *,
        patience: Patience = Patience(),  # noqa: B008  frozen
        now: Now = utc_now,
    ) -> None:
        self._places = places
        self._patience = patience
        self._now = now
        self._spool = Spool(places, now=now)
        self._untold: list[GivenUp] = []

    def send(self, message: Draft, to: Address) -> Receipt:
        """Into the inbox of a member, or into the spool if somebody holds that inbox.

        Whoever has an inbox can be written to as well: somebody who wrote to the team without being
        in it, or a session that was closed and may be had back.
        """
        team = Roster(self._places, to.team).read()  # first: a team that is gone has nobody
        if team.member(to.agent) is None and self._inbox(to, self._patience).fingerprint() is None:
            raise MemberUnknown(to.agent, to.team)
        receipt = self._deliver(message, to)
        self._be_reachable(message)
        return msgspec.structs.replace(receipt, is_gone=to.agent in team.gone())

    def _be_reachable(self, message: Draft) -> None:
        """Who writes can be answered. Where that cannot be, the message has gone out all the same."""
        try:
            self._inbox(Address(message.sender, message.source_team), self._patience).found()
        except StoreError as problem:
            log.info("%s cannot be answered: %s", message.sender, problem)

    def broadcast(
        self,
        sender: str,
        text: str,
        *,
        team: str,
        source_team: str = "",
        summary: str = "",
        urgency: Urgency = "normal",
    ) -> Broadcast:
        """To every member of a team but the sender and those that are gone; each result stands for itself."""
        message = draft(
            sender,
            text,
            team=source_team or team,
            summary=summary,
            urgency=urgency,
            message_id=str(uuid.uuid4()),
            when=self._now(),
        )
        is_own = message.source_team == team
        found = Roster(self._places, team).read()
        results: list[Receipt | Refused] = []
        for name in found.names():
            if is_own and name == sender:
                continue
            to = Address(name, team)
            try:
                check_recipient(name)
                results.append(self._deliver(message, to))
            except StoreError as problem:
                results.append(Refused(to, problem))
        gone = tuple(Address(name, team) for name in found.gone() if not (is_own and name == sender))
        return Broadcast(message.message_id, tuple(results), gone)

    def has_waiting(self) -> bool:
        """Whether the spool holds anything. Costs a look at a folder."""
        return bool(self._spool.folders())

    def drain(self) -> Drained:
        """Hand over what the spool holds. At start-up, and whenever there `has_waiting`."""
        delivered: list[Receipt] = []
        waiting = 0
        for folder in self._spool.folders():
            handed = self._hand_over(folder)
            delivered += [
                Receipt(Address(each.agent, each.team), each.draft.message_id, "delivered")
                for each in handed.delivered
            ]
            waiting += handed.waiting
        given_up, self._untold = self._untold, []
        return Drained(tuple(delivered), waiting, tuple(given_up))

    def _deliver(self, message: Draft, to: Address) -> Receipt:
        if self._spool.waits_for(to):
            self._hand_over(self._spool.folder(to))
        if not self._spool.waits_for(to):  # never past one that waits
            try:
                self._inbox(to, self._patience).append(message)
                return Receipt(to, message.message_id, "delivered")
            except MailBusy:
                pass
        self._spool.add(to, message)
        return Receipt(to, message.message_id, "spooled")

    def _hand_over(self, folder: Path) -> Handed:
        budget = Patience(min(HAND_OVER_S, self._patience.budget_s), self._patience.stale_s)
        handed = self._spool.hand_over(folder, lambda to, message: self._inbox(to, budget).append(message))
        for lost in handed.given_up:
            log.error("Mail %s to %s was given up: %s. It is kept as %s.", *_facts(lost))
        self._untold += handed.given_up  # for the next who asks, whoever found out
        return handed

    def _inbox(self, to: Address, patience: Patience) -> Inbox:
        return Inbox(self._places, to.team, to.agent, patience=patience, now=self._now)


def _facts(lost: GivenUp) -> tuple[object, ...]:
    return lost.message_id, lost.to, lost.why, lost.path
