"""A Ray cluster of two nodes with a checkout each, and somebody elsewhere who runs jobs on them.

Nothing is started on the near side: it has no Codex, and no place for a job.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.base.clock import LoopClock
from laneway.base.errors import NodeUnreachable
from laneway.codex import locate
from laneway.core.tools import Caller
from laneway.jobs.model import JobLimits
from laneway.jobs.nodes.backoff import Backoff
from laneway.jobs.nodes.ray_nodes import RayNodes
from laneway.jobs.nodes.remote_jobs import RemoteJobs
from laneway.jobs.places import JobsLayout
from laneway.jobs.requests import JobDefaults
from laneway.jobs.service import Jobs
from laneway.jobs.tools import JobTools
from tests.jobs.ray.cluster import RayTestCluster
from tests.jobs.stage import Stage, stage

ANN = Caller(agent_id="", principal="local")
HAS_SITE: Mapping[str, float] = {"repo:site": 1}
NO_ROOM = JobLimits(read=-9, write=-9, total=-9)
LOOK_S = 0.1
DEADLINE_S = 120.0
WAITS = 30
"""Commands of a waiting job, each of which takes ten seconds at most: longer than any test."""


class RayStage:
    """`a` (the head) and `b` run the jobs that `ask` is asked for."""

    def __init__(self, there: Stage, cluster: RayTestCluster, top: Path) -> None:
        self.cluster = cluster
        self.requests = there.requests
        """What the model of all nodes was sent."""
        self.go = top / "go"
        """What waiting jobs wait for."""
        self.environment = {**there.environment, **cluster.secret}
        self.site = top / "near-site"
        self.site.mkdir()
        self.places = JobsLayout.of(top / "near-state")
        self._stack = AsyncExitStack()
        self.tools: JobTools
        self.nodes: RayNodes

    async def open_near(self) -> None:
        """A process of the near side: the one before is gone, and whatever it had in memory."""
        await self._stack.aclose()
        jobs = Jobs(self.places, self._defaults(), NO_ROOM, {"SPAWNERS": "secret"})
        self.nodes = self.nodes_of(jobs, self.cluster.address)
        remote = RemoteJobs(jobs, self.nodes, {"site": self.site})
        self.tools = JobTools(lambda: jobs, LoopClock(), open_remote=lambda _: remote)
        await self._stack.enter_async_context(self.tools.running())
        self._stack.push_async_callback(remote.close)

    def nodes_of(self, jobs: Jobs, address: str, environment: Mapping[str, str] | None = None) -> RayNodes:
        return RayNodes(address, environment or self.environment, jobs, backoff=Backoff(0.05, 0.5))

    def _defaults(self) -> JobDefaults:
        return JobDefaults(
            cwd=self.site, codex="/no/codex", codex_home="/no/codex-home", work_near=self.places.jobs
        )

    async def aclose(self) -> None:
        await self._stack.aclose()

    # ── the far side ───────────────────────────────────────────────────────

    def furnish(self, name: str, **settings: int) -> Path:
        """A node's home, with its settings and a checkout that says whose it is."""
        home = self.cluster.node(name).home
        site = home / "site"
        site.mkdir()
        (site / "whose.txt").write_text(f"{name}'s\n")
        ann = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        for words in (("init", "--quiet"), ("add", "."), (*ann, "commit", "--quiet", "-m", "first")):
            subprocess.run(["git", *words], cwd=site, check=True)
        folder = home / ".config" / "laneway"
        folder.mkdir(parents=True)
        lines = [f"{key} = {value}" for key, value in settings.items()]
        text = "\n".join(["[laneway.jobs]", *lines, "[laneway.jobs.repositories]", f'site = "{site}"', ""])
        (folder / "config.toml").write_text(text)
        return home

    async def start(
        self, name: str, resources: Mapping[str, float] = HAS_SITE, extra: Mapping[str, str] | None = None
    ) -> None:
        """Start a node, the head before others, and wait until the cluster has it."""
        await asyncio.to_thread(self.cluster.node(name).start, resources, extra or {})
        async with asyncio.timeout(DEADLINE_S):
            while not await self._is_alive(name):
                await asyncio.sleep(LOOK_S)

    async def _is_alive(self, name: str) -> bool:
        try:
            machine = (await self.nodes.machines()).get(name)
        except NodeUnreachable:
            return False
        return machine is not None and bool(machine.node_ids)

    # ── jobs ───────────────────────────────────────────────────────────────

    async def ask(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return await self.tools.answer(f"codex_{tool}", ANN, arguments)

    async def spawn(self, node: str, prompt: str, **more: Any) -> str:
        return str((await self.ask("spawn", prompt=prompt, node=node, **more))["jobId"])

    def waiting(self, words: str) -> str:
        """A prompt of a job that runs until `go` is there."""
        # Codex waits ten seconds for a command, then goes on with the turn.
        wait = f"%run until test -e {self.go}; do sleep 0.05; done\n"
        return wait * WAITS + f"%say {words}"

    async def until(self, job_id: str, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        async with asyncio.timeout(DEADLINE_S):
            while not holds(status := await self.ask("status", jobId=job_id)):
                await asyncio.sleep(LOOK_S)
            return status

    async def until_running(self, *job_ids: str) -> None:
        """And at work: its thread has begun."""
        for job_id in job_ids:
            await self.until(job_id, lambda status: "until test" in status.get("activity", ""))

    async def until_unreachable(self, job_id: str) -> None:
        """It is shown as it last was, until it is not known how it is; never as anything else."""
        seen = await self.until(job_id, lambda status: status["status"] != "running")
        assert (seen["status"], seen.get("lastStatus")) == ("unreachable", "running"), seen

    async def ended(self, *job_ids: str) -> dict[str, Any]:
        """Wait for all of them; their statuses."""
        arguments = {"jobIds": list(job_ids), "timeoutMs": round(DEADLINE_S * 1000)}
        answer = await self.ask("wait_all", **arguments)
        assert not answer["timedOut"], answer
        return {each["jobId"]: each["status"] for each in answer["ended"]}

    async def events(self, job_id: str) -> list[dict[str, Any]]:
        events, cursor = [], None
        while True:
            page = await self.ask("events", jobId=job_id, **({"cursor": cursor} if cursor else {}))
            events += page["events"]
            cursor = page["nextCursor"]
            if page["done"]:
                return events

    def threads(self) -> int:
        """How many threads the model has seen begin: one for each job that was started."""
        return sum("function_call_output" not in str(request["input"]) for request in self.requests)


@asynccontextmanager
async def ray_stage(tmp_path: Path, **settings: int) -> AsyncIterator[RayStage]:
    """Two nodes with these settings; `start` starts them."""
    async with stage(tmp_path) as there:
        cluster = RayTestCluster({**there.environment, "LANEWAY_CODEX_BIN": locate.find().path})
        here = RayStage(there, cluster, tmp_path)
        try:
            for name in ("a", "b"):
                here.furnish(name, **settings)
            await here.open_near()
            yield here
        finally:
            await here.aclose()
            await asyncio.to_thread(cluster.close)
