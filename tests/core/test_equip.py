"""What is added to a thread beside what its caller asked for: sent each time, and kept nowhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from laneway.base.errors import StoreError
from laneway.core.hub import Hub, Limits
from laneway.core.named.opening import Opening
from laneway.core.named.sessions import NamedSessions
from laneway.core.ports import ThreadSpec
from laneway.core.tools import Caller, Tool, ToolBox, ToolResult
from laneway.store.records import StoreRecords
from laneway.store.store import Store
from laneway.testing.clock import HandClock
from laneway.testing.engine import HandEngine

ME = "me"


async def nothing(caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
    return ToolResult("nothing")


TOOLS = ToolBox([Tool("knock", "", {}, nothing), Tool("ring", "", {}, nothing)])


class Asked:
    """An `equip` that writes down for whom."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, tuple[str, ...]]] = []

    def __call__(self, agent_id: str, spec: ThreadSpec) -> ThreadSpec:
        self.seen.append((agent_id, spec.had_tools))
        return msgspec.structs.replace(spec, extras={"secret": f"of {agent_id}"})


def registries(root: Path) -> str:
    return "".join(path.read_text() for path in root.rglob("registry.json"))


def sessions(root: Path, asked: Asked, tools: ToolBox | None) -> NamedSessions:
    hub = Hub(HandEngine(), HandClock(), tools=tools, equip=asked, shutdown_s=0.05)
    return NamedSessions(hub, StoreRecords(Store(root, "crew")), HandClock(), summaries=False)


async def test_a_session_that_could_not_be_equipped_takes_neither_a_place_nor_a_name() -> None:
    """Whoever tries again is told the same, and not that somebody has it already."""

    def broken(agent_id: str, spec: ThreadSpec) -> ThreadSpec:
        raise StoreError("nothing to be had")

    async with Hub(HandEngine(), HandClock(), equip=broken, limits=Limits(sessions=1)) as hub:
        for _ in range(2):
            with pytest.raises(StoreError):
                await hub.start(ME, ThreadSpec(cwd=Path("/")), identity="ann")


async def test_a_session_is_equipped_at_every_beginning_by_what_its_thread_once_had(tmp_path: Path) -> None:
    """A resume cannot add tools: it is told which there are. The caller's config stays the caller's."""
    config = {"their": "own"}
    for tools, had in ((TOOLS, ("knock", "ring")), (None, ())):
        asked = Asked()
        async with sessions(tmp_path, asked, tools) as first:
            opened = await first.open(ME, Opening(spec=ThreadSpec(cwd=tmp_path, config=config)))
            assert opened.session.spec.extras == {"secret": f"of {opened.agent_id}"}
            assert opened.record.config == config
        async with sessions(tmp_path, asked, TOOLS) as second:
            again = await second.resume(ME, agent_id=opened.agent_id)
            assert again.session.spec.config == config
        assert asked.seen == [(opened.agent_id, had)] * 2
    kept = registries(tmp_path)
    assert '"tools":["knock","ring"]' in kept
    assert "secret" not in kept
