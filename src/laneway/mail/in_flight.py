"""Mail that is being delivered to one session: from the request for a turn until Codex has recorded it.

Learns of both from the session's events. Recorded mail is passed on to be marked as read; mail that was
not recorded, for whatever reason, has not been delivered. Belongs to a `Carrier`, which decides what is sent.
"""

from __future__ import annotations

from typing import Protocol

from laneway.base.errors import LanewayError, NoTurn
from laneway.base.ids import new_id
from laneway.core.model import Accepted, Event, TurnStarted
from laneway.core.named.session import NamedSession
from laneway.core.ports import TextPart
from laneway.core.turn import Turn, TurnResult
from laneway.mail.entries import Message
from laneway.mail.inbox import Inbox
from laneway.mail.pace import Pace
from laneway.mail.shared import MailShared, MemberMemory


class DeliveryOwner(Protocol):
    """The owner of the deliveries, which learns how they go."""

    def on_begun(self) -> None:
        """A turn of the session has begun, whoever started it."""

    def on_recorded(self, inbox: Inbox, messages: tuple[Message, ...]) -> None: ...

    def on_failed(self, why: TurnResult | LanewayError) -> None:
        """It was not delivered, and not because a client's turn came first."""

    def look_again(self) -> None: ...


class Delivery:
    """Messages that were sent to Codex together."""

    __slots__ = ("began_at", "inbox", "is_withdrawn", "messages", "turn", "turn_id", "written_at")

    def __init__(
        self, inbox: Inbox, messages: tuple[Message, ...], began_at: float, written_at: float | None = None
    ) -> None:
        self.inbox = inbox
        self.messages = messages
        self.began_at = began_at
        self.written_at = written_at
        """When its inbox was written, if the session has been idle since."""
        self.turn: Turn | None = None
        """None for what was added to a running turn."""
        self.turn_id: str | None = None
        self.is_withdrawn = False


class Deliveries:
    """All deliveries of one session that are not settled yet."""

    def __init__(self, named: NamedSession, shared: MailShared, sender: DeliveryOwner) -> None:
        self.pace = Pace()
        self.delivered = MemberMemory(shared.delivered, named.identity)
        self.lost = 0
        """Always 0: we read the session's events as they come (the `Reader` port)."""
        self._named = named
        self._shared = shared
        self._sender = sender
        self._attempted = MemberMemory(shared.attempted, named.identity)
        self._in_flight: dict[str, Delivery] = {}
        self._turn_id: str | None = None

    @property
    def pending_keys(self) -> frozenset[str]:
        """The keys of messages that are neither recorded nor given up."""
        return frozenset(
            key for delivery in self._in_flight.values() for each in delivery.messages for key in each.key
        )

    # ── sending ────────────────────────────────────────────────────────────

    def begin_turn(
        self, inbox: Inbox, messages: tuple[Message, ...], prompt: str, written_at: float | None
    ) -> None:
        """Request a turn with these messages; raises what the session raises."""
        delivery = Delivery(inbox, messages, self._shared.clock.now(), written_at)
        turn = self._shared.sessions.say(self._named, prompt, source="mail", kind="mail", events=False)
        delivery.turn = turn
        self._track(turn.ticket, delivery)
        turn.on_settled(lambda end: self._settled(turn.ticket, delivery, end))

    async def steer(self, inbox: Inbox, messages: tuple[Message, ...], prompt: str) -> None:
        """Add these messages to the running turn."""
        delivery = Delivery(inbox, messages, self._shared.clock.now())
        delivery.turn_id = self._turn_id
        ticket = new_id("mail")
        self._track(ticket, delivery)
        try:
            await self._named.session.steer((TextPart(prompt),), ticket=ticket)
            self._shared.counters.steers += 1
        except LanewayError as problem:
            if self._in_flight.pop(ticket, None) is not None:
                self.pace.take_back(delivery.began_at)
                if not isinstance(
                    problem, NoTurn
                ):  # else a turn begins or has just ended, and an event tells us
                    self._sender.on_failed(problem)

    def _track(self, ticket: str, delivery: Delivery) -> None:
        self._in_flight[ticket] = delivery
        self.pace.begin(delivery.began_at)
        self._shared.counters.redelivered += sum(
            self._attempted.has(message) for message in delivery.messages
        )
        for message in delivery.messages:
            self._attempted.add(message)

    # ── the session's events (the `Reader` port) ───────────────────────────

    def push(self, event: Event) -> None:
        kind = type(event)  # called for every piece of text: no more than this for most
        if kind is TurnStarted:
            self._on_started(event)  # type: ignore[arg-type]
        elif kind is Accepted:
            self._on_accepted(event)  # type: ignore[arg-type]

    def close(self) -> None:
        """Nothing to do: the postman tells the carrier that the session is over."""

    def _on_started(self, event: TurnStarted) -> None:
        self._turn_id = event.turn_id
        own = self._in_flight.get(event.ticket or "")
        if own is not None:
            own.turn_id = event.turn_id
            self._shared.counters.turns += 1
            if own.written_at is not None:
                self._shared.counters.record_latency(
                    max(0.0, self._shared.now().timestamp() - own.written_at)
                )
        for delivery in self._in_flight.values():
            if delivery.turn is not None and delivery.turn_id is None:
                # A client's turn came first, and may read the mail by a tool: request again when it is over.
                delivery.is_withdrawn = True
                delivery.turn.cancel()
        self._sender.on_begun()

    def _on_accepted(self, event: Accepted) -> None:
        ticket = event.client_id
        if ticket is None:  # an older Codex does not say
            ticket = next(
                (t for t, delivery in self._in_flight.items() if delivery.turn_id == event.turn_id), None
            )
        delivery = self._in_flight.pop(ticket or "", None)
        if delivery is None:
            return
        self.pace.succeed()
        self._shared.counters.delivered += len(delivery.messages)
        for message in delivery.messages:
            self.delivered.add(message)
            self._attempted.drop(message)  # it is not tried again
        self._shared.note("mail_delivered", self._named, delivery.messages, turn_id=event.turn_id)
        self._sender.on_recorded(delivery.inbox, delivery.messages)

    def _settled(self, ticket: str, delivery: Delivery, end: TurnResult | LanewayError) -> None:
        if self._in_flight.pop(ticket, None) is None:
            return  # recorded: how the turn ends does not matter to the mail
        if delivery.is_withdrawn:
            self.pace.take_back(delivery.began_at)
        else:
            self._sender.on_failed(end)
        self._sender.look_again()

    def on_idle(self) -> None:
        """No turn runs: what was added to one and not recorded is sent again."""
        self._turn_id = None
        for ticket, delivery in list(self._in_flight.items()):
            if delivery.turn is None:
                del self._in_flight[ticket]
                self._shared.counters.failed += 1
