"""The ports of the chat front end: `View` of a platform, `LaneFactory`, and what a lane's host offers beyond.

The store's port is in `laneway.core.conversations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from laneway.doors.chat.outputs import Shown
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
