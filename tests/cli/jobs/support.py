"""`laneway jobs` on the jobs of a stage: real jobs, a scripted model, a state folder of their own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from laneway.jobs.model import Job
from laneway.jobs.places import JobsLayout
from laneway.jobs.service import Jobs
from tests.cli.support import Ran, laneway
from tests.jobs.stage import Stage, stage


class Shell:
    """A person's shell in the stage's repository."""

    def __init__(self, here: Stage, top: Path) -> None:
        self.here = here
        self.env = {
            "HOME": str(top),
            "XDG_STATE_HOME": str(top / "xdg"),
            "CODEX_HOME": str(here.home),
            "PYTHONPATH": here.environment["PYTHONPATH"],
        }
        state = top / "xdg" / "laneway"
        here.places = JobsLayout(state / "jobs", state / "laneway.db")
        self.jobs: Jobs = here.jobs()

    async def run(self, *words: str, stdin: str | None = None, **env: str) -> Ran:
        """`laneway jobs …`; a worker or a folder that it needs is named by the words."""
        return await laneway("jobs", *words, env={**self.env, **env}, stdin=stdin)

    async def out(self, *words: str, stdin: str | None = None, **env: str) -> str:
        """What it prints, where nothing goes wrong."""
        ran = await self.run(*words, stdin=stdin, **env)
        assert (ran.code, ran.err) == (0, ""), (ran.out, ran.err)
        return ran.out

    async def data(self, *words: str, code: int = 0, **env: str) -> dict[str, Any]:
        ran = await self.run(*words, "--json", **env)
        assert (ran.code, ran.err) == (code, ""), (ran.out, ran.err)
        found: dict[str, Any] = json.loads(ran.out)
        return found

    async def spawn(self, prompt: str, *words: str) -> Job:
        return self.jobs.get((await self.out("spawn", "-C", str(self.here.work), *words, prompt)).strip())


@asynccontextmanager
async def shell(tmp_path: Path, **options: Any) -> AsyncIterator[Shell]:
    async with stage(tmp_path, **options) as here:
        yield Shell(here, tmp_path)
