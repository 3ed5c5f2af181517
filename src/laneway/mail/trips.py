"""Mail on its way into one session: from the asking for a turn until Codex has recorded it.

Hears of both from the session's events. What is recorded goes to be marked; what is not, for
whatever reason, has simply not been brought. Belongs to a `Carrier`, which decides what goes.
"""

from __future__ import annotations

from typing import Protocol

from laneway.base.errors import LanewayError, NoTurn
from laneway.base.ids import new_id
from laneway.core.colleague import Colleague
from laneway.core.model import Accepted, Event, TurnStarted
from laneway.core.ports import TextPart
from laneway.core.turn import Turn, TurnResult
from laneway.mail.depot import Depot, Recalled
from laneway.mail.entries import Message
from laneway.mail.inbox import Inbox
from laneway.mail.pace import Pace


class Sender(Protocol):
    """Whoever sends mail on its way."""

    def on_begun(self) -> None:
        """A turn runs, somebody's."""

    def on_recorded(self, inbox: Inbox, messages: tuple[Message, ...]) -> None: ...

    def on_failed(self, why: TurnResult | LanewayError) -> None:
        """It was not brought, and not because somebody else came first."""

    def look_again(self) -> None: ...


class Trip:
    __slots__ = ("began_at", "inbox", "is_withdrawn", "messages", "turn", "turn_id", "written_at")

    def __init__(
        self, inbox: Inbox, messages: tuple[Message, ...], began_at: float, written_at: float | None = None
    ) -> None:
        self.inbox = inbox
        self.messages = messages
        self.began_at = began_at
        self.written_at = written_at
        """When its inbox was written, if nothing but us kept it waiting since."""
        self.turn: Turn | None = None
        """None for what was put into somebody's running turn."""
        self.turn_id: str | None = None
        self.is_withdrawn = False


class Trips:
    def __init__(self, colleague: Colleague, depot: Depot, sender: Sender) -> None:
        self.pace = Pace()
        self.brought = Recalled(depot.brought, colleague.identity)
        self.lost = 0
        """Nothing: we read the session's events as they come (the `Reader` port)."""
        self._colleague = colleague
        self._depot = depot
        self._sender = sender
        self._tried = Recalled(depot.tried, colleague.identity)
        self._trips: dict[str, Trip] = {}
        self._turn_id: str | None = None

    @property
    def under_way(self) -> frozenset[str]:
        """The keys of what is neither recorded nor given up."""
        return frozenset(key for trip in self._trips.values() for each in trip.messages for key in each.key)

    # ── setting off ────────────────────────────────────────────────────────

    def begin_turn(
        self, inbox: Inbox, messages: tuple[Message, ...], words: str, written_at: float | None
    ) -> None:
        """Ask for a turn with these; raise what the session says to that."""
        trip = Trip(inbox, messages, self._depot.clock.now(), written_at)
        turn = self._depot.colleagues.say(self._colleague, words, source="mail", kind="mail", events=False)
        trip.turn = turn
        self._set_off(turn.ticket, trip)
        turn.on_settled(lambda end: self._settled(turn.ticket, trip, end))

    async def steer(self, inbox: Inbox, messages: tuple[Message, ...], words: str) -> None:
        """Put these into the turn that is running."""
        trip = Trip(inbox, messages, self._depot.clock.now())
        trip.turn_id = self._turn_id
        ticket = new_id("mail")
        self._set_off(ticket, trip)
        try:
            await self._colleague.session.steer((TextPart(words),), ticket=ticket)
            self._depot.counters.steers += 1
        except LanewayError as problem:
            if self._trips.pop(ticket, None) is not None:
                self.pace.take_back(trip.began_at)
                if not isinstance(problem, NoTurn):  # else one begins or ended just now, and we hear of that
                    self._sender.on_failed(problem)

    def _set_off(self, ticket: str, trip: Trip) -> None:
        self._trips[ticket] = trip
        self.pace.begin(trip.began_at)
        self._depot.counters.redelivered += sum(self._tried.has(message) for message in trip.messages)
        for message in trip.messages:
            self._tried.add(message)

    # ── what Codex tells (the Reader port) ─────────────────────────────────

    def push(self, event: Event) -> None:
        kind = type(event)  # called for every word that Codex says: no more than this for most
        if kind is TurnStarted:
            self._on_started(event)  # type: ignore[arg-type]
        elif kind is Accepted:
            self._on_accepted(event)  # type: ignore[arg-type]

    def close(self) -> None:
        """The session is over; the carrier hears of it, too."""

    def _on_started(self, event: TurnStarted) -> None:
        self._turn_id = event.turn_id
        mine = self._trips.get(event.ticket or "")
        if mine is not None:
            mine.turn_id = event.turn_id
            self._depot.counters.turns += 1
            if mine.written_at is not None:
                self._depot.counters.took(max(0.0, self._depot.now().timestamp() - mine.written_at))
        for trip in self._trips.values():
            if trip.turn is not None and trip.turn_id is None:
                # A client was quicker, and Codex may read its mail in that turn: ask anew when it is over.
                trip.is_withdrawn = True
                trip.turn.cancel()
        self._sender.on_begun()

    def _on_accepted(self, event: Accepted) -> None:
        ticket = event.client_id
        if ticket is None:  # an older Codex does not say
            ticket = next((t for t, trip in self._trips.items() if trip.turn_id == event.turn_id), None)
        trip = self._trips.pop(ticket or "", None)
        if trip is None:
            return
        self.pace.succeed()
        self._depot.counters.delivered += len(trip.messages)
        for message in trip.messages:
            self.brought.add(message)
            self._tried.drop(message)  # it is not tried again
        self._depot.note("mail_delivered", self._colleague, trip.messages, turn_id=event.turn_id)
        self._sender.on_recorded(trip.inbox, trip.messages)

    def _settled(self, ticket: str, trip: Trip, end: TurnResult | LanewayError) -> None:
        if self._trips.pop(ticket, None) is None:
            return  # recorded: how the turn went is no longer the mail's business
        if trip.is_withdrawn:
            self.pace.take_back(trip.began_at)
        else:
            self._sender.on_failed(end)
        self._sender.look_again()

    def on_idle(self) -> None:
        """No turn runs: what was put into one and not taken comes again."""
        self._turn_id = None
        for ticket, trip in list(self._trips.items()):
            if trip.turn is None:
                del self._trips[ticket]
                self._depot.counters.failed += 1
