"""Sends messages: to one member or to all, at once or through the spool, in order and exactly once.

The caller must have checked the sender's name (a bound identity, `check_may_act_as`); that the
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
"""For one inbox when spooled mail is delivered: the next attempt comes soon, and other inboxes wait, too."""


class Receipt(msgspec.Struct, frozen=True):
    """A message that was delivered, or is kept in the spool."""

    to: Address
    message_id: str
    outcome: Literal["delivered", "spooled"]
    is_gone: bool = False
    """Whether the recipient is a session whose process has ended: the mail waits until it runs again."""


class SendRefused(msgspec.Struct, frozen=True):
    """One recipient of a broadcast that did not get it."""

    to: Address
    error: StoreError


class Broadcast(msgspec.Struct, frozen=True):
    """The results of one broadcast."""

    message_id: str
    """The same for all recipients, as in ATM, so that everybody refers to it alike."""
    results: tuple[Receipt | SendRefused, ...]
    gone: tuple[Address, ...] = ()
    """Sessions in the roster whose process has ended: nothing was sent to them."""


class Drained(msgspec.Struct, frozen=True):
    """What `Post.drain` did with the spool."""

    delivered: tuple[Receipt, ...] = ()
    waiting: int = 0
    given_up: tuple[GivenUp, ...] = ()


class Post:
    """Sends mail under any checked name, for all teams."""

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
        self._unreported: list[GivenUp] = []

    def send(self, message: Draft, to: Address) -> Receipt:
        """Into the inbox of a member, or into the spool if another program has locked that inbox.

        Anyone with an inbox can be written to as well: a sender who is not in the team, or a closed
        session that may be resumed.
        """
        team = Roster(self._places, to.team).read()  # first: a team that is gone has no members
        if team.member(to.agent) is None and self._inbox(to, self._patience).fingerprint() is None:
            raise MemberUnknown(to.agent, to.team)
        receipt = self._deliver(message, to)
        self._ensure_reply_inbox(message)
        return msgspec.structs.replace(receipt, is_gone=to.agent in team.gone())

    def _ensure_reply_inbox(self, message: Draft) -> None:
        """The sender needs an inbox for answers. If that fails, the message has been sent all the same."""
        try:
            self._inbox(Address(message.sender, message.source_team), self._patience).ensure()
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
        """To every member of a team but the sender and those that are gone, each with a result of its own."""
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
        roster = Roster(self._places, team).read()
        results: list[Receipt | SendRefused] = []
        for name in roster.names():
            if is_own and name == sender:
                continue
            to = Address(name, team)
            try:
                check_recipient(name)
                results.append(self._deliver(message, to))
            except StoreError as problem:
                results.append(SendRefused(to, problem))
        gone = tuple(Address(name, team) for name in roster.gone() if not (is_own and name == sender))
        return Broadcast(message.message_id, tuple(results), gone)

    def has_waiting(self) -> bool:
        """Whether the spool holds anything. Cheap: it lists a folder."""
        return bool(self._spool.folders())

    def drain(self) -> Drained:
        """Deliver what the spool holds. Called at start-up, and whenever it `has_waiting`."""
        delivered: list[Receipt] = []
        waiting = 0
        for folder in self._spool.folders():
            handed = self._hand_over(folder)
            delivered += [
                Receipt(Address(each.agent, each.team), each.draft.message_id, "delivered")
                for each in handed.delivered
            ]
            waiting += handed.waiting
        given_up, self._unreported = self._unreported, []
        return Drained(tuple(delivered), waiting, tuple(given_up))

    def _deliver(self, message: Draft, to: Address) -> Receipt:
        if self._spool.waits_for(to):
            self._hand_over(self._spool.folder(to))
        if not self._spool.waits_for(to):  # a message never overtakes one that waits
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
        self._unreported += handed.given_up  # reported by the next `drain`, whichever call gave them up
        return handed

    def _inbox(self, to: Address, patience: Patience) -> Inbox:
        return Inbox(self._places, to.team, to.agent, patience=patience, now=self._now)


def _facts(lost: GivenUp) -> tuple[object, ...]:
    return lost.message_id, lost.to, lost.why, lost.path
