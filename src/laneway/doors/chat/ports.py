"""The ports of the chat front end: `Chat` and `View` for platforms, `LaneFactory`, `DelegatingHost`.

A platform gets a `Chat` and gives it a `View` for each place that it shows. The store's port is in
`laneway.core.conversations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from laneway.core.conversations import ConversationRecord
from laneway.doors.chat.messages import Incoming, Place, Tap, TapResult
from laneway.doors.chat.outputs import QuestionShown, Shown, StatusNow
from laneway.lanes.contract import Lane, LaneHost


class View(Protocol):
    """One place where a conversation is shown. Called on the event loop; it returns at once, never raises.

    Outputs come in the order of their numbers. A view that cannot keep up drops what is not stored, and
    reads the rest again from the store by its number.
    """

    def show(self, shown: Shown) -> None: ...

    def on_moved(self, conversation_id: str) -> None:
        """The place shows another conversation from now on; its outputs follow."""
        ...


@runtime_checkable
class DelegatingHost(LaneHost, Protocol):
    """A host whose lane may give work to other lanes of the conversation by itself."""

    @property
    def delegates(self) -> Mapping[str, str]:
        """The other lanes by name, each with its one-line description."""
        ...

    async def delegate(self, lane: str, task: str) -> str:
        """Run a turn of another lane within the turn that runs; returns what it did, as text for a model.

        Shown in the conversation as it happens. If the call is cancelled, that turn is interrupted.
        """
        ...


class LaneFactory(Protocol):
    """Makes the lanes of one conversation."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of all lanes that there are, in the order of lists."""
        ...

    @property
    def problems(self) -> tuple[str, ...]:
        """Plugins that could not be loaded, a sentence each."""
        ...

    def make(self, name: str, cwd: Path) -> Lane:
        """A lane that is not open yet. Raises `KeyError` for a name that is not there."""
        ...


class ChatCommand(msgspec.Struct, frozen=True):
    """A command that can be typed in a conversation, for lists and completion."""

    name: str
    """Without the slash."""
    description: str
    usage: str = ""
    kind: str = "control"
    """`control`, `lane`, or `engine` for one of a lane's own engine."""
    lane: str | None = None
    """Of kind `engine`: the lane that it would go to now."""


class PartialText(msgspec.Struct, frozen=True, kw_only=True):
    """A text that is being written, as far as it has come: for views that missed its beginning."""

    lane: str
    ticket: str
    part: str
    text: str
    kind: str = "text"


class ChatState(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as of now: for whoever begins to show it."""

    record: ConversationRecord
    last_number: int
    """Of its outputs so far."""
    status: StatusNow
    questions: tuple[QuestionShown, ...] = ()
    """Open ones; a view that joins late asks these again, and no others."""
    texts: tuple[PartialText, ...] = ()
    """What lanes are writing."""


class Chat(Protocol):
    """All conversations of one process, as platforms use them. Called on the event loop.

    Raises `ConversationHeld` for one that another process holds, `ConversationUnknown` for one that is not
    there, `StoreError` where nothing can be stored.
    """

    async def join(self, place: Place, view: View, conversation_id: str | None = None) -> ChatState:
        """Show a conversation in a place from now on: the given one, else the place's, else a new one.

        Everything with a higher number than `ChatState.last_number` reaches the view. A place has one view;
        a later one takes its place.
        """
        ...

    def leave(self, place: Place, view: View) -> None:
        """The view shows nothing any more. The place keeps its conversation, and its lanes work on."""
        ...

    async def take(self, message: Incoming) -> int | None:
        """Store a message; it is acted upon next. Returns its id, none for one that was taken before.

        When this returns, the message cannot get lost any more. What becomes of it is told by
        `InputReceipt`s; the place needs no view.
        """
        ...

    async def tap(self, tap: Tap) -> TapResult: ...

    async def state(self, conversation_id: str) -> ChatState: ...

    async def outputs(self, conversation_id: str, after: int, limit: int = 500) -> list[Shown]:
        """Stored outputs with higher numbers, in order."""
        ...

    async def latest(self, limit: int = 50) -> list[ConversationRecord]:
        """The conversations that were used last, the newest first."""
        ...

    def commands(self, conversation_id: str) -> list[ChatCommand]: ...

    async def wait_ready(self, conversation_id: str) -> bool:
        """Wait until a next line of a pipe makes sense: no lane is active and nothing waits, or a question is
        open. Whether a question is open."""
        ...

    async def decline_questions(self, conversation_id: str) -> None:
        """Nobody can answer any more: all open questions are declined, and later ones at once."""
        ...

    async def quit(self, conversation_id: str) -> None:
        """Stop every lane of a conversation; its threads can be resumed."""
        ...
