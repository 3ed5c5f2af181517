"""The machines of a Ray cluster that run jobs, by what Ray says of its nodes. Pure.

A machine has the repositories that its Ray resources name (`repo:site`), and at most as many places as they
say (`laneway:read`, `laneway:write`); its own settings may give it fewer. One that names only one of the two
has no places of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from laneway.base.prepare import prepare
from laneway.jobs.model import Mode
from laneway.jobs.nodes.messages import Hello

REPOSITORY = "repo:"
PLACES: dict[Mode, str] = {"read": "laneway:read", "write": "laneway:write"}


@prepare
class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """One node of the cluster that has a checkout, or had one while it was there."""

    name: str
    node_ids: tuple[str, ...] = ()
    """Of the living nodes of this name: none if it is away, two if somebody named two alike."""
    repositories: tuple[str, ...] = ()
    places: dict[Mode, int] = {}
    """Those that Ray's resources grant; if none are named, as many as the machine itself says."""


def machines(nodes: Iterable[Mapping[str, Any]]) -> dict[str, Machine]:
    """By name, from `ray.nodes()`. Ray forgets what a node had when it dies, not how it was called."""
    found: dict[str, Machine] = {}
    gone: set[str] = set()
    for node in nodes:
        name = str(node.get("NodeName") or node.get("NodeManagerAddress") or "")
        resources: Mapping[str, float] = node.get("Resources") or {}
        if not node.get("Alive"):
            gone.add(name)
            continue
        repositories = tuple(
            sorted(each.removeprefix(REPOSITORY) for each in resources if each.startswith(REPOSITORY))
        )
        if not repositories:
            continue
        # Ray does not keep a resource of which there is none.
        named = any(key in resources for key in PLACES.values())
        earlier = found.get(name)
        found[name] = Machine(
            name=name,
            node_ids=(*(earlier.node_ids if earlier else ()), str(node["NodeID"])),
            repositories=repositories,
            places={mode: int(resources.get(key, 0)) for mode, key in PLACES.items()} if named else {},
        )
    return {name: Machine(name=name) for name in sorted(gone - found.keys())} | found


def free_places(machine: Machine, hello: Hello, mode: Mode) -> int | None:
    """Free places, less those that the machine has and Ray does not grant it; None if it grants none."""
    granted, own = machine.places.get(mode), hello.places.get(mode, 0)
    if granted == 0:
        return None
    return hello.free.get(mode, 0) - max(0, own - (own if granted is None else granted))
