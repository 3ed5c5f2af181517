"""The machines of a Ray cluster as nodes: the near side, which does not import Ray.

All calls go through one process, the cluster's driver (`laneway.app.jobs_ray`), which is started with the first
of them, started anew when it has ended, and ended when nobody has called for a while.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import msgspec

from laneway.base.errors import LanewayError, NodeUnreachable, UsageError
from laneway.base.plain import code_label
from laneway.jobs.model import Mode
from laneway.jobs.nodes.messages import Hello
from laneway.jobs.nodes.pipe import PipeNode
from laneway.jobs.nodes.port import CALL_S, Node
from laneway.jobs.nodes.ray_machines import Machine

DRIVER = "laneway.app.jobs_ray"
"""The program, which is composed where all programs are."""
MACHINES = "machines"
"""The driver's own call: what it answers is the machines of the cluster by name."""
CLUSTER = "the Ray cluster"
CONNECT_S = 60.0
"""For the driver to start and to join the cluster: one second, on a busy machine some."""
MARGIN_S = 5.0
"""Beyond the time of a call, for the driver to say itself that it is over."""
HELLO_S = 10.0
"""For a machine to say what it has room for, when one is chosen."""


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a call to the driver: those of the call to a machine, or nothing."""

    machine: str = ""
    params: dict[str, Any] = {}
    timeout_s: float = CALL_S


class RayNodes:
    """All machines of one cluster."""

    def __init__(self, address: str | None, environment: Mapping[str, str]) -> None:
        """`UsageError` if Ray is not installed here. Without an address Ray finds the cluster itself."""
        check_installed()
        command = shlex.join([sys.executable, "-P", "-m", DRIVER, address or "auto"])
        self._driver = PipeNode("", command, environment, connect_s=CONNECT_S)
        self._seen: set[str] = set()

    @property
    def driver_pid(self) -> int | None:
        """Of the process that has Ray, while there is one."""
        return self._driver.pid

    async def node(self, name: str) -> Node:
        if name not in self._seen:
            try:
                known = await self.machines()
            except NodeUnreachable:
                return RayNode(self, name)  # nobody can say now whether there is such a machine
            if name not in known:
                raise UsageError(f"The Ray cluster has no machine {code_label(name)}: {_listed(known)}.")
        return RayNode(self, name)

    async def machines(self) -> dict[str, Machine]:
        found = msgspec.convert(await self.carry("", MACHINES, {}, None), dict[str, Machine])
        self._seen |= found.keys()
        return found

    async def choose(self, repository: str, mode: Mode) -> str:
        known = await self.machines()
        able = [each for each in known.values() if each.node_ids and repository in each.repositories]
        if not able:
            raise UsageError(
                f"No machine of the Ray cluster has the repository {code_label(repository)}:"
                " see `ray start --resources` in docs/scale.md."
            )
        hellos = await asyncio.gather(*(self._hello(each.name) for each in able))
        return chosen(able, hellos, mode)

    async def _hello(self, name: str) -> Hello | None:
        try:
            return msgspec.convert(await self.carry(name, "hello", {}, HELLO_S), Hello)
        except (LanewayError, msgspec.ValidationError):
            return None

    async def carry(self, name: str, method: str, params: Mapping[str, Any], timeout_s: float | None) -> Any:
        """A call to a machine, or without a name to the driver."""
        seconds = CALL_S if timeout_s is None else timeout_s
        carried = Carried(machine=name, params=dict(params), timeout_s=seconds)
        try:
            return await self._driver.call(
                method, msgspec.to_builtins(carried), timeout_s=seconds + MARGIN_S
            )
        except NodeUnreachable as problem:
            raise NodeUnreachable(name or CLUSTER, problem.why) from problem

    async def close(self) -> None:
        await self._driver.close()


class RayNode:
    """One machine of the cluster."""

    def __init__(self, nodes: RayNodes, name: str) -> None:
        self._nodes = nodes
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def call(self, method: str, params: Mapping[str, Any], *, timeout_s: float | None = None) -> Any:
        return await self._nodes.carry(self._name, method, params, timeout_s)

    async def close(self) -> None:
        """The connection is the cluster's, not the machine's."""


def check_installed() -> None:
    """`UsageError` without Ray. It is looked for, not imported."""
    if find_spec("ray") is None:
        from laneway.base.installed import installed_how

        raise UsageError(f"jobs.executor is ray, and Ray is not installed: `{installed_how().adding('ray')}`.")


def chosen(machines: Sequence[Machine], hellos: Sequence[Hello | None], mode: Mode) -> str:
    """The machine with the most free places of this mode; `NodeUnreachable` if none answers."""
    free = {
        machine.name: room(machine, hello, mode)
        for machine, hello in zip(machines, hellos, strict=True)
        if hello is not None
    }
    if not free:
        raise NodeUnreachable(CLUSTER, f"{_listed({each.name: each for each in machines})}: no answer")
    return max(free, key=lambda name: free[name])


def room(machine: Machine, hello: Hello, mode: Mode) -> int:
    """Free places, less those that the machine itself has and Ray does not grant it."""
    return hello.free[mode]


def _listed(machines: Mapping[str, Machine]) -> str:
    return ", ".join(code_label(name) for name in machines) or "it has none that runs jobs"
