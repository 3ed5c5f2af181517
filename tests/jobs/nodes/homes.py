"""Two homes on this machine, joined by `laneway jobs node`: the far one runs real jobs, the near one asks.

They share nothing but the scripted model. The command starts with an empty environment, as a shell on another
machine does.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.base.clock import LoopClock
from laneway.codex import locate
from laneway.core.tools import Caller
from laneway.jobs.model import JobLimits
from laneway.jobs.nodes.backoff import Backoff
from laneway.jobs.nodes.pipe import PipeNode
from laneway.jobs.nodes.pipe_nodes import PipeNodes
from laneway.jobs.nodes.remote_jobs import RemoteJobs
from laneway.jobs.places import JobsLayout
from laneway.jobs.requests import JobDefaults
from laneway.jobs.service import Jobs
from laneway.jobs.tools import JobTools
from tests.jobs.stage import DEADLINE_S, Stage, stage

ANN = Caller(agent_id="", principal="local")
NODE = "gpu1"


class QuickNodes(PipeNodes):
    """Machines that are tried again soon: a test has no minutes."""

    async def node(self, name: str) -> PipeNode:
        if name in self._commands and name not in self._nodes:
            self._nodes[name] = PipeNode(
                name, self._commands[name], self._environment, backoff=Backoff(0.01, 0.1)
            )
        return await super().node(name)


class Near:
    """One process of the near side."""

    def __init__(self, tools: JobTools, nodes: QuickNodes) -> None:
        self.tools = tools
        self.nodes = nodes

    async def ask(self, tool: str, /, caller: Caller = ANN, **arguments: Any) -> dict[str, Any]:
        return await self.tools.answer(f"codex_{tool}", caller, arguments)

    async def spawn(self, prompt: str, caller: Caller = ANN, **more: Any) -> str:
        answer = await self.ask("spawn", caller, prompt=prompt, **({"node": NODE} | more))
        return str(answer["jobId"])

    async def ended(self, *job_ids: str) -> dict[str, Any]:
        """Wait for all of them; their statuses."""
        answer = await self.ask("wait_all", jobIds=list(job_ids), timeoutMs=round(DEADLINE_S * 1000))
        assert not answer["timedOut"], answer
        return {each["jobId"]: each["status"] for each in answer["ended"]}

    async def until(self, job_id: str, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        async with asyncio.timeout(DEADLINE_S):
            while not holds(status := await self.ask("status", jobId=job_id)):
                await asyncio.sleep(0.01)
            return status

    async def events(self, job_id: str) -> list[dict[str, Any]]:
        events, cursor = [], None
        while True:
            page = await self.ask("events", jobId=job_id, **({"cursor": cursor} if cursor else {}))
            events += page["events"]
            cursor = page["nextCursor"]
            if page["done"]:
                return events

    @property
    def pipe(self) -> PipeNode:
        """Once a job needed it."""
        return self.nodes._nodes[NODE]

    def cut(self) -> None:
        """Kill the command, if it runs."""
        if self.pipe.pid:
            try:
                os.kill(self.pipe.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class Homes:
    def __init__(self, there: Stage, top: Path) -> None:
        self.there = there
        self.far: Jobs = there.jobs()
        """What the other machine's own ledger says."""
        self.state = top / "near-state"
        self.site = top / "near-site"
        self.site.mkdir()
        self.places = JobsLayout.of(self.state)
        self.up = top / "up"
        """While this file is there, the other machine can be reached."""
        self.up.touch()
        self._open: list[Jobs] = []
        self.command = self._command(top)

    def _command(self, top: Path) -> str:
        home = top / "far"
        settings = home / ".config" / "laneway" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f'[laneway.jobs.repositories]\nsite = "{self.there.work}"\n')
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": self.there.environment["PYTHONPATH"],
            "XDG_STATE_HOME": str(top / "far-state"),
            "CODEX_HOME": str(self.there.home),
            "LANEWAY_CODEX_BIN": locate.find().path,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(top),
        }
        words = [f"{name}={value}" for name, value in environment.items()]
        start = shlex.join(["env", "-i", *words, sys.executable, "-P", "-m", "laneway", "jobs", "node"])
        reach = f"test -e {self.up} || {{ echo no route to gpu1 >&2; exit 255; }}"
        return shlex.join(["sh", "-c", f"{reach}; exec {start}"])

    def jobs(self, **more: Any) -> Jobs:
        """The near ledger. Nothing is started there: there is no Codex."""
        known: dict[str, Any] = {"cwd": self.site, "codex": "/no/codex", "codex_home": "/no/codex-home"}
        defaults = JobDefaults(work_near=self.places.jobs, **(known | more))
        jobs = Jobs(self.places, defaults, JobLimits(), {"SPAWNERS": "secret"})
        self._open.append(jobs)
        return jobs

    def close(self) -> None:
        for jobs in self._open:
            jobs.close()

    @asynccontextmanager
    async def near(
        self,
        nodes: dict[str, str] | None = None,
        repositories: dict[str, Path] | None = None,
        **more: Any,
    ) -> AsyncIterator[Near]:
        """A process of the near side, for as long as the block runs."""
        made = QuickNodes({NODE: self.command} if nodes is None else nodes, os.environ, lambda mode: -1)
        known = {"site": self.site} if repositories is None else repositories

        def open_remote(jobs: Jobs) -> RemoteJobs:
            return RemoteJobs(jobs, made, known)

        tools = JobTools(lambda: self.jobs(**more), LoopClock(), open_remote=open_remote)
        async with tools.running():
            yield Near(tools, made)


@asynccontextmanager
async def homes(tmp_path: Path, **options: Any) -> AsyncIterator[Homes]:
    async with stage(tmp_path, **options) as there:
        state = tmp_path / "far-state" / "laneway"
        there.places = JobsLayout(state / "jobs", state / "laneway.db")
        both = Homes(there, tmp_path)
        try:
            yield both
        finally:
            both.close()
