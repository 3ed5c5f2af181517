"""Background jobs for one command: the tools on the user's own jobs, or on those of a rehearsal.

A rehearsal has a scripted model, a Codex home, a state folder and a folder to work in, all of which are gone
at its end. So are its jobs: only the model of this process could answer them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from laneway.app.jobs import open_jobs, remote_opener
from laneway.app.options import CodexChoice
from laneway.base.clock import LoopClock
from laneway.base.settings import Settings
from laneway.codex import locate
from laneway.jobs.model import Job
from laneway.jobs.service import Jobs
from laneway.jobs.tools import JobTools
from laneway.jobs.waiting import Waiter
from laneway.wire.git import git_apart

_OWN_REPOSITORY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
END_S = 30.0
"""For the jobs of a rehearsal to end when they are killed. They take a fraction of a second."""


@asynccontextmanager
async def command_jobs(
    settings: Settings,
    choice: CodexChoice,
    *,
    cwd: Path,
    needs_codex: bool = False,
    may_lack_codex: bool = False,
) -> AsyncIterator[JobTools]:
    """The user's jobs. They are looked after for as long as the block runs, and outlive it.

    With `may_lack_codex` a missing Codex is told when a job is to be queued.
    """
    codex_home = locate.codex_home(os.environ)
    tools = JobTools(
        lambda: open_jobs(
            settings,
            choice,
            cwd=cwd,
            codex_home=codex_home,
            needs_codex=needs_codex or may_lack_codex,
            may_lack_codex=may_lack_codex,
        ),
        LoopClock(),
        team=settings.team if settings.source("team").kind != "default" else "",
        open_remote=remote_opener(settings),
    )
    async with tools.running():
        yield tools


@asynccontextmanager
async def rehearsed_jobs(
    settings: Settings, choice: CodexChoice, cwd: Path | None
) -> AsyncIterator[JobTools]:
    """Jobs of a rehearsal, which end with the block. Without `cwd` they work in an empty repository."""
    from laneway.rehearsal.home import throwaway_home, work_beside
    from laneway.rehearsal.server import ModelServer

    async with ModelServer() as model:
        with throwaway_home(model.base_url) as home:
            work = work_beside(home)
            await asyncio.to_thread(git_apart, work, "init", "--quiet", place=_OWN_REPOSITORY)
            tools = JobTools(
                lambda: open_jobs(
                    settings,
                    choice,
                    cwd=cwd or work,
                    codex_home=str(home),
                    state=home.parent / "sessions",
                ),
                LoopClock(),
            )
            async with tools.running():
                try:
                    yield tools
                finally:
                    await _end_all(tools.jobs)


async def _end_all(jobs: Jobs) -> None:
    left = await asyncio.to_thread(jobs.unfinished)
    for job in left:
        await asyncio.to_thread(jobs.cancel, job.job_id, force=True)

    def read() -> list[Job]:
        jobs.look()
        return jobs.many([job.job_id for job in left])

    await Waiter(jobs.places.bell, LoopClock()).wait(read, None, "all", END_S)
