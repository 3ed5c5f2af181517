"""Mail becomes turns: one carrier for each live session, the watch on their inboxes, and the rounds.

`async with Postman(…) as postman:` around whatever serves clients. Sessions join the team when they
open and leave it when they close, or when this ends. A change of an inbox is heard at once, and
looked for every few seconds in any case.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Literal

import msgspec

from laneway.base.errors import StoreError
from laneway.base.settings import Settings
from laneway.core.background import Chores, Drain
from laneway.core.colleague import Colleague
from laneway.core.colleagues import Colleagues
from laneway.core.ports import Clock
from laneway.mail import watch
from laneway.mail.carrier import Carrier
from laneway.mail.delivery import Rules
from laneway.mail.depot import Depot, NewMail, Notice
from laneway.mail.membership import Membership
from laneway.mail.metrics import Metrics
from laneway.mail.post import Post
from laneway.store.stamps import Now, utc_now

log = logging.getLogger(__name__)

POLL_S = 5.0
"""The seed's figure: the longest that mail waits if nothing is heard."""
END_S = 5.0
"""For all sessions to leave the team. Whom a roster still has after that, the next Laneway removes."""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """How mail is to be handled here."""

    rules: Rules = Rules()
    auto: bool = True
    per_session: Mapping[str, bool] = {}
    """`auto` for single sessions, by agent id."""
    poll_s: float = POLL_S

    @classmethod
    def of(cls, settings: Settings) -> Orders:
        return cls(
            rules=Rules(
                max_messages=settings.max_mail_messages,
                max_chars=settings.max_mail_message_length,
                turns_per_hour=settings.mail_turns_per_hour,
                may_steer=settings.mail_steer,
                allow=None if settings.mail_allow is None else frozenset(settings.mail_allow),
                deny=frozenset(settings.mail_deny),
            ),
            auto=settings.auto_mail,
            per_session=settings.per_thread_auto_mail,
            poll_s=settings.mail_poll_interval_ms / 1000,
        )


Watcher = Callable[[watch.OnMail, watch.OnMoved, Clock, Chores], watch.Watch]


class Postman:
    def __init__(
        self,
        colleagues: Colleagues,
        clock: Clock,
        membership: Membership,
        post: Post,
        orders: Orders = Orders(),  # noqa: B008  frozen
        *,
        now: Now = utc_now,
        watcher: Watcher = watch.watch,
    ) -> None:
        self.on_mail: list[Callable[[NewMail], None]] = []
        """Told when something comes for a session. Must not wait."""
        self.on_notice: list[Callable[[Notice], None]] = []
        """Told what a person should know. Must not wait."""
        self._colleagues = colleagues
        self._clock = clock
        self._membership = membership
        self._orders = orders
        self._watcher = watcher
        self._switched: dict[str, bool] = {}
        self._carriers: dict[str, Carrier] = {}
        self._chores = Chores()
        self._depot = Depot(
            colleagues,
            clock,
            membership,
            post,
            orders.rules,
            chores=self._chores,
            now=now,
            is_auto=self.is_auto,
            tell=self._tell,
        )
        self._round = Drain(self._go_round, self._chores, "mail round", linger_s=0)
        self._spool = Drain(self._empty_spool, self._chores, "mail spool", linger_s=0)
        self._watch: watch.Watch | None = None
        self._stop_polling: Callable[[], None] = lambda: None
        self._has_failed = False

    async def __aenter__(self) -> Postman:
        self._watch = self._watcher(self._on_mail, self._round.stir, self._clock, self._chores)
        self._colleagues.pending_mail = self.pending
        self._colleagues.listeners.append(self._hear)
        for colleague in self._colleagues.live():
            self._hear(colleague, "opened")
        self._poll()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._colleagues.listeners.remove(self._hear)
        self._stop_polling()
        for carrier in self._carriers.values():
            carrier.finish()
        watching, self._watch = self._watch, None
        await self._round.wait()  # it may be aiming the watch
        if watching is not None:
            watching.close()
        try:
            async with asyncio.timeout(END_S):
                await self._chores.wait()
        except TimeoutError:
            log.warning("Some sessions stay in the team's roster: somebody holds it")

    # ── what others ask ────────────────────────────────────────────────────

    @property
    def team(self) -> str:
        """The team that mail goes through now."""
        return self._membership.team

    @property
    def metrics(self) -> Metrics:
        return self._depot.counters.snapshot()

    def pending(self, agent_id: str | None = None) -> int:
        """Unread messages of one live session, or of all."""
        return sum(c.unread for a, c in self._carriers.items() if agent_id in (None, a))

    def is_auto(self, agent_id: str) -> bool:
        """Whether mail may start turns of this session."""
        setting = self._orders.per_session.get(agent_id, self._orders.auto)
        return self._switched.get(agent_id, setting)

    def set_auto(self, agent_id: str, *, is_on: bool) -> None:
        """Until the session is closed. What waits is brought at once when it is switched on."""
        self._switched[agent_id] = is_on
        carrier = self._carriers.get(agent_id)
        if carrier is not None:
            carrier.look_again()

    # ── what happens ───────────────────────────────────────────────────────

    def _hear(self, colleague: Colleague, what: Literal["opened", "busy", "idle", "closed"]) -> None:
        carrier = self._carriers.get(colleague.agent_id)
        if what == "opened":
            self._carriers[colleague.agent_id] = Carrier(colleague, self._depot)
        elif carrier is None:
            return
        elif what == "idle":
            carrier.on_idle()
        elif what == "closed":
            del self._carriers[colleague.agent_id]
            self._switched.pop(colleague.agent_id, None)
            carrier.finish()

    def _on_mail(self, file_name: str | None) -> None:
        for carrier in self._carriers.values():
            if file_name in (None, carrier.file_name):
                carrier.stir()

    def _poll(self) -> None:
        self._round.stir()
        self._spool.stir()
        self._stop_polling = self._clock.after(self._orders.poll_s, self._poll)

    async def _go_round(self) -> None:
        """Where the team is, whether its inboxes are watched, and whether anything was not heard."""
        try:
            await self._membership.follow()
            self._has_failed = False
        except StoreError as problem:
            if not self._has_failed:
                log.warning("The team of the mail is not known: %s", problem)
            self._has_failed = True
        if self._watch is not None:
            membership = self._membership
            await asyncio.to_thread(self._watch.aim, membership.places.inboxes(membership.team))
        for carrier in list(self._carriers.values()):
            carrier.poll()

    async def _empty_spool(self) -> None:
        """Hand over what our own sessions sent while somebody held an inbox."""
        post, counters = self._depot.post, self._depot.counters
        try:
            if not await asyncio.to_thread(post.has_waiting):
                counters.spooled = 0
                return
            drained = await asyncio.to_thread(post.drain)
        except StoreError as problem:
            log.warning("Mail that waits could not be delivered: %s", problem)
            return
        counters.spooled = drained.waiting
        counters.unspooled += len(drained.delivered)
        counters.given_up += len(drained.given_up)

    def _tell(self, what: NewMail | Notice) -> None:
        if isinstance(what, NewMail):
            for hear_mail in self.on_mail:
                hear_mail(what)
        else:
            for hear_notice in self.on_notice:
                hear_notice(what)
