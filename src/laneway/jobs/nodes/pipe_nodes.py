"""The machines of `[laneway.jobs.nodes]`, each behind its command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from laneway.base.errors import LanewayError, UsageError
from laneway.base.plain import code_label
from laneway.jobs.model import Mode
from laneway.jobs.nodes.messages import Hello
from laneway.jobs.nodes.pipe import PipeNode
from laneway.jobs.requests import THIS_NODE

CHOOSE_S = 10.0
"""For a machine to say what it has room for; one that does not is not chosen."""


class PipeNodes:
    """Connected to when they are first needed."""

    def __init__(
        self,
        commands: Mapping[str, str],
        environment: Mapping[str, str],
        free_here: Callable[[Mode], int],
    ) -> None:
        """`free_here`: places for a job on this machine, less those that wait for one. It blocks."""
        self._commands = commands
        self._environment = environment
        self._free_here = free_here
        self._nodes: dict[str, PipeNode] = {}

    async def node(self, name: str) -> PipeNode:
        if name not in self._nodes:
            if name not in self._commands:
                known = ", ".join((THIS_NODE, *self._commands))
                raise UsageError(f"There is no machine {code_label(name)}: jobs.nodes has {known}.")
            self._nodes[name] = PipeNode(name, self._commands[name], self._environment)
        return self._nodes[name]

    async def choose(self, repository: str, mode: Mode) -> str:
        """The one with the most room; this one, if no other has more."""
        asked = await asyncio.gather(*(self._free_places(name, repository, mode) for name in self._commands))
        free = [(await asyncio.to_thread(self._free_here, mode), THIS_NODE)]
        free += [
            (places, name) for name, places in zip(self._commands, asked, strict=True) if places is not None
        ]
        return max(free, key=lambda each: each[0])[1]

    async def _free_places(self, name: str, repository: str, mode: Mode) -> int | None:
        """None if it is out of reach, or has not this repository."""
        try:
            answer = await (await self.node(name)).call("hello", {}, timeout_s=CHOOSE_S)
            hello = msgspec.convert(answer, Hello)
        except (LanewayError, msgspec.ValidationError):
            return None
        return hello.free.get(mode, 0) if repository in hello.repositories else None

    async def close(self) -> None:
        await asyncio.gather(*(node.close() for node in self._nodes.values()))
