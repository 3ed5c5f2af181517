"""Prompts of ACP 2 that wait until Codex has recorded them, by the ticket they were sent with.

A prompt is answered with the id of its message, which Codex tells when it records the message.
"""

from __future__ import annotations

import asyncio

from laneway.base.errors import RemoteError
from laneway.doors.acp.faults import CANCELLED, fault
from laneway.wire.messages import INTERNAL_ERROR

MessageId = asyncio.Future[str]
"""The id of a prompt's message, set once Codex has recorded the message."""


class PendingPrompts:
    def __init__(self) -> None:
        self.is_serving = False
        """Whether a prompt is being served; it sends the idle state itself when it is done."""
        self._served: MessageId | None = None
        self._waiting: dict[str, MessageId | None] = {}
        """By ticket, the oldest first. None for input that a command or an answer sends to Codex."""

    def begin(self, message_id: MessageId | None) -> None:
        """A prompt is served. None if it is not itself a message to Codex: a command, an answer."""
        self.is_serving = True
        self._served = message_id

    def on_turn(self, ticket: str | None) -> None:
        """A turn has begun; if it has a ticket, the prompt that is served started it."""
        if self.is_serving and ticket is not None:
            self._waiting[ticket] = self._served

    def add(self, ticket: str) -> MessageId:
        """A prompt is put into the running turn."""
        message_id: MessageId = asyncio.get_running_loop().create_future()
        message_id.add_done_callback(_retrieve_exception)
        self._waiting[ticket] = message_id
        return message_id

    def remove(self, ticket: str) -> None:
        self._waiting.pop(ticket, None)

    def is_shown(self, ticket: str | None) -> bool:
        """Whether the client should see a message that Codex has: not what a command sends to Codex."""
        is_own = self.is_serving and self._served is None
        return not is_own or self._waiting.get(self._known(ticket)) is not None

    def on_recorded(self, ticket: str | None, recorded_id: str) -> None:
        """Codex has recorded a message: its prompt gets the id."""
        message_id = self._waiting.pop(self._known(ticket), None)
        if message_id is not None and not message_id.done():
            message_id.set_result(recorded_id)

    def _known(self, ticket: str | None) -> str:
        """An older Codex sends no tickets, but keeps the order."""
        return next(iter(self._waiting), "") if ticket is None else ticket

    def end(self, error: RemoteError | None) -> None:
        """The prompt has been served; prompts that still wait fail with `error`.

        None if the turn goes on, and may still record prompts that were put into it.
        """
        served, self._served = self._served, None
        self.is_serving = False
        if error is None:
            return
        for message_id in (served, *self._waiting.values()):
            if message_id is not None and not message_id.done():
                message_id.set_exception(error)
        self._waiting.clear()


def not_recorded(stop: str) -> RemoteError:
    """The error for a prompt that was not recorded before its turn ended with this stop reason."""
    if stop == "cancelled":
        return fault(CANCELLED, "The prompt was cancelled before it was in the conversation.")
    return fault(INTERNAL_ERROR, "The turn ended before it took this prompt. Send it again.")


def _retrieve_exception(message_id: MessageId) -> None:
    """Mark a failure as seen, so that asyncio does not log it: the request may have been cancelled."""
    if not message_id.cancelled():
        message_id.exception()
