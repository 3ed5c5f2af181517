"""The runtime of a command: a Codex engine, a hub and, for a rehearsal, a scripted model and its home."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from laneway.app import engines, prestart
from laneway.app.options import ClaudeChoice, CodexChoice
from laneway.base.clock import LoopClock
from laneway.base.errors import BinaryError
from laneway.codex import locate
from laneway.codex.engine import CodexEngine, codex_engine
from laneway.core.hub import Equip, Hub, Limits, unequipped
from laneway.core.session import Compose, Timing, no_context
from laneway.core.tools import ToolBox
from laneway.store.releases import ReleaseFiles, releases_folder

if TYPE_CHECKING:
    from laneway.codex.relay import RelayEngine
    from laneway.doors.mcp.events import Script
    from laneway.wire.child import Child, Exit

LOCAL = "local"
"""The principal of the user at this terminal."""


class Runtime(msgspec.Struct, frozen=True):
    """Hub, engine and folders of a command that runs Codex."""

    hub: Hub
    engine: CodexEngine | RelayEngine
    work: Path | None
    """A throw-away folder to work in; only in a rehearsal."""
    codex_home: str
    """The folder in which Codex keeps its threads."""
    state: Path | None = None
    """Where a rehearsal keeps its sessions, apart from real ones."""


@asynccontextmanager
async def open_runtime(
    choice: CodexChoice,
    timing: Timing = Timing(),  # noqa: B008  frozen
    limits: Limits = Limits(),  # noqa: B008  frozen
    compose: Compose = no_context,
    transport: str = "app-server",
    *,
    tools: ToolBox | None = None,
    equip: Equip = unequipped,
    asks_login: bool = False,
    claude: ClaudeChoice | None = None,
    may_lack_codex: bool = False,
) -> AsyncIterator[Runtime]:
    """A hub on the chosen Codex and on Claude, if one is chosen; each is started when it is first needed.

    `asks_login`: as for `CodexEngine`; for front ends that have no login of their own. With
    `may_lack_codex` a missing Codex is told when it is first needed.
    """
    # Looked up before anything is set up: a missing Codex is the first error to report.
    binary, problem = None, ""
    try:
        binary = locate.find(choice.codex_bin, configured=choice.configured_bin)
    except BinaryError as error:
        if not may_lack_codex:
            raise
        problem = str(error)
    async with AsyncExitStack() as stack:
        environment, work, state = dict(os.environ), None, None
        if choice.is_rehearsal:
            from laneway.rehearsal.home import throwaway_home, work_beside
            from laneway.rehearsal.server import ModelServer

            model = await stack.enter_async_context(ModelServer())
            home = stack.enter_context(throwaway_home(model.base_url))
            environment["CODEX_HOME"], work = str(home), work_beside(home)
            state = home.parent / "sessions"
        engine: CodexEngine | RelayEngine
        if binary is None:
            engine = _absent_codex(problem)
        elif transport == "mcp-server":
            from laneway.codex.relay import relay_engine  # for the few who pin an old Codex

            engine = relay_engine(binary, environment)
        else:
            # Not in a rehearsal, whose Codex needs another home than the process that was started early.
            launched = None if choice.is_rehearsal else prestart.take(binary.path)
            releases = ReleaseFiles(releases_folder(state), Path(locate.codex_home(environment)))
            engine = codex_engine(binary, environment, launched, releases, asks_login=asks_login)
        others = await stack.enter_async_context(engines.others(claude))
        hub = await stack.enter_async_context(
            Hub(
                engine,
                LoopClock(),
                others=others,
                limits=limits,
                timing=timing,
                compose=compose,
                tools=tools,
                equip=equip,
            )
        )
        yield Runtime(hub, engine, work, locate.codex_home(environment), state)


def _absent_codex(problem: str) -> CodexEngine:
    """Of a machine without a Codex: whoever needs it gets the sentence that says so."""

    async def connect(on_bytes: Callable[[bytes], None], on_end: Callable[[Exit], None]) -> Child:
        raise BinaryError(problem)

    return CodexEngine(connect)


def script(events: str, transport: str = "app-server") -> Callable[[], Script]:
    """Makes, for each session, the format in which MCP clients get its events."""
    if events == "off":
        from laneway.doors.mcp.events import Silence

        return Silence
    if transport == "mcp-server":
        from laneway.codex.relay_events import RelayScript  # loaded late, as in `open_runtime`

        return partial(RelayScript, "compact" if events == "compact" else "full")

    def legacy() -> Script:
        from laneway.codex.legacy import (
            LegacyEvents,
        )  # two milliseconds, not needed before there is a session

        return LegacyEvents("compact" if events == "compact" else "full")

    return legacy


def raw_events(events: str) -> dict[str, Any]:
    """Thread options that ask Codex for raw items, which clients of the removed server got, too."""
    return {"experimentalRawEvents": True} if events == "full" else {}
