"""Jobs with the real Codex and a scripted model: places of their own, and nothing left running at the end."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.clock import LoopClock
from laneway.codex import locate
from laneway.jobs.event_log import FINAL
from laneway.jobs.model import Job, JobLimits, Result
from laneway.jobs.places import JobsLayout
from laneway.jobs.processes import marked
from laneway.jobs.requests import JobDefaults, SpawnRequest
from laneway.jobs.service import Jobs
from laneway.jobs.waiting import Waiter
from tests.doors.stage import Message, scene

DEADLINE_S = 60.0


class Stage:
    """One user's jobs, and a git repository to work in."""

    def __init__(self, requests: list[Message], home: Path, state: Path, work: Path) -> None:
        self.requests = requests
        self.home = home
        self.state = state
        self.work = work
        self.environment = {
            **os.environ,
            "CODEX_HOME": str(home),
            "PYTHONPATH": os.pathsep.join(
                os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path
            ),
        }
        self.places = JobsLayout.of(state)
        self._open: list[Jobs] = []

    def jobs(self, limits: JobLimits = JobLimits(), **defaults: Any) -> Jobs:  # noqa: B008  frozen
        """The jobs as one process sees them; each call is another process, as far as they can tell."""
        known: dict[str, Any] = {
            "cwd": self.work,
            "work_near": self.places.jobs,
            "codex": locate.find().path,
            "codex_home": str(self.home),
        }
        jobs = Jobs(self.places, JobDefaults(**(known | defaults)), limits, self.environment)
        self._open.append(jobs)
        return jobs

    async def ended(self, jobs: Jobs, *jobs_or_ids: Job | str) -> list[Job]:
        """Wait until these have ended."""
        ids = [each if isinstance(each, str) else each.job_id for each in jobs_or_ids]

        def read() -> list[Job]:
            jobs.look()
            return jobs.many(ids)

        waited = await Waiter(self.places.bell, LoopClock()).wait(read, None, "all", DEADLINE_S)
        assert waited.is_satisfied, [self.log_of(job_id) for job_id in waited.pending]
        return jobs.many(ids)

    async def until(self, jobs: Jobs, job: Job, holds: Callable[[Job], object]) -> Job:
        async with asyncio.timeout(DEADLINE_S):
            while not holds(current := jobs.get(job.job_id)):
                assert not current.has_ended, (current, self.log_of(job.job_id))
                await asyncio.sleep(0.005)
            return current

    def result(self, jobs: Jobs, job: Job) -> Result:
        result = jobs.result(job)
        assert result is not None, self.log_of(job.job_id)
        return result

    def events(self, jobs: Jobs, job: Job) -> list[dict[str, Any]]:
        """All of them; the last one is `final`, and no other is."""
        events: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = jobs.events(job, cursor)
            events += page.events
            cursor = page.next_cursor
            if page.is_at_end:
                assert page.has_final, events
                assert [event["type"] for event in events].index(FINAL) == len(events) - 1
                return events

    def log_of(self, job_id: str) -> str:
        files = self.places.job(job_id)
        return files.supervisor_log.read_text() if files.supervisor_log.exists() else "(no log)"

    def git(self, *words: str) -> str:
        ran = subprocess.run(["git", *words], cwd=self.work, capture_output=True, text=True, check=True)
        return ran.stdout

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.work / name).write_text(text)

    async def aclose(self) -> None:
        """End what a test has left running, and see that nothing is left of it."""
        jobs = self._open[0] if self._open else None
        if jobs is not None:
            left = jobs.unfinished()
            for job in left:
                jobs.cancel(job.job_id, force=True)
            await self.ended(jobs, *left)
            for job in jobs.ledger.listed():
                assert list(marked(job.job_id)) == []
        for each in self._open:
            each.close()


@asynccontextmanager
async def stage(
    tmp_path: Path, *, extra_config: str = "", is_repo: bool = True, **options: Any
) -> AsyncIterator[Stage]:
    async with scene(tmp_path / "state", extra_config, **options) as (requests, home, state):
        state.mkdir(exist_ok=True)
        work = home.parent / "work"
        here = Stage(requests, home, state, work)
        if is_repo:
            here.git("init", "--quiet", "--initial-branch=main")
            here.git("config", "user.email", "ann@example.org")
            here.git("config", "user.name", "Ann")
            here.write(**{"a.txt": "a\n", "b.txt": "b\n"})
            here.git("add", ".")
            here.git("commit", "--quiet", "-m", "first")
        try:
            yield here
        finally:
            await here.aclose()


def writing(prompt: str, **more: Any) -> SpawnRequest:
    return SpawnRequest(prompt=prompt, sandbox="workspace-write", **more)


def reading(prompt: str, **more: Any) -> SpawnRequest:
    return SpawnRequest(prompt=prompt, **more)


def spawn(jobs: Jobs, request: SpawnRequest, owner: str = "local") -> Job:
    job = jobs.spawn(request, owner)
    jobs.dispatch()
    return job


def facts(value: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(value)
    return plain
