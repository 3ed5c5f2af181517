"""Delivers one session's mail: reads its inbox and acts on it as `laneway.mail.delivery` decides.

Does one thing at a time and never blocks the loop: files are read and written in threads, and nothing
is awaited between the last check of the session and the request for a turn. Mail is marked as read when
Codex has recorded it, not before: if anything fails until then, it is delivered again. Under a name that
another program has registered nothing is read or marked. Only `Postman` makes one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from laneway.base.errors import BudgetSpent, LanewayError, StoreError, TeamGone
from laneway.core.background import Coalescer
from laneway.core.named.session import NamedSession
from laneway.core.turn import TurnResult
from laneway.mail import claude_messages, envelope
from laneway.mail.claude_messages import Addressee
from laneway.mail.delivery import (
    Act,
    EndSession,
    HoldMail,
    Situation,
    Sorted,
    StartMailTurn,
    SteerMail,
    decide,
    sort,
)
from laneway.mail.draft import draft
from laneway.mail.entries import Message
from laneway.mail.in_flight import Deliveries
from laneway.mail.inbox import Inbox
from laneway.mail.marking import Marking
from laneway.mail.names import Address
from laneway.mail.pace import MAX_BACKOFF_S
from laneway.mail.roster import LEAD, check_may_act_as
from laneway.mail.shared import MailNotice, MailShared, NewMail, NoticeKind
from laneway.mail.sighting import Sight, look
from laneway.mail.swap import Fingerprint

log = logging.getLogger(__name__)

JOIN_AGAIN_S = 60.0
"""After the team refused the name: it may be free again by then."""


class Carrier:
    """The mail of one live session, from its opening to its close."""

    def __init__(self, named: NamedSession, shared: MailShared) -> None:
        self.named = named
        self.unread = 0
        self._shared = shared
        self._since = shared.now()
        self._free_since = self._since.timestamp()
        self._inbox: Inbox | None = None
        self._join_at = 0.0
        self._is_due = True
        """Whether to read the inbox although it has not changed."""
        self._seen: Fingerprint | None = None
        self._known: Mapping[str, float] = {}
        self._last_act: Act = HoldMail("nothing")
        self._deliveries = Deliveries(named, shared, self)
        self._marking = Marking(shared.membership.places, shared.clock, self.look_again)
        self._stop_alarm: Callable[[], None] = lambda: None
        self._noticed: set[NoticeKind] = set()
        self._is_finished = False
        self._has_left = False
        self._coalescer = Coalescer(self._work, shared.tasks, f"mail of {named.identity}", linger_s=0)
        named.session.attach(self._deliveries)
        self.stir()

    @property
    def file_name(self) -> str | None:
        return self._inbox.path.name if self._inbox else None

    # ── what the postman reports ───────────────────────────────────────────

    def stir(self) -> None:
        """Something may have changed: check soon."""
        if not self._has_left:
            self._coalescer.stir()

    def look_again(self) -> None:
        """Something that matters has changed, though perhaps not the inbox: read it in any case."""
        self._is_due = True
        self.stir()

    def poll(self) -> None:
        """Called every few seconds. Mail that was held for a reason that is gone is considered again."""
        why = self._last_act.why if isinstance(self._last_act, HoldMail) else None
        if (why == "busy" and self.named.state == "idle") or (
            why == "engine" and self._shared.can_begin(self.named)
        ):
            self._is_due = True
        self.stir()

    def on_idle(self) -> None:
        self._free_since = self._shared.now().timestamp()
        self._deliveries.on_idle()
        if self.unread:
            self.look_again()

    def finish(self) -> None:
        """Start no more turns; mark what is recorded, then leave the team."""
        self._is_finished = True
        self._stop_alarm()
        self._marking.stop()
        self.stir()

    # ── how its deliveries go (the `DeliveryOwner` port) ──────────────────────────

    def on_begun(self) -> None:
        if self.unread and self._shared.rules.may_steer:
            self.look_again()

    def on_recorded(self, inbox: Inbox, messages: tuple[Message, ...]) -> None:
        self._marking.add(inbox, messages)
        self.stir()

    def on_failed(self, why: TurnResult | LanewayError) -> None:
        """The mail stays unread and is delivered again after a while."""
        now, who = self._shared.clock.now(), self.named.identity
        is_spent = isinstance(why, BudgetSpent)
        until = self._deliveries.pace.fail(now, MAX_BACKOFF_S if is_spent else 0.0)
        self._shared.counters.failed += 1
        log.info("mail for %s is brought again in %g s: %s", who, until - now, why)
        if is_spent:
            self._notice("budget", f"Mail for {who} waits. {why}")
        self._look_at(until)

    def _look_at(self, when: float | None) -> None:
        self._stop_alarm()
        if when is not None and not self._is_finished:
            wait_s = max(0.0, when - self._shared.clock.now())
            self._stop_alarm = self._shared.clock.after(wait_s, self.look_again)

    # ── looking ────────────────────────────────────────────────────────────

    async def _work(self) -> None:
        await self._marking.run()
        if self._is_finished:
            await self._leave()
            return
        inbox = await self._joined()
        sight = await self._look(inbox) if inbox is not None else None
        # Checked again after reading: the inbox may hold mail for another who registered the name meanwhile.
        if sight is not None and not (is_ours := await self._is_ours()):
            self._is_due = True
            if is_ours is False:
                self.stir()
            return
        if inbox is None or sight is None or self._is_finished:
            return
        self._record_sight(inbox, sight)
        # Nothing is awaited between this check of the session and the action.
        act = self._last_act = decide(self._situation(), sight.mail, self._shared.rules)
        match act:
            case StartMailTurn():
                self._start_turn(inbox, act)
            case SteerMail(messages):
                await self._deliveries.steer(inbox, messages, self._prompt(inbox, messages, is_steer=True))
            case EndSession(request):
                await self._end(inbox, request)
            case HoldMail(why, until):
                if why == "limit":
                    self._notice_limit()
                self._look_at(until)
        await self._marking.again(inbox, sight.mail.marks)

    async def _joined(self) -> Inbox | None:
        """The inbox, while the session is in the team under its own name."""
        membership, named = self._shared.membership, self.named
        if self._inbox is not None:
            is_ours = await self._is_ours()
            if is_ours is None:
                return None
            if is_ours:
                return self._inbox
        self._inbox, self.unread = None, 0
        now = self._shared.clock.now()
        if not membership.can_be_joined or now < self._join_at:
            return None
        spec = named.session.spec
        try:
            self._inbox = await membership.join(
                named.identity, self, model=spec.model or "", cwd=str(spec.cwd)
            )
        except TeamGone:
            return None  # joined when the team appears
        except StoreError as problem:
            self._join_at = now + JOIN_AGAIN_S
            self._notice("join", f"{named.identity} gets no mail. {problem}")
            return None
        self._noticed.discard("join")
        self._is_due = True
        return self._inbox

    async def _is_ours(self) -> bool | None:
        """Whether the session owns the name in the team; none if that cannot be determined now."""
        membership, identity = self._shared.membership, self.named.identity
        try:
            await membership.refresh()
        except TeamGone:
            return None  # the postman's next round finds the team
        except StoreError as problem:
            self._notice("inbox", f"{identity} gets no mail. {problem}")
            return None
        return membership.is_member(identity, self)

    async def _look(self, inbox: Inbox) -> Sight | None:
        """Read the inbox; none if there is nothing new."""
        is_due, self._is_due = self._is_due, False
        deliveries, me, rules = self._deliveries, self._me(inbox), self._shared.rules
        pending_keys = deliveries.pending_keys

        def sorting(unread: Sequence[Message]) -> Sorted:
            return sort(unread, me, rules, pending_keys=pending_keys, delivered=deliveries.delivered)

        try:
            sight = await asyncio.to_thread(look, inbox, self._seen, self._known, sorting, is_due=is_due)
        except TeamGone:
            return None  # the postman's next round finds the team
        except StoreError as problem:
            self._is_due = True
            self._notice("inbox", f"{self.named.identity} gets no mail. {problem}")
            return None
        if sight is not None:
            self._seen = sight.fingerprint
        return sight

    def _situation(self) -> Situation:
        named, now, pace = self.named, self._shared.clock.now(), self._deliveries.pace
        return Situation(
            now=now,
            state="closed" if named.ending is not None else named.state,
            is_auto=self._shared.is_auto(named.agent_id),
            can_begin=self._shared.can_begin(self.named),
            can_steer=self.named.session.engine.offers.steering,
            begun=pace.begun(now),
            not_before=pace.not_before,
        )

    def _me(self, inbox: Inbox) -> Addressee:
        return Addressee(self.named.identity, inbox.team, self._since)

    def _record_sight(self, inbox: Inbox, sight: Sight) -> None:
        named = self.named
        self.unread, self._known = sight.unread, sight.known
        self._shared.counters.refused += sight.newly_refused
        if sight.new:
            self._shared.tell(NewMail(named.agent_id, named.identity, inbox.team, sight.new, sight.unread))
        if sight.damage:
            self._notice("inbox", sight.damage)
        else:
            self._noticed.discard("inbox")

    def _start_turn(self, inbox: Inbox, act: StartMailTurn) -> None:
        written_at = min(self._known[key] for message in act.messages for key in message.key)
        was_free = written_at >= self._free_since
        prompt = self._prompt(inbox, act.messages, waiting=act.left)
        try:
            self._deliveries.begin_turn(inbox, act.messages, prompt, written_at if was_free else None)
        except LanewayError as problem:
            self.on_failed(problem)
        else:
            self._noticed -= {"limit", "budget"}

    def _prompt(
        self, inbox: Inbox, messages: tuple[Message, ...], *, waiting: int = 0, is_steer: bool = False
    ) -> str:
        me, max_chars = self._me(inbox), self._shared.rules.max_chars
        items = [claude_messages.item(message, me) for message in messages]
        return envelope.compose(items, max_chars=max_chars, waiting=waiting, is_steer=is_steer)

    # ── the end ────────────────────────────────────────────────────────────

    async def _end(self, inbox: Inbox, request: Message) -> None:
        """Close the session, then answer the lead: an answer before that could turn out to be untrue."""
        named, shared = self.named, self._shared
        try:
            closed = await shared.sessions.close(named.principal, agent_id=named.agent_id)
        except LanewayError as problem:
            self.on_failed(problem)
            return
        shared.counters.sessions_ended += 1
        self._deliveries.delivered.add(request)
        self._marking.add(inbox, (request,))
        await self._marking.run()
        shared.note("mail_shutdown", named, (request,), outcome=closed.status)
        answer = claude_messages.approval(request, named.identity, shared.now())
        try:
            await asyncio.to_thread(check_may_act_as, shared.membership.places, inbox.team, inbox.agent)
            message = draft(named.identity, answer, team=inbox.team, summary="shutdown approved")
            await asyncio.to_thread(shared.post.send, message, Address(LEAD, inbox.team))
        except StoreError as problem:
            log.warning("The lead of %s was not told that %s ended: %s", inbox.team, inbox.agent, problem)

    async def _leave(self) -> None:
        self._has_left = True
        self.unread = 0
        named = self.named
        named.session.unsubscribe(self._deliveries)
        try:
            await self._shared.membership.leave(named.identity, self)
        except StoreError as problem:
            log.warning("%s stays in its team's roster: %s", named.identity, problem)

    # ── notices for people ─────────────────────────────────────────────────

    def _notice_limit(self) -> None:
        self._notice(
            "limit",
            f"{self.named.identity} has had {self._shared.rules.turns_per_hour} mail turns in one hour, "
            f"and {self.unread} unread messages wait. Raise mail_turns_per_hour if that is too few.",
        )

    def _notice(self, kind: NoticeKind, text: str) -> None:
        """Log it and tell listeners, once until the problem is over."""
        if kind in self._noticed:
            return
        self._noticed.add(kind)
        log.warning("%s", text)
        named = self.named
        self._shared.sessions.note(f"mail_{kind}", named, outcome=text)
        self._shared.tell(MailNotice(named.agent_id, named.identity, kind, text))
