"""`laneway mcp` with the job tools, on a state folder and a repository of its own, and a client of it.

The workers are real ones: the real Codex with the scripted model. When the block ends, so do its jobs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.mcp_servers import Server, Talk, servers
from bench.rig import CHILD_S, Rig
from laneway.jobs.ledger import Ledger
from laneway.jobs.model import Job, JobLimits
from laneway.jobs.places import JobsLayout
from laneway.jobs.requests import JobDefaults
from laneway.jobs.service import Jobs

HANG = "%hang"
"""The prompt of a job that runs until it is cancelled."""
LOOK_S = 0.02
"""Between two looks at the ledger while this process waits for something."""
GIT_IDENTITY = ("-c", "user.name=Bench", "-c", "user.email=bench@example.org")


class JobServer:
    """One server, its client, and the jobs as this process sees them."""

    def __init__(self, rig: Rig, folder: Path) -> None:
        self.repository = new_repository(folder / "repository")
        self.codex = rig.codex
        self.environment = environment = {
            **servers(rig)["mcp"].environment,
            "CODEX_HOME": str(rig.home),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
        }
        argv = (sys.executable, "-m", "laneway", "mcp", "--tools", "jobs")
        self.talk = Talk(Server("mcp", argv, environment, str(self.repository)))
        self.talk.greet()
        self.places = JobsLayout.of(folder / "state" / "laneway")
        defaults = JobDefaults(
            cwd=self.repository, codex=rig.codex, codex_home=str(rig.home), work_near=self.places.jobs
        )
        self.jobs = Jobs(self.places, defaults, JobLimits(), environment)
        self.ledger: Ledger = self.jobs.ledger

    @property
    def pid(self) -> int:
        return self.talk.process.pid

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.talk.call(tool, arguments)["structuredContent"]
        return answer

    def spawn(self, prompt: str, sandbox: str = "read-only") -> str:
        limit_ms = int(CHILD_S * 1000)  # should this process be killed, its jobs do not stay behind
        answer = self.call("codex_spawn", prompt=prompt, sandbox=sandbox, timeoutMs=limit_ms)
        return str(answer["jobId"])

    def fill_slots(self) -> list[str]:
        """Start as many workers as may run at once, and wait until each of them has a thread."""
        limits = self.jobs.limits
        ids = [self.spawn(HANG) for _ in range(limits.read)]
        ids += [self.spawn(HANG, "workspace-write") for _ in range(limits.write)]
        self.wait(lambda: all(job.thread_id for job in self.ledger.many(ids).values()))
        return ids

    def wait(self, holds: Any) -> None:
        until = time.monotonic() + CHILD_S
        while not holds():
            if time.monotonic() > until:
                raise RuntimeError("the jobs are not where they should be")
            time.sleep(LOOK_S)

    def running(self) -> list[Job]:
        return self.ledger.active()

    def end(self, job_id: str) -> None:
        self.jobs.cancel(job_id, force=True)
        self.wait(lambda: self.jobs.get(job_id).has_ended)

    def close(self) -> None:
        """End all jobs; those that wait are forgotten, so that none of them starts meanwhile."""
        try:
            self.ledger.database.write(lambda c: c.execute("DELETE FROM jobs WHERE status = 'queued'"))
            for job in self.running():
                self.jobs.cancel(job.job_id, force=True)
            self.wait(lambda: not self.running())
        finally:
            self.talk.hang_up()
            self.jobs.close()


@contextmanager
def job_server(rig: Rig) -> Iterator[JobServer]:
    with TemporaryDirectory(dir=rig.work, ignore_cleanup_errors=True) as folder:
        server = JobServer(rig, Path(folder))
        try:
            yield server
        finally:
            server.close()


def new_repository(folder: Path, files: int = 2, in_folder: int = 100) -> Path:
    """A repository with one commit of small files, so many in each folder."""
    for number in range(files):
        path = folder / f"folder-{number // in_folder}" / f"file-{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" + "a line of a source file, not too short\n" * 40)
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("add", "."),
        (*GIT_IDENTITY, "commit", "--quiet", "--no-gpg-sign", "-m", "first"),
    ):
        subprocess.run(["git", *words], cwd=folder, check=True, env=plain_git())
    return folder


def plain_git() -> dict[str, str]:
    """An environment in which git knows no settings of this machine."""
    return {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


def timed(work: Any, times: int) -> list[float]:
    """The durations in milliseconds."""
    took_ms = []
    for _ in range(times):
        before = time.perf_counter()
        work()
        took_ms.append((time.perf_counter() - before) * 1e3)
    return took_ms
