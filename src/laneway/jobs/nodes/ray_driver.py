"""The driver of a Ray cluster: finds its machines, makes their actors, and carries calls to them.

Runs in a process of its own (`laneway.app.jobs_ray`), because Ray ends the process that it is loaded in when
the head has been away for a minute, writes to standard output, and blocks. Only that process and the actors'
import Ray.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from laneway.base.errors import LanewayError, NodeUnreachable
from laneway.core.background import TaskSet
from laneway.jobs.nodes.messages import PROTOCOL, NodeFault, error_of
from laneway.jobs.nodes.port import ONCE
from laneway.jobs.nodes.ray_actor import NodeActor, decode_reply
from laneway.jobs.nodes.ray_machines import Machine, machines

log = logging.getLogger(__name__)

NAMESPACE = "laneway"
ACTOR_CALLS = 1000
"""Calls that an actor carries at once; most of them wait for news of jobs."""
REFUSED_S = 10.0
"""Before a process that Ray did not let join is ended."""
LOOK_S = 2.0
"""Between two looks whether the head is still there."""
HEAD_S = 10.0
"""For the head to say which machines there are: milliseconds. Without one Ray waits for ever."""
MARGIN_S = 1.0
"""Beyond the time of a call, for the machine itself to say that it is over."""
PORT_S = 3.0
"""For the head's port to answer. Ray itself would try for two minutes."""


