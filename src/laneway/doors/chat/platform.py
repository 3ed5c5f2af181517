"""The port of a chat platform: a terminal, a web page, a bot. It shows conversations, and sends messages.

Its configuration (tokens, who may speak) is its constructor's; the conversations come with `run`. What runs
the platforms is `laneway.app.chat`.
"""

from __future__ import annotations

from typing import Protocol

from laneway.doors.chat.ports import Chat


class ChatPlatform(Protocol):
    """One platform, run once for each process."""

    @property
    def name(self) -> str:
        """As in `Place.platform` and in `laneway chat --platform NAME`."""
        ...

    async def run(self, chat: Chat) -> int:
        """Show conversations until the user leaves, or for ever; returns the exit code of the process.

        Cancelled when the process ends: the platform closes what it has opened. The conversations are
        closed by whoever runs it, afterwards.
        """
        ...
