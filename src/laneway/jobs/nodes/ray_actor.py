"""The actor of one machine of a Ray cluster: carries calls to a `laneway jobs node` that it starts.

It owns no worker and no job. Ray kills the direct children of an actor that ends, in whatever session they
are. So supervisors of jobs are never among them: they are children of `laneway jobs node`, and orphans when
that is gone. Where Ray is set up to kill orphans, too, the actor refuses to work.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from laneway.base.errors import LanewayError, UsageError
from laneway.codex.locate import child_environment
from laneway.jobs.nodes.messages import NodeFault, fault_of
from laneway.jobs.nodes.pipe import PipeNode

OF_RAY = ("RAY_", "SPT_NOENV")
"""Beginnings of variables that Ray adds, or that hold the cluster's secret: whoever has that runs any program
on every machine of it."""
PROBE_S = 20.0
"""For a shell to start another one."""
PROBE = """(while read -r pid name state parent rest </proc/self/stat && [ "$parent" = "$1" ]; do :; done
echo "$parent") &"""
"""Prints the process that orphans get as their parent."""


class ActorReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the two. Goes from Python to Python as bytes: both sides may have different releases of us."""

    answer: msgspec.Raw = msgspec.Raw()
    fault: NodeFault | None = None


decode_reply = msgspec.json.Decoder(ActorReply).decode


class NodeActor:
    """Made by Ray, detached: it stays when whoever wanted it is gone, and ends with its machine's raylet."""

    def __init__(self, name: str) -> None:
        self._name = name
        command = shlex.join([sys.executable, "-P", "-m", "laneway", "jobs", "node"])
        self._relay = PipeNode(name, command, node_environment(started_with()))
        self._refusal: UsageError | None = None
        try:
            check_orphans()
        except UsageError as problem:
            self._refusal = problem

    async def call(self, method: str, params: bytes, timeout_s: float) -> bytes:
        """An encoded `ActorReply`. Errors of ours are replies, since Ray would add its own words to them."""
        try:
            if self._refusal is not None:
                raise UsageError(f"{self._name}: {self._refusal}")
            answer = await self._relay.call(method, msgspec.json.decode(params), timeout_s=timeout_s)
        except LanewayError as problem:
            return msgspec.json.encode(ActorReply(fault=fault_of(problem)))
        return msgspec.json.encode(ActorReply(answer=msgspec.Raw(msgspec.json.encode(answer))))


def node_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of the machine's jobs: that of `ray start`, without what is Ray's own."""
    return {key: value for key, value in child_environment(environment).items() if not key.startswith(OF_RAY)}


def started_with() -> Mapping[str, str]:
    """The environment that this process was started with: Ray changes it for its own purposes later."""
    try:
        parts = Path("/proc/self/environ").read_bytes().split(b"\0")
    except FileNotFoundError:
        return os.environ
    pairs = (os.fsdecode(part).partition("=") for part in parts if part)
    return {key: value for key, _, value in pairs}


def check_orphans() -> None:
    """`UsageError` if orphans of this process become its children, or its parent's: Ray kills them then."""
    if not os.path.isdir("/proc/self"):
        return  # Ray does so on Linux only
    ran = subprocess.run(
        ["/bin/sh", "-c", f'set -- "$$"; {PROBE}'],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PROBE_S,
        check=True,
    )
    if int(ran.stdout) in (os.getpid(), os.getppid()):
        raise UsageError(
            "Ray would kill running jobs there when its actor ends: start Ray without"
            " RAY_kill_child_processes_on_worker_exit_with_raylet_subreaper."
        )
