"""One session's mail: looks into its inbox and brings what is there, as `laneway.mail.delivery` decides.

Does one thing at a time and blocks nobody: files are read and written in threads, and between the
last look at the session and the asking for a turn nothing is awaited. Mail is marked as read when
Codex has recorded it, not before: whatever goes wrong until then, it is brought again. A name that
somebody else has registered is theirs: nothing is read or marked under it. Made by `Postman` only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence

from laneway.base.errors import BudgetSpent, LanewayError, StoreError, TeamGone
from laneway.core.background import Drain
from laneway.core.colleague import Colleague
from laneway.core.turn import TurnResult
from laneway.mail import envelope, frames
from laneway.mail.delivery import Act, Bring, End, Hold, Situation, Sorted, Steer, decide, sort
from laneway.mail.depot import Depot, NewMail, Notice, NoticeKind
from laneway.mail.draft import draft
from laneway.mail.entries import Message
from laneway.mail.frames import Addressee
from laneway.mail.inbox import Inbox
from laneway.mail.marking import Marking
from laneway.mail.names import Address
from laneway.mail.pace import MAX_BACKOFF_S
from laneway.mail.roster import LEAD, check_may_act_as
from laneway.mail.sighting import Sight, look
from laneway.mail.swap import Fingerprint
from laneway.mail.trips import Trips

log = logging.getLogger(__name__)

JOIN_AGAIN_S = 60.0
"""After the team would not have us: somebody may have given the name back by then."""


class Carrier:
    def __init__(self, colleague: Colleague, depot: Depot) -> None:
        self.colleague = colleague
        self.unread = 0
        self._depot = depot
        self._since = depot.now()
        self._free_since = self._since.timestamp()
        self._inbox: Inbox | None = None
        self._join_at = 0.0
        self._is_due = True
        """Whether to look although the inbox has not changed."""
        self._seen: Fingerprint | None = None
        self._known: Mapping[str, float] = {}
        self._last_act: Act = Hold("nothing")
        self._trips = Trips(colleague, depot, self)
        self._marking = Marking(depot.membership.places, depot.clock, self.look_again)
        self._stop_alarm: Callable[[], None] = lambda: None
        self._told: set[NoticeKind] = set()
        self._is_over = False
        self._has_left = False
        self._drain = Drain(self._work, depot.chores, f"mail of {colleague.identity}", linger_s=0)
        colleague.session.attach(self._trips)
        self.stir()

    @property
    def file_name(self) -> str | None:
        return self._inbox.path.name if self._inbox else None

    # ── what happens around it ─────────────────────────────────────────────

    def stir(self) -> None:
        """Something may have changed."""
        if not self._has_left:
            self._drain.stir()

    def look_again(self) -> None:
        """Something that counts has changed, though perhaps not the inbox."""
        self._is_due = True
        self.stir()

    def poll(self) -> None:
        """Every few seconds. What was held back for a reason that is gone is looked at again."""
        why = self._last_act.why if isinstance(self._last_act, Hold) else None
        if (why == "busy" and self.colleague.state == "idle") or (why == "engine" and self._depot.can_begin):
            self._is_due = True
        self.stir()

    def on_idle(self) -> None:
        self._free_since = self._depot.now().timestamp()
        self._trips.on_idle()
        if self.unread:
            self.look_again()

    def finish(self) -> None:
        """No more turns; what is recorded is still marked, then the team is left."""
        self._is_over = True
        self._stop_alarm()
        self._marking.stop()
        self.stir()

    # ── how its trips go (the Sender port) ─────────────────────────────────

    def on_begun(self) -> None:
        if self.unread and self._depot.rules.may_steer:
            self.look_again()

    def on_recorded(self, inbox: Inbox, messages: tuple[Message, ...]) -> None:
        self._marking.add(inbox, messages)
        self.stir()

    def on_failed(self, why: TurnResult | LanewayError) -> None:
        """The mail is unread and stays so, and is brought again after a while."""
        now, who = self._depot.clock.now(), self.colleague.identity
        is_spent = isinstance(why, BudgetSpent)
        until = self._trips.pace.fail(now, MAX_BACKOFF_S if is_spent else 0.0)
        self._depot.counters.failed += 1
        log.info("mail for %s is brought again in %g s: %s", who, until - now, why)
        if is_spent:
            self._notice("budget", f"Mail for {who} waits. {why}")
        self._look_at(until)

    def _look_at(self, when: float | None) -> None:
        self._stop_alarm()
        if when is not None and not self._is_over:
            wait_s = max(0.0, when - self._depot.clock.now())
            self._stop_alarm = self._depot.clock.after(wait_s, self.look_again)

    # ── looking ────────────────────────────────────────────────────────────

    async def _work(self) -> None:
        await self._marking.run()
        if self._is_over:
            await self._leave()
            return
        inbox = await self._joined()
        sight = await self._look(inbox) if inbox is not None else None
        # Mail for somebody else comes after they registered: whose it is, is seen behind the reading.
        if sight is not None and not (is_ours := await self._is_ours()):
            self._is_due = True
            if is_ours is False:
                self.stir()
            return
        if inbox is None or sight is None or self._is_over:
            return
        self._take_note(inbox, sight)
        # Nothing is awaited between this look at the session and what is done about it.
        act = self._last_act = decide(self._situation(), sight.mail, self._depot.rules)
        match act:
            case Bring():
                self._bring(inbox, act)
            case Steer(messages):
                await self._trips.steer(inbox, messages, self._words(inbox, messages, is_steer=True))
            case End(request):
                await self._end(inbox, request)
            case Hold(why, until):
                if why == "limit":
                    self._tell_limit()
                self._look_at(until)
        await self._marking.again(inbox, sight.mail.marks)

    async def _joined(self) -> Inbox | None:
        """The inbox, while the session is in the team under a name that is its own."""
        membership, colleague = self._depot.membership, self.colleague
        if self._inbox is not None:
            is_ours = await self._is_ours()
            if is_ours is None:
                return None
            if is_ours:
                return self._inbox
        self._inbox, self.unread = None, 0
        now = self._depot.clock.now()
        if not membership.can_be_joined or now < self._join_at:
            return None
        spec = colleague.session.spec
        try:
            self._inbox = await membership.join(
                colleague.identity, self, model=spec.model or "", cwd=str(spec.cwd)
            )
        except TeamGone:
            return None  # it is joined when it comes
        except StoreError as problem:
            self._join_at = now + JOIN_AGAIN_S
            self._notice("join", f"{colleague.identity} gets no mail. {problem}")
            return None
        self._told.discard("join")
        self._is_due = True
        return self._inbox

    async def _is_ours(self) -> bool | None:
        """Whether the name is the session's in the team; none if that cannot be known now."""
        membership, identity = self._depot.membership, self.colleague.identity
        try:
            await membership.refresh()
        except TeamGone:
            return None  # the postman's next round finds out where it is
        except StoreError as problem:
            self._notice("inbox", f"{identity} gets no mail. {problem}")
            return None
        return membership.is_member(identity, self)

    async def _look(self, inbox: Inbox) -> Sight | None:
        """None if there is nothing new to see."""
        is_due, self._is_due = self._is_due, False
        trips, me, rules = self._trips, self._me(inbox), self._depot.rules
        under_way = trips.under_way

        def sorting(unread: Sequence[Message]) -> Sorted:
            return sort(unread, me, rules, under_way=under_way, brought=trips.brought)

        try:
            sight = await asyncio.to_thread(look, inbox, self._seen, self._known, sorting, is_due=is_due)
        except TeamGone:
            return None  # the postman's next round finds out where it is
        except StoreError as problem:
            self._is_due = True
            self._notice("inbox", f"{self.colleague.identity} gets no mail. {problem}")
            return None
        if sight is not None:
            self._seen = sight.fingerprint
        return sight

    def _situation(self) -> Situation:
        colleague, now, pace = self.colleague, self._depot.clock.now(), self._trips.pace
        return Situation(
            now=now,
            state="closed" if colleague.ending is not None else colleague.state,
            is_auto=self._depot.is_auto(colleague.agent_id),
            can_begin=self._depot.can_begin,
            begun=pace.begun(now),
            not_before=pace.not_before,
        )

    def _me(self, inbox: Inbox) -> Addressee:
        return Addressee(self.colleague.identity, inbox.team, self._since)

    def _take_note(self, inbox: Inbox, sight: Sight) -> None:
        colleague = self.colleague
        self.unread, self._known = sight.unread, sight.known
        self._depot.counters.refused += sight.newly_refused
        if sight.new:
            self._depot.tell(
                NewMail(colleague.agent_id, colleague.identity, inbox.team, sight.new, sight.unread)
            )
        if sight.damage:
            self._notice("inbox", sight.damage)
        else:
            self._told.discard("inbox")

    def _bring(self, inbox: Inbox, act: Bring) -> None:
        written_at = min(self._known[key] for message in act.messages for key in message.key)
        was_free = written_at >= self._free_since
        words = self._words(inbox, act.messages, waiting=act.left)
        try:
            self._trips.begin_turn(inbox, act.messages, words, written_at if was_free else None)
        except LanewayError as problem:
            self.on_failed(problem)
        else:
            self._told -= {"limit", "budget"}

    def _words(
        self, inbox: Inbox, messages: tuple[Message, ...], *, waiting: int = 0, is_steer: bool = False
    ) -> str:
        me, max_chars = self._me(inbox), self._depot.rules.max_chars
        items = [frames.item(message, me) for message in messages]
        return envelope.compose(items, max_chars=max_chars, waiting=waiting, is_steer=is_steer)

    # ── the end ────────────────────────────────────────────────────────────

    async def _end(self, inbox: Inbox, request: Message) -> None:
        """Close the session, then say so: an answer before that could turn out to be untrue."""
        colleague, depot = self.colleague, self._depot
        try:
            ended = await depot.colleagues.close(colleague.principal, agent_id=colleague.agent_id)
        except LanewayError as problem:
            self.on_failed(problem)
            return
        depot.counters.sessions_ended += 1
        self._trips.brought.add(request)
        self._marking.add(inbox, (request,))
        await self._marking.run()
        depot.note("mail_shutdown", colleague, (request,), outcome=ended.status)
        answer = frames.approval(request, colleague.identity, depot.now())
        try:
            await asyncio.to_thread(check_may_act_as, depot.membership.places, inbox.team, inbox.agent)
            message = draft(colleague.identity, answer, team=inbox.team, summary="shutdown approved")
            await asyncio.to_thread(depot.post.send, message, Address(LEAD, inbox.team))
        except StoreError as problem:
            log.warning("The lead of %s was not told that %s ended: %s", inbox.team, inbox.agent, problem)

    async def _leave(self) -> None:
        self._has_left = True
        self.unread = 0
        colleague = self.colleague
        colleague.session.unsubscribe(self._trips)
        try:
            await self._depot.membership.leave(colleague.identity, self)
        except StoreError as problem:
            log.warning("%s stays in its team's roster: %s", colleague.identity, problem)

    # ── telling ────────────────────────────────────────────────────────────

    def _tell_limit(self) -> None:
        self._notice(
            "limit",
            f"{self.colleague.identity} has had {self._depot.rules.turns_per_hour} mail turns in one hour, "
            f"and {self.unread} unread messages wait. Raise mail_turns_per_hour if that is too few.",
        )

    def _notice(self, kind: NoticeKind, text: str) -> None:
        """Once, until it is over."""
        if kind in self._told:
            return
        self._told.add(kind)
        log.warning("%s", text)
        colleague = self.colleague
        self._depot.colleagues.note(f"mail_{kind}", colleague, outcome=text)
        self._depot.tell(Notice(colleague.agent_id, colleague.identity, kind, text))