class RayDriver:
    """One process's connection to a cluster. If it breaks, the process is of no more use."""

    def __init__(self, address: str, give_up: Callable[[str], None]) -> None:
        """`give_up` ends the process, however it can; it gets the reason."""
        self._address = address
        self._give_up = give_up
        self._ray: Any = None
        self._refusal: NodeUnreachable | None = None
        self._joining = asyncio.Lock()
        self._actors: dict[str, Any] = {}
        self._tasks = TaskSet()

    # ── the cluster ────────────────────────────────────────────────────────

    async def join(self) -> None:
        """Join the cluster, unless that is done; `NodeUnreachable` with the reason if it cannot be."""
        async with self._joining:
            if self._ray is not None:
                return
            if self._refusal is not None:
                raise NodeUnreachable(self._refusal.node, self._refusal.why)
            await asyncio.to_thread(check_port, self._address)
            try:
                self._ray = await asyncio.to_thread(self._join)
            except NodeUnreachable as refusal:
                # Ray in this process may be half joined now. The next one tries again, but not at once.
                self._refusal = refusal
                asyncio.get_running_loop().call_later(REFUSED_S, self._give_up, str(refusal))
                raise
            self._tasks.spawn(self._watch(), "watch the head")

    def _join(self) -> Any:
        # Ray has the actors look for modules beside our program, and in our folder.
        sys.argv[0] = "/laneway"
        import ray

        try:
            ray.init(
                address=self._address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR
            )
        except (ConnectionError, ray.exceptions.RayError) as problem:
            log.warning("%s", problem)
            raise NodeUnreachable(
                self._address, "the Ray cluster lets nobody join; is the secret right?"
            ) from problem
        except (RuntimeError, ValueError, OSError) as problem:
            log.warning("%s", problem)
            raise NodeUnreachable(
                self._address,
                "Ray refuses this machine, which must be a node of the cluster, with the same versions of Ray"
                " and Python",
            ) from problem
        return ray

    async def _watch(self) -> None:
        """Look after the head until it is gone."""
        try:
            while True:
                await self.machines()
                await asyncio.sleep(LOOK_S)
        except NodeUnreachable as problem:
            self._give_up(str(problem))

    async def machines(self) -> dict[str, Machine]:
        await self.join()
        try:
            nodes = await asyncio.wait_for(asyncio.to_thread(self._ray.nodes), HEAD_S)
        except (TimeoutError, RuntimeError, OSError, self._ray.exceptions.RayError) as problem:
            raise NodeUnreachable(self._address, "the head of the Ray cluster does not answer") from problem
        return machines(nodes)

    # ── calls ──────────────────────────────────────────────────────────────

    async def call(self, name: str, method: str, params: Mapping[str, Any], timeout_s: float) -> Any:
        """The answer of a machine's Laneway; `NodeUnreachable`, or the error that it answered with."""
        await self.join()
        failed = self._ray.exceptions
        try:
            data = await self._carry(name, method, msgspec.json.encode(params), timeout_s)
        except TimeoutError as problem:
            raise NodeUnreachable(name, f"no answer to {method} in {timeout_s:.3g} s") from problem
        except failed.RayActorError as problem:
            log.warning("%s", problem)
            raise NodeUnreachable(name, _why_dead(problem)) from problem
        except failed.RayTaskError as problem:
            log.warning("%s", problem)
            raise LanewayError(
                f"On {name} something failed: the log of Ray's actor there says what."
            ) from problem
        except failed.RayError as problem:
            log.warning("%s", problem)
            raise NodeUnreachable(name, "Ray cannot carry calls to it") from problem
        reply = decode_reply(data)
        if reply.fault is not None:
            raise _carried(reply.fault, name)
        return msgspec.json.decode(reply.answer)

    async def _carry(self, name: str, method: str, params: bytes, timeout_s: float) -> bytes:
        """Through the machine's actor. One that has ended is made anew, and may be called again."""
        actor, is_new = await self._actor(name)
        try:
            return await self._awaited(actor, method, params, timeout_s)
        except self._ray.exceptions.RayActorError:
            self._actors.pop(name, None)
            if is_new or method in ONCE:
                raise
        actor, _ = await self._actor(name)
        try:
            return await self._awaited(actor, method, params, timeout_s)
        except self._ray.exceptions.RayActorError:
            self._actors.pop(name, None)
            raise

    async def _awaited(self, actor: Any, method: str, params: bytes, timeout_s: float) -> bytes:
        reference = await asyncio.to_thread(actor.call.remote, method, params, timeout_s)
        waiting = asyncio.wrap_future(reference.future())
        try:
            async with asyncio.timeout(timeout_s + MARGIN_S):
                data: bytes = await waiting
                return data
        except (TimeoutError, asyncio.CancelledError):
            # So that the actor does not go on waiting for news that nobody wants.
            await asyncio.to_thread(self._ray.cancel, reference)
            raise

    async def _actor(self, name: str) -> tuple[Any, bool]:
        """The machine's actor, made if there is none; whether it was not known before."""
        if name in self._actors:
            return self._actors[name], False
        known = (await self.machines()).get(name)
        if known is None or not known.node_ids:
            raise NodeUnreachable(name, "it is not in the Ray cluster now")
        if len(known.node_ids) > 1:
            count = len(known.node_ids)
            raise NodeUnreachable(
                name, f"{count} nodes of the cluster have this name: `ray start --node-name`"
            )
        actor = await asyncio.to_thread(self._make_actor, name, known.node_ids[0])
        self._actors[name] = actor
        return actor, True

    def _make_actor(self, name: str, node_id: str) -> Any:
        """Named by the node, so that one that comes back gets another; `get_if_exists` settles all races."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = {
            "name": f"node-{PROTOCOL}-{node_id}",
            "namespace": NAMESPACE,
            "lifetime": "detached",
            "get_if_exists": True,
            "num_cpus": 0,
            "max_concurrency": ACTOR_CALLS,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node_id=node_id, soft=False),
        }
        return self._ray.remote(NodeActor).options(**options).remote(name)


def _carried(fault: NodeFault, name: str) -> LanewayError:
    """The error of a machine, whose text names it already."""
    error = error_of(fault, "")
    return NodeUnreachable(name, error.why) if isinstance(error, NodeUnreachable) else error


def check_port(address: str) -> None:
    """`NodeUnreachable` at once if nobody listens at `host:port`; anything else is Ray's to judge."""
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), PORT_S).close()
    except OSError as problem:
        why = problem.strerror or "no answer"
        raise NodeUnreachable(address, f"no Ray cluster answers there ({why.lower()})") from problem


def _why_dead(problem: Exception) -> str:
    if "ModuleNotFoundError" in str(problem):  # Ray says why an actor did not start as text only
        return "Laneway is not installed there for the Python that Ray runs with"
    return "Ray's actor there has ended"
