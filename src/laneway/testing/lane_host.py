"""A host for a lane in tests: keeps all that the lane tells, and checks each turn against the contract.

`laneway.testing.lane_kit` uses it; a test of one lane's own behaviour can, too.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeVar

from laneway.core.model import Accepted, Asked, Event, Text, TurnDone, TurnStarted, Withdrawn
from laneway.lanes.contract import Lane, LaneSummary, LaneTurn

E = TypeVar("E", bound=Event)


class HeardLane:
    """A lane and all that it has told."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.events: list[Event] = []
        self._told = asyncio.Event()
        self._tickets = 0
        self._begun_at = 0
        """Of the events: those before are of earlier turns."""

    def on_event(self, event: Event) -> None:
        self.events.append(event)
        self._told.set()

    def begin(self, text: str, context: str = "", *, command: str = "", images: tuple[Path, ...] = ()) -> str:
        self._tickets += 1
        self._begun_at = len(self.events)
        ticket = f"ticket-{self._tickets}"
        self.lane.begin(LaneTurn(ticket=ticket, text=text, context=context, command=command, images=images))
        return ticket

    async def wait(self, kind: type[E]) -> E:
        """The first event of this kind in the latest turn."""
        while True:
            found = [event for event in self.turn() if isinstance(event, kind)]
            if found:
                return found[0]
            self._told.clear()
            await self._told.wait()

    def turn(self) -> list[Event]:
        """The events of the latest turn, from its start on; what is told before that are notices."""
        events = self.events[self._begun_at :]
        starts = [index for index, event in enumerate(events) if isinstance(event, TurnStarted)]
        return events[starts[0] :] if starts else []

    def only(self, kind: type[E]) -> list[E]:
        return [event for event in self.turn() if isinstance(event, kind)]

    async def play(
        self, text: str, context: str = "", *, command: str = "", images: tuple[Path, ...] = ()
    ) -> TurnDone:
        ticket = self.begin(text, context, command=command, images=images)
        return await self.ended(ticket)

    async def ended(self, ticket: str) -> TurnDone:
        """The end of the turn, whose events are as the contract says."""
        done = await self.wait(TurnDone)
        events = self.turn()
        (started,) = self.only(TurnStarted)
        assert started.ticket == ticket, "TurnStarted names another ticket"
        assert self.only(TurnDone) == [done], "a turn has several ends"
        late = [each for each in events[events.index(done) + 1 :] if hasattr(each, "turn_id")]
        assert late == [], "TurnDone is not the last event of its turn"
        assert done.turn_id == started.turn_id, "TurnDone is of another turn"
        turn_ids = {each.turn_id for each in self.only(Text)}
        turn_ids |= {each.turn_id for each in self.only(Accepted)}
        turn_ids |= {each.turn_id for each in self.only(LaneSummary)}
        assert turn_ids <= {done.turn_id}, "an event of another turn"
        asked = {each.question.question_id for each in self.only(Asked)}
        withdrawn = {each.question_id for each in self.only(Withdrawn)}
        assert withdrawn == asked, "not every Asked has its Withdrawn before the end"
        if done.status == "completed":
            tickets = [each.client_id or ticket for each in self.only(Accepted)]
            assert ticket in tickets, "the turn has ended well, and its input was never accepted"
        if done.status == "failed":
            assert done.failure is not None, "a failed turn does not say why"
            assert done.failure.message, "a failed turn does not say why"
        return done

    @property
    def words(self) -> str:
        return "".join(event.text for event in self.only(Text))
