"""The contract of a lane (`Lane`), an agent that takes turns in a conversation, and of its host.

Public, and the richer of two: a lane tells what it does as events (`laneway.core.model`), asks questions,
can be steered, interrupted and resumed. Engines are lanes by it; a lane of the simpler
`laneway.lanes.protocol.LanePlugin` becomes one by `laneway.lanes.adapter`. `laneway.testing.lane_kit`
checks any lane against what is written here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from laneway.core.model import Answer, Event


class LaneCommand(msgspec.Struct, frozen=True):
    """A command of the lane's own engine, such as `/review`; its name has no slash."""

    name: str
    description: str = ""


class LaneAbilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a lane can do beyond plain turns. The defaults say no; more may be known after `Lane.open`."""

    steers: bool = False
    """Takes words into a turn that runs."""
    takes_images: bool = False
    resumes: bool = False
    """Can go on with an earlier conversation of its own, also after a restart."""
    commands: tuple[LaneCommand, ...] = ()


class LaneTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What a lane is to do in one turn, or what is put into the turn that runs."""

    ticket: str
    """Names this turn: its `TurnStarted` and its `Accepted` carry it."""
    text: str
    images: tuple[Path, ...] = ()
    context: str = ""
    """What other lanes have done since: shown to the model in front of the text, as a block of its own."""
    command: str = ""
    """One of `LaneAbilities.commands`, with the text as its arguments."""


class LaneSummary(Event, frozen=True, tag="lane_summary"):
    """The lane's own summary of its turn, before the `TurnDone`: other lanes are told this."""

    turn_id: str
    summary: str


class LaneFile(Event, frozen=True, tag="lane_file"):
    """A file that the lane sends to the people of the conversation, in its turn."""

    turn_id: str
    path: str
    """Absolute."""
    caption: str = ""
    is_approved: bool = False
    """Whether a person was asked, and said yes."""


class LaneHost(Protocol):
    """Hears a lane. Called on the event loop; it returns at once and never raises."""

    def on_event(self, event: Event) -> None: ...


@runtime_checkable
class Lane(Protocol):
    """An agent that takes turns in one conversation.

    Every `begin` leads to exactly one `TurnStarted` and then exactly one `TurnDone`, which is the last
    event with the turn's id: also when it is interrupted, when the engine dies, when the lane is closed.
    A turn that fails is a `TurnDone` with a `Failure`; the next `begin` starts whatever has died again.
    """

    @property
    def name(self) -> str:
        """Its command, without the slash."""
        ...

    @property
    def usage(self) -> str:
        """Shown for the command alone: `Usage: /codex <task>`."""
        ...

    @property
    def description(self) -> str:
        """One line, for lists."""
        ...

    @property
    def abilities(self) -> LaneAbilities: ...

    @property
    def thread_id(self) -> str | None:
        """What `open` takes as `resume` to go on with this conversation; none if that is not possible yet."""
        ...

    async def probe(self) -> str | None:
        """Why the lane cannot be used, in one sentence with the remedy; none if it can.

        Asks no model, changes nothing, and may be called before `open`.
        """
        ...

    async def open(self, cwd: Path, host: LaneHost, *, resume: str | None = None) -> None:
        """Called once, before the first `begin`. It may start a process, or leave that to the first turn."""
        ...

    def begin(self, turn: LaneTurn) -> None:
        """Begin a turn; what happens is told to the host. Only called while no turn runs.

        Its first events may be told before this returns. Events without a turn's id may come at any time.
        `Accepted` is told as soon as the turn's input (its context, too) would survive the end of the lane.
        Every `Asked` is followed by a `Withdrawn` before the `TurnDone`, answered or not.
        """
        ...

    async def steer(self, turn: LaneTurn) -> bool:
        """Put words into the turn that runs. False: they were not taken, and never will be."""
        ...

    async def interrupt(self) -> None:
        """Ask the turn that runs to end; its `TurnDone` says that it has. Without a turn: nothing."""
        ...

    def answer(self, question_id: str, answer: Answer) -> None:
        """Answer an open question. One that is open no more is left alone."""
        ...

    async def close(self) -> None:
        """End the lane and all of its processes, within seconds. May be called twice, or before `open`."""
        ...
