"""A Ray cluster of two nodes with a checkout each, and somebody elsewhere who runs jobs on them."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.base.errors import NodeUnreachable
from laneway.codex import locate
from laneway.jobs.nodes.ray_nodes import RayNodes
from laneway.jobs.places import new_job_id
from tests.jobs.ray.cluster import RayTestCluster
from tests.jobs.stage import Stage, stage

LOOK_S = 0.1
DEADLINE_S = 100.0


class RayStage:
    """`near` has the settings and starts the jobs; `a` (the head) and `b` run them."""

    def __init__(self, near: Stage, cluster: RayTestCluster) -> None:
        self.near = near
        self.cluster = cluster
        self.environment = {**near.environment, **cluster.secret}
        self.nodes = RayNodes(cluster.address, self.environment)
        self.go = near.state / "go"
        """What waiting jobs wait for."""

    def home(self, name: str, **settings: int) -> Path:
        """A node's home, with its settings and a checkout that says whose it is."""
        home = self.cluster.node(name).home
        site = home / "site"
        if not site.exists():
            site.mkdir()
            (site / "whose.txt").write_text(f"{name}'s\n")
            for words in (
                ("init", "--quiet"),
                ("add", "."),
                ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "commit", "--quiet", "-m", "first"),
            ):
                subprocess.run(["git", *words], cwd=site, check=True)
        folder = home / ".config" / "laneway"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [f"{key} = {value}" for key, value in settings.items()]
        text = "\n".join(["[laneway.jobs]", *lines, "[laneway.jobs.repositories]", f'site = "{site}"', ""])
        (folder / "config.toml").write_text(text)
        return home

    async def start(self, *names: str, resources: Mapping[str, float] = {"repo:site": 1}) -> None:  # noqa: B006
        """Start these nodes, the head first, and wait until the cluster has them."""
        for name in names:
            node = self.cluster.node(name)
            await asyncio.to_thread(node.start, resources)
            await self.until_alive(name)

    async def until_alive(self, name: str) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while True:
                try:
                    machine = (await self.nodes.machines()).get(name)
                except NodeUnreachable:
                    machine = None
                if machine is not None and machine.node_ids:
                    return
                await asyncio.sleep(LOOK_S)

    async def call(self, name: str, method: str, **params: Any) -> Any:
        return await (await self.nodes.node(name)).call(method, params)

    async def spawn(self, name: str, prompt: str, sandbox: str = "read-only") -> str:
        job_id = new_job_id()
        request = {"prompt": prompt, "sandbox": sandbox}
        await self.call(name, "spawn", jobId=job_id, repository="site", path="", request=request)
        return job_id

    def waiting(self, words: str) -> str:
        """A prompt of a job that runs until `go` is there."""
        return f"%run until test -e {self.go}; do sleep 0.02; done\n%say {words}"

    async def until(self, name: str, job_id: str, *statuses: str) -> dict[str, Any]:
        """Where a job stands, when it stands there."""
        async with asyncio.timeout(DEADLINE_S):
            status = ""
            while True:
                answer = await self.call(name, "watch", jobs={job_id: status}, timeoutMs=20_000)
                assert answer["unknown"] == [], answer
                (job,) = answer["jobs"]
                status = job["status"]
                if status in statuses:
                    return dict(job)
                assert "endedAgoS" not in job, job


@asynccontextmanager
async def ray_stage(tmp_path: Path, **limits: int) -> AsyncIterator[RayStage]:
    """With both nodes running."""
    async with stage(tmp_path) as near:
        environment = {**near.environment, "LANEWAY_CODEX_BIN": locate.find().path}
        cluster = RayTestCluster(environment)
        here = RayStage(near, cluster)
        try:
            for name in ("a", "b"):
                here.home(name, **limits)
            await here.start("a", "b")
            yield here
        finally:
            await here.nodes.close()
            await asyncio.to_thread(cluster.close)
