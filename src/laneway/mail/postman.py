"""Turns mail into turns of sessions: one `Carrier` per live session, a watch on the inboxes, and polling.

`async with Postman(…) as postman:` around the server. Sessions join the team when they open and leave
it when they close, or when this ends. A change of an inbox is noticed at once, and found by polling
every few seconds in any case.
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
from laneway.core.background import Coalescer, TaskSet
from laneway.core.named.session import NamedSession
from laneway.core.named.sessions import NamedSessions
from laneway.core.ports import Clock
from laneway.mail import watch
from laneway.mail.carrier import Carrier
from laneway.mail.delivery import Rules
from laneway.mail.membership import Membership
from laneway.mail.metrics import Metrics
from laneway.mail.post import Post
from laneway.mail.shared import MailNotice, MailShared, NewMail
from laneway.store.stamps import Now, utc_now

log = logging.getLogger(__name__)

POLL_S = 5.0
"""The longest that mail waits if the watch notices nothing: the figure of the original specification."""
END_S = 5.0
"""For all sessions to leave the team. The next Laneway removes those still in the roster after that."""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """How mail is to be handled, by the settings."""

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


Watcher = Callable[[watch.OnMail, watch.OnMoved, Clock, TaskSet], watch.InboxWatch]


class Postman:
    """The carriers of all live sessions, as an async context manager."""

    def __init__(
        self,
        sessions: NamedSessions,
        clock: Clock,
        membership: Membership,
        post: Post,
        orders: Orders = Orders(),  # noqa: B008  frozen
        *,
        now: Now = utc_now,
        watcher: Watcher = watch.watch,
    ) -> None:
        self.on_mail: list[Callable[[NewMail], None]] = []
        """Called when mail arrives for a session. Must not block."""
        self.on_notice: list[Callable[[MailNotice], None]] = []
        """Called with what a person should know. Must not block."""
        self._sessions = sessions
        self._clock = clock
        self._membership = membership
        self._orders = orders
        self._watcher = watcher
        self._auto_switches: dict[str, bool] = {}
        self._carriers: dict[str, Carrier] = {}
        self._tasks = TaskSet()
        self._shared = MailShared(
            sessions,
            clock,
            membership,
            post,
            orders.rules,
            tasks=self._tasks,
            now=now,
            is_auto=self.is_auto,
            tell=self._tell,
        )
        self._round = Coalescer(self._run_round, self._tasks, "mail round", linger_s=0)
        self._spool = Coalescer(self._empty_spool, self._tasks, "mail spool", linger_s=0)
        self._watch: watch.InboxWatch | None = None
        self._stop_polling: Callable[[], None] = lambda: None
        self._has_failed = False

    async def __aenter__(self) -> Postman:
        self._watch = self._watcher(self._on_mail, self._round.stir, self._clock, self._tasks)
        self._sessions.pending_mail = self.pending
        self._membership.on_founded = self._round.stir  # the watch sees no folder this far up
        self._sessions.listeners.append(self._on_session)
        for session in self._sessions.live():
            self._on_session(session, "opened")
        self._poll()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sessions.listeners.remove(self._on_session)
        self._stop_polling()
        for carrier in self._carriers.values():
            carrier.finish()
        watching, self._watch = self._watch, None
        await self._round.wait()  # it may be using the watch
        if watching is not None:
            watching.close()
        try:
            async with asyncio.timeout(END_S):
                await self._tasks.wait()
        except TimeoutError:
            log.warning("Some sessions stay in the team's roster: somebody holds it")

    # ── status and switches ────────────────────────────────────────────────

    @property
    def team(self) -> str:
        """The team that mail goes through now."""
        return self._membership.team

    @property
    def metrics(self) -> Metrics:
        return self._shared.counters.snapshot()

    def pending(self, agent_id: str | None = None) -> int:
        """Unread messages of one live session, or of all."""
        return sum(c.unread for a, c in self._carriers.items() if agent_id in (None, a))

    def is_auto(self, agent_id: str) -> bool:
        """Whether mail may start turns of this session."""
        setting = self._orders.per_session.get(agent_id, self._orders.auto)
        return self._auto_switches.get(agent_id, setting)

    def set_auto(self, agent_id: str, *, is_on: bool) -> None:
        """Holds until the session is closed. Mail that waits is delivered at once when this turns it on."""
        self._auto_switches[agent_id] = is_on
        carrier = self._carriers.get(agent_id)
        if carrier is not None:
            carrier.look_again()

    # ── events and rounds ──────────────────────────────────────────────────

    def _on_session(self, session: NamedSession, what: Literal["opened", "busy", "idle", "closed"]) -> None:
        carrier = self._carriers.get(session.agent_id)
        if what == "opened":
            self._carriers[session.agent_id] = Carrier(session, self._shared)
        elif carrier is None:
            return
        elif what == "idle":
            carrier.on_idle()
        elif what == "closed":
            del self._carriers[session.agent_id]
            self._auto_switches.pop(session.agent_id, None)
            carrier.finish()

    def _on_mail(self, file_name: str | None) -> None:
        for carrier in self._carriers.values():
            if file_name in (None, carrier.file_name):
                carrier.stir()

    def _poll(self) -> None:
        self._round.stir()
        self._spool.stir()
        self._stop_polling = self._clock.after(self._orders.poll_s, self._poll)

    async def _run_round(self) -> None:
        """Check which team is ours, watch its inboxes, and look for mail that the watch missed."""
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
        """Deliver what our own sessions sent while another program had locked an inbox."""
        post, counters = self._shared.post, self._shared.counters
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

    def _tell(self, what: NewMail | MailNotice) -> None:
        if isinstance(what, NewMail):
            for on_mail in self.on_mail:
                on_mail(what)
        else:
            for on_notice in self.on_notice:
                on_notice(what)
