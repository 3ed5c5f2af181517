"""Which prompts wait for Codex to record them, by the tickets under which they were handed over."""

from __future__ import annotations

import asyncio

from laneway.base.errors import RemoteError
from laneway.doors.acp.faults import CANCELLED, INTERNAL_ERROR, fault

Inserted = asyncio.Future[str]
"""The id of a prompt's message, once Codex has recorded it."""


class PendingPrompts:
    def __init__(self) -> None:
        self.is_serving = False
        """Whether a prompt is being served: it tells when all of it is done."""
        self._served: Inserted | None = None
        self._waiting: dict[str, Inserted | None] = {}
        """By ticket, the oldest first. None: what Codex is told because of a command or an answer."""
        self._last_id = ""

    def begin(self, inserted: Inserted | None) -> None:
        """A prompt is served. None: it is no message to Codex, whatever Codex is told because of it."""
        self.is_serving = True
        self._served = inserted

    def turn(self, ticket: str | None) -> None:
        """A turn has begun; by a ticket of ours, it is what the served prompt has led to."""
        if self.is_serving and ticket is not None:
            self._waiting[ticket] = self._served

    def join(self, ticket: str) -> Inserted:
        """A prompt that goes into the running turn."""
        inserted: Inserted = asyncio.get_running_loop().create_future()
        inserted.add_done_callback(_look_at)
        self._waiting[ticket] = inserted
        return inserted

    def leave(self, ticket: str) -> None:
        self._waiting.pop(ticket, None)

    def said(self, message_id: str) -> bool:
        """Codex has a message; whether the client should see it."""
        self._last_id = message_id
        is_own = self.is_serving and self._served is None
        return not is_own or next(iter(self._waiting.values()), None) is not None

    def recorded(self, ticket: str | None) -> None:
        """Codex will not lose it: who sent it is told its id."""
        if ticket is None:  # an older Codex does not say whose it is, but keeps the order
            ticket = next(iter(self._waiting), "")
        inserted = self._waiting.pop(ticket, None)
        if inserted is not None and not inserted.done():
            inserted.set_result(self._last_id)

    def end(self, why: RemoteError | None) -> None:
        """The prompt has been served; whoever still waits was not taken.

        None: its turn goes on, and may still take what was put into it.
        """
        served, self._served = self._served, None
        self.is_serving = False
        if why is None:
            return
        for inserted in (served, *self._waiting.values()):
            if inserted is not None and not inserted.done():
                inserted.set_exception(why)
        self._waiting.clear()


def not_taken(stop: str) -> RemoteError:
    """Why a prompt is refused whose turn came to this end."""
    if stop == "cancelled":
        return fault(CANCELLED, "The prompt was cancelled before it was in the conversation.")
    return fault(INTERNAL_ERROR, "The turn ended before it took this prompt. Send it again.")


def _look_at(inserted: Inserted) -> None:
    """Nobody need wait for it any more: its request was cancelled, or is a prompt of its own now."""
    if not inserted.cancelled():
        inserted.exception()
