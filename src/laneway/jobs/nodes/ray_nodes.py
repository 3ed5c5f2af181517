"""The machines of a Ray cluster as nodes: the near side, which does not import Ray.

All calls go through one process, the cluster's driver (`laneway.app.jobs_ray`), which is started with the
first of them and started anew when it has ended.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import msgspec

from laneway.base.errors import LanewayError, NodeUnreachable, UsageError
from laneway.base.plain import code_label
from laneway.jobs.model import Mode
from laneway.jobs.nodes.backoff import Backoff
from laneway.jobs.nodes.messages import PROTOCOL, Hello
from laneway.jobs.nodes.pipe import PipeNode
from laneway.jobs.nodes.port import CALL_S
from laneway.jobs.nodes.ray_machines import Machine, free_places
from laneway.jobs.requests import THIS_NODE
from laneway.jobs.service import Jobs

DRIVER = "laneway.app.jobs_ray"
"""The program, which is composed where all programs are."""
MACHINES = "machines"
"""The driver's own call: what it answers is the machines of the cluster by name."""
CLUSTER = "the Ray cluster"
MARGIN_S = 5.0
"""Beyond the time of a call, for the driver to say itself that it is over."""
HELLO_S = 10.0
"""For a machine to say who it is and what it has room for."""
STARTING = ("spawn", "send")
"""Calls that must not come back to the ledger that makes them."""


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a call to the driver: those of the call to a machine, or nothing."""

    machine: str = ""
    params: dict[str, Any] = {}
    timeout_s: float = CALL_S


class RayNodes:
    """All machines of one cluster."""

    def __init__(
        self,
        address: str | None,
        environment: Mapping[str, str],
        jobs: Jobs,
        *,
        backoff: Backoff | None = None,
    ) -> None:
        """Without an address Ray finds the cluster by itself. `jobs` are those of this machine."""
        command = shlex.join([sys.executable, "-P", "-m", DRIVER, address or "auto"])
        self._driver = PipeNode("", command, environment, backoff=backoff)
        self._jobs = jobs
        self._seen: set[str] = set()
        self._others: set[str] = set()
        """Machines that are known not to be this one."""

    @property
    def driver_pid(self) -> int | None:
        """Of the process that has Ray, while there is one."""
        return self._driver.pid

    async def node(self, name: str) -> RayNode:
        if name not in self._seen:
            self._seen |= await asyncio.to_thread(self._names_of_jobs)
        if name not in self._seen:
            check_installed()
            known = await self.machines()
            if name not in known:
                raise UsageError(
                    f"The Ray cluster has no machine {code_label(name)}: it has {_listed(known)}."
                )
        return RayNode(self, name)

    def _names_of_jobs(self) -> set[str]:
        """A machine that has jobs of ours exists, whether it is in the cluster now or not."""
        return {job.node for job in self._jobs.ledger.elsewhere()}

    async def machines(self) -> dict[str, Machine]:
        found = msgspec.convert(await self.carry("", MACHINES, {}), dict[str, Machine])
        self._seen |= found.keys()
        return found

    async def choose(self, repository: str, mode: Mode) -> str:
        """The machine with the most room; this one, if no other has more."""
        check_installed()
        able = [each for each in (await self.machines()).values() if repository in each.repositories]
        free = await asyncio.gather(*(self._free_places(each, repository, mode) for each in able))
        found = [(await asyncio.to_thread(self._jobs.free, mode), THIS_NODE)]
        found += [(places, each.name) for places, each in zip(free, able, strict=True) if places is not None]
        return max(found, key=lambda each: each[0])[1]

    async def _free_places(self, machine: Machine, repository: str, mode: Mode) -> int | None:
        """None if it does not answer, has no such repository or no such places, or is this machine."""
        try:
            hello = await self._hello(machine.name)
            await self._check_other(machine.name, hello)
        except LanewayError:
            return None
        return free_places(machine, hello, mode) if repository in hello.repositories else None

    async def _hello(self, name: str) -> Hello:
        answer = await self.carry(name, "hello", {}, timeout_s=HELLO_S)
        try:
            return msgspec.convert(answer, Hello)
        except msgspec.ValidationError as problem:
            raise NodeUnreachable(name, "it did not greet as Laneway does") from problem

    async def call(self, name: str, method: str, params: Mapping[str, Any], timeout_s: float | None) -> Any:
        """A call of a node."""
        if method in STARTING and name not in self._others:
            await self._check_other(name, await self._hello(name))
        return await self.carry(name, method, params, timeout_s=timeout_s)

    async def _check_other(self, name: str, hello: Hello) -> None:
        """`UsageError` if the machine has our own ledger, which cannot have a job twice."""
        if hello.protocol != PROTOCOL:
            why = f"it has Laneway {hello.version}, with which this one cannot speak: update one"
            raise NodeUnreachable(name, why)
        if hello.home == await asyncio.to_thread(self._jobs.ledger.home):
            raise UsageError(f"{name} is this machine: leave the node out, or say {THIS_NODE}.")
        self._others.add(name)

    async def carry(
        self, name: str, method: str, params: Mapping[str, Any], *, timeout_s: float | None = None
    ) -> Any:
        """A call to a machine, or without a name to the driver."""
        seconds = CALL_S if timeout_s is None else timeout_s
        carried = msgspec.to_builtins(Carried(machine=name, params=dict(params), timeout_s=seconds))
        if find_spec("ray") is None:
            raise NodeUnreachable(name or CLUSTER, "Ray is not installed here")
        try:
            return await self._driver.call(method, carried, timeout_s=seconds + MARGIN_S)
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
        return await self._nodes.call(self._name, method, params, timeout_s)

    async def close(self) -> None:
        """The connection is the cluster's, not the machine's."""


def check_installed() -> None:
    """`UsageError` without Ray. It is looked for, not imported."""
    if find_spec("ray") is None:
        from laneway.base.installed import installed_how

        raise UsageError(
            f"jobs.executor is ray, and Ray is not installed: `{installed_how().adding('ray')}`."
        )


def _listed(machines: Mapping[str, Machine]) -> str:
    return ", ".join(code_label(name) for name in sorted(machines)) or "none that runs jobs"
