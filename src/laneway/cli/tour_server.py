"""A server of Laneway's that the tour starts on a scripted model, with the JSON-RPC peer that talks to it."""

from __future__ import annotations

import sys

from laneway.base.errors import WireBroken
from laneway.wire.child import Child
from laneway.wire.peer import OnNotification, Peer
from laneway.wire.service import OnRequest


class TourServer:
    """`laneway COMMAND --rehearse` as a child process."""

    def __init__(
        self, command: str, role: str, on_request: OnRequest, on_notification: OnNotification
    ) -> None:
        """`role` is what it is for its client, in the error that tells of its end."""
        self._command = command
        self._role = role
        self._child: Child | None = None
        self.peer = Peer(self._write, on_request=on_request, on_notification=on_notification)

    async def open(self, *flags: str) -> None:
        self._child = await Child.spawn(
            [sys.executable, "-m", "laneway", self._command, "--rehearse", *flags],
            on_stdout=self.peer.feed,
            on_end=lambda how: self.peer.feed_eof(WireBroken(f"The {self._role} ended: {how}")),
        )

    async def aclose(self) -> None:
        await self.peer.aclose()
        if self._child is not None:
            await self._child.stop()

    def _write(self, data: bytes) -> None:
        if self._child is not None:
            self._child.write(data)
