"""The port of a lane to its engine (`LaneEngine`), and what is particular to the lanes of one engine."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from laneway.core.hub import Hub
from laneway.core.offers import Offers


class LaneEngine(Protocol):
    """An engine that the lanes of several conversations share. It runs while one of them holds it."""

    @property
    def offers(self) -> Offers:
        """What it can do. Reading this starts nothing."""
        ...

    @property
    def holders(self) -> int: ...

    async def problem(self) -> str | None:
        """Why it cannot be used, in one sentence with the remedy; none if it can. Asks no model."""
        ...

    async def acquire(self) -> Hub:
        """The hub that its sessions are opened on; `release` it once. Raises what keeps it from opening."""
        ...

    async def release(self) -> None:
        """After the last one the engine ends, with all of its processes."""
        ...


class LaneKind(msgspec.Struct, frozen=True, kw_only=True):
    """One engine as a lane. What is not set is not sent, so the user's own configuration applies."""

    name: str
    """Its command, without the slash."""
    description: str
    login: str
    """Told when nobody is logged in: a sentence with the remedy."""
    model: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None
    config: dict[str, Any] = {}
    """Overrides of the engine's own configuration."""
    instructions: str | None = None
    """Added to the engine's own."""
    resumes: bool = True
    """Whether its threads outlive the process of the engine."""
    delegates: bool = False
    """Whether its model gets tools to give work to other lanes."""

    @property
    def usage(self) -> str:
        return f"Usage: /{self.name} <task>"
