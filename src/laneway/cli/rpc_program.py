"""A program that speaks JSON-RPC on its standard streams, with the peer that talks to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from laneway.base.errors import WireBroken
from laneway.wire.child import Child, Exit
from laneway.wire.peer import OnNotification, Peer
from laneway.wire.service import OnRequest


class RpcProgram:
    """`await program.open(words)`, later `await program.aclose()`, which ends all that it started."""

    def __init__(self, role: str, on_request: OnRequest, on_notification: OnNotification) -> None:
        """`role` is what it is for its client, in the error that tells of its end."""
        self.child: Child | None = None
        self.exit: Exit | None = None
        """How it ended, once it has."""
        self.strange_lines = 0
        """On its standard output, which is for messages alone."""
        self.peer = Peer(
            self._write,
            on_request=on_request,
            on_notification=on_notification,
            on_garbage=self._on_garbage,
        )
        self._role = role

    async def open(
        self, words: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self.child = await Child.spawn(words, on_stdout=self.peer.feed, on_end=self._on_end, env=env, cwd=cwd)

    async def aclose(self) -> None:
        """End it, whatever happened, also when we are cancelled."""
        await self.peer.aclose()
        if self.child is not None:
            await self.child.stop()

    def _write(self, data: bytes) -> None:
        if self.child is not None:
            self.child.write(data)

    def _on_end(self, how: Exit) -> None:
        self.exit = how
        self.peer.feed_eof(WireBroken(f"The {self._role} ended: {how}"))

    def _on_garbage(self, frame: bytes, problem: str) -> None:
        self.strange_lines += 1
