"""The ports to other machines: a `Node` answers calls, `Nodes` knows all of them by name.

What a node answers is the same over every transport (`served`, `messages`). A transport carries the calls and
says when it cannot; it starts nothing twice by itself, since every call but `resolve` may be made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from laneway.jobs.model import Mode

CALL_S = 30.0
"""For an answer, beyond the time that the call itself may wait."""
ONCE = frozenset({"resolve"})
"""Calls that are not made again when nobody knows whether they were carried out."""


class Node(Protocol):
    """One other machine."""

    @property
    def name(self) -> str: ...

    async def call(self, method: str, params: Mapping[str, Any], *, timeout_s: float | None = None) -> Any:
        """The answer of `Served.handle` there, as plain data.

        `NodeUnreachable` if it is out of reach, does not answer in time (by default `CALL_S`), or answers
        nonsense. It says so at once while it is known to be out of reach; when to try again is the
        transport's matter. Else whatever `LanewayError` the other side raised, by `messages.error_of`.
        """
        ...

    async def close(self) -> None: ...


class Nodes(Protocol):
    """All other machines that the user's settings name."""

    async def node(self, name: str) -> Node:
        """`UsageError`, which lists those that there are, for an unknown name. Connects to nobody yet."""
        ...

    async def choose(self, repository: str, mode: Mode) -> str:
        """Where a job of this mode starts soonest in this repository: a name, or `local` for this machine."""
        ...

    async def close(self) -> None: ...
