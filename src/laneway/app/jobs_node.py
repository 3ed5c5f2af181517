"""`laneway jobs node`: this home's jobs for another machine, by JSON-RPC lines on standard input and output.

Composes `Served` with the user's jobs. Jobs outlive it: it ends when the other side hangs up, and another one
knows all of them.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import msgspec

from laneway.app.jobs import open_jobs
from laneway.app.options import CodexChoice
from laneway.base.clock import LoopClock
from laneway.base.errors import BinaryError, LanewayError, RemoteError
from laneway.base.settings import Settings
from laneway.codex import locate
from laneway.doors.ending import EndSignals
from laneway.doors.pipe import Pipe, claim_standard_streams
from laneway.jobs.nodes.messages import NODE_ERROR, fault_of
from laneway.jobs.nodes.served import Served
from laneway.jobs.service import Jobs
from laneway.jobs.tools import JobTools
from laneway.wire.peer import Raw

QUICK_S = 0.5
"""For a spawn that has arrived to be carried out, although nobody hears the answer."""
log = logging.getLogger(__name__)


def node_served(settings: Settings, choice: CodexChoice, *, cwd: Path) -> tuple[JobTools, Served]:
    """The user's jobs as another machine is answered. Without a Codex they can be looked at, not started."""

    def check_codex() -> None:
        locate.find(choice.codex_bin, configured=choice.configured_bin)

    def open_here() -> Jobs:
        codex_home = locate.codex_home(os.environ)
        try:
            return open_jobs(settings, choice, cwd=cwd, codex_home=codex_home)
        except BinaryError as problem:
            log.warning("Jobs cannot be started here: %s", problem)
            return open_jobs(settings, choice, cwd=cwd, codex_home=codex_home, needs_codex=False)

    clock = LoopClock()
    tools = JobTools(open_here, clock)
    return tools, Served(tools, settings.jobs_repositories, clock, check_codex)


async def serve_node(settings: Settings, choice: CodexChoice, *, cwd: Path) -> None:
    """Serve until the other side hangs up, or a signal comes."""
    tools, served = node_served(settings, choice, cwd=cwd)

    async def answer(method: str, params: Raw, request_id: bytes) -> Any:
        arguments = msgspec.json.decode(params, type=dict[str, Any]) if params else {}
        try:
            return await served.handle(method, arguments)
        except LanewayError as problem:
            raise RemoteError(NODE_ERROR, str(problem), msgspec.to_builtins(fault_of(problem))) from problem

    pipe = Pipe(on_request=answer, on_notification=_ignore, cancel_notice=_no_longer_needed)
    await pipe.open(*claim_standard_streams())
    async with tools.running():
        with EndSignals(pipe.ended):
            try:
                await pipe.listen()
                await pipe.ended.wait()
                await pipe.peer.wait_served(QUICK_S)
            finally:
                await pipe.aclose()


def _ignore(method: str, params: Raw, frame: bytes) -> None:
    log.debug("a notification that nobody knows: %s", method[:100])


def _no_longer_needed(request_id: bytes) -> tuple[str, Any]:
    return "cancelled", {"requestId": msgspec.Raw(request_id)}
