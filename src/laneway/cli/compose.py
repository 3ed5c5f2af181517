"""Joins the pieces: an engine, a hub and, for a rehearsal, a scripted model and its home."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.base.clock import LoopClock
from laneway.base.settings import Settings
from laneway.cli import early
from laneway.cli.chosen import settings_for
from laneway.codex import locate
from laneway.codex.engine import CodexEngine, codex_engine
from laneway.core.hub import Equip, Hub, Limits, unequipped
from laneway.core.session import Compose, Timing, no_context
from laneway.core.tools import ToolBox
from laneway.store.releases import ReleaseFiles, releases_folder

if TYPE_CHECKING:
    from laneway.codex.relay import RelayEngine
    from laneway.doors.mcp.events import Script

LOCAL = "local"
"""The principal of whoever sits at this terminal."""


class Ground(msgspec.Struct, frozen=True):
    """What a command stands on."""

    hub: Hub
    engine: CodexEngine | RelayEngine
    work: Path | None
    """A throw-away folder to work in; only in a rehearsal."""
    codex_home: str
    """The folder in which Codex keeps its threads."""
    state: Path | None = None
    """Where a rehearsal keeps its sessions, so that they are not taken for real ones."""


@asynccontextmanager
async def ground(
    options: Namespace,
    timing: Timing = Timing(),  # noqa: B008  frozen
    settings: Settings | None = None,
    limits: Limits = Limits(),  # noqa: B008  frozen
    compose: Compose = no_context,
    transport: str = "app-server",
    *,
    tools: ToolBox | None = None,
    equip: Equip = unequipped,
    asks_login: bool = False,
) -> AsyncIterator[Ground]:
    """A hub on the Codex that the settings choose; nothing is started before it is needed.

    `asks_login`: as of `CodexEngine`; for front ends that have no way of their own to log in.
    """
    if settings is None:
        settings = settings_for(options, Path())
    # Looked up before anything is set up: a missing Codex is the first thing to say.
    found = locate.find(options.codex_bin, configured=settings.codex_bin)
    async with AsyncExitStack() as stack:
        environment, work, state = dict(os.environ), None, None
        if options.rehearse:
            from laneway.rehearsal.home import throwaway_home, work_beside
            from laneway.rehearsal.server import ModelServer

            model = await stack.enter_async_context(ModelServer())
            home = stack.enter_context(throwaway_home(model.base_url))
            environment["CODEX_HOME"], work = str(home), work_beside(home)
            state = home.parent / "sessions"
        engine: CodexEngine | RelayEngine
        if transport == "mcp-server":
            from laneway.codex.relay import relay_engine  # for the few who pin an old Codex

            engine = relay_engine(found, environment)
        else:
            # Not in a rehearsal, whose Codex must see another home than the one that is on its way.
            launched = None if options.rehearse else early.take(found.path)
            releases = ReleaseFiles(releases_folder(state), Path(locate.codex_home(environment)))
            engine = codex_engine(found, environment, launched, releases, asks_login=asks_login)
        hub = await stack.enter_async_context(
            Hub(
                engine,
                LoopClock(),
                limits=limits,
                timing=timing,
                compose=compose,
                tools=tools,
                equip=equip,
            )
        )
        yield Ground(hub, engine, work, locate.codex_home(environment), state)


def script(events: str, transport: str = "app-server") -> Callable[[], Script]:
    """The words in which MCP clients are told of events, one set for each session."""
    if events == "off":
        from laneway.doors.mcp.events import Silence

        return Silence
    if transport == "mcp-server":
        from laneway.codex.relay_events import RelayScript  # as in `ground`

        return partial(RelayScript, "compact" if events == "compact" else "full")

    def legacy() -> Script:
        from laneway.codex.legacy import Legacy  # two milliseconds, not needed before there is a session

        return Legacy("compact" if events == "compact" else "full")

    return legacy


def raw_events(events: str) -> dict[str, Any]:
    """What Codex must be asked for at the start of a thread: the old server told the raw items, too."""
    return {"experimentalRawEvents": True} if events == "full" else {}
