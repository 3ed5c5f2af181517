"""The real Codex with a scripted model in an overlay and in a copy: its sandbox, patches, commands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from laneway.codex.exec.command import argv
from laneway.jobs.isolation.edits import Edits
from laneway.jobs.isolation.merge import Merged, Merges
from laneway.jobs.isolation.overlay import Overlay
from laneway.jobs.isolation.removal import remove
from laneway.jobs.isolation.worktree import Copy
from laneway.wire import guardian
from laneway.wire.child import Exit
from tests.codex.exec.support import Bench, Ended, bench
from tests.jobs.isolation.support import linux_only, need_overlay
from tests.jobs.trees import Tree, git_files, things
from tests.wire.support import Heard, ended, start

KINDS = [pytest.param("overlay", marks=linux_only), "worktree"]


class Scene:
    """A bench, its work folder as a tree, and jobs that work apart from it."""

    def __init__(self, bench_: Bench) -> None:
        self.bench = bench_
        self.state = bench_.home.parent / "state"
        self.tree = Tree(bench_.work.parent, name=bench_.work.name)
        self.tree.write("a.txt", "one\ntwo\nthree\n")
        self.tree.write("src/b.txt", "b\n")
        self.tree.write(".gitignore", ".env\nnode_modules/\n")
        self.tree.commit()
        self.tree.write(".env", "SECRET=1\n")
        self.tree.write("node_modules/pad/index.js", "pad\n")
        self.tree.write("dirty.txt", "mine\n")
        self.baseline = self.tree.snapshot(is_baseline=True)
        self.merges = Merges(self.state / "merges", self.tree.root)

    def job(self, kind: str, name: str = "job") -> Overlay | Copy:
        folder = self.state / name
        folder.parent.mkdir(exist_ok=True)
        if kind == "overlay":
            need_overlay(self.tree.root, folder.parent)
        made = Overlay.of(self.tree.root, folder) if kind == "overlay" else Copy.of(self.tree.root, folder)
        made.begin(self.tree.shadow, self.baseline)
        return made

    def words(self, job: Overlay | Copy, cwd: str = "", **fields: Any) -> list[str]:
        place = job.place_of(str(self.tree.root / cwd))
        command = self.bench.command(cwd=place, sandbox="workspace-write", untrusted=(place,), **fields)
        return job.wrap(argv(command), place)

    async def run(self, job: Overlay | Copy, prompt: str, cwd: str = "") -> Ended:
        return await self.bench.run(prompt, words=self.words(job, cwd))

    def read(self, job: Overlay | Copy) -> Edits:
        return job.read(self.tree.shadow, self.baseline)

    def merge(self, job: Overlay | Copy) -> Merged:
        return self.merges.merge(self.read(job), self.tree.shadow)


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    async with bench() as here:
        made = Scene(here)
        try:
            yield made
        finally:
            remove(made.state)


def outputs(ended_: Ended) -> list[tuple[int, str]]:
    """Of all commands: how they ended, and what they said."""
    return [
        (content["exitCode"], content["output"])
        for content in ended_.contents("tool_result")
        if content["tool"] == "command"
    ]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_worker_edits_its_own_view_and_nothing_else(kind: str) -> None:
    """By patches and by commands; its sandbox confines it as ever; git works. Then all of it is merged."""
    async with scene() as here:
        before = things(here.tree.root), git_files(here.tree.root)
        job = here.job(kind)
        run = await here.run(
            job,
            "%patch src/new.txt made by a patch\n%edit a.txt two => zwei\n"
            "%run echo more >> src/b.txt; rm dirty.txt; cat .env\n"
            "%run git status --short\n%run git diff -- a.txt\n"
            "%run touch ../outside || touch .git/x || echo refused\n%say done",
        )
        assert run.verdict().has_succeeded, run.stderr
        (_, env), (_, status), (_, diff), (_, refused) = outputs(run)
        assert env == "SECRET=1\n"
        assert sorted(status.splitlines()) == [" M a.txt", " M src/b.txt", "?? src/new.txt"]
        assert "+zwei" in diff
        assert refused.count("Read-only file system") == 2
        assert "refused\n" in refused  # the two streams come in either order
        assert not (here.tree.root.parent / "outside").exists()
        assert (things(here.tree.root), git_files(here.tree.root)) == before
        edits = here.read(job)
        assert [change.path for change in edits.changes] == ["a.txt", "dirty.txt", "src/b.txt", "src/new.txt"]
        assert edits.git_writes == ()
        merged = here.merge(job)
        assert merged.is_done
        assert (here.tree.root / "a.txt").read_text() == "one\nzwei\nthree\n"
        assert (here.tree.root / "src/b.txt").read_text() == "b\nmore\n"
        assert (here.tree.root / "src/new.txt").read_text() == "made by a patch\n"
        assert not (here.tree.root / "dirty.txt").exists()
        assert git_files(here.tree.root) == before[1]
        assert "trust_level" not in here.bench.config.read_text()


@linux_only
async def test_a_worker_in_an_overlay_has_the_dependencies_in_place() -> None:
    """And a subfolder to work in; what it writes to them stays in the layer."""
    async with scene() as here:
        job = here.job("overlay")
        run = await here.run(job, "%run cat node_modules/pad/index.js; pwd\n%say x")
        assert outputs(run) == [(0, f"pad\n{here.tree.root}\n")]
        run = await here.run(job, "%run pwd; echo x > here\n%patch there y\n%say x", cwd="src")
        assert outputs(run) == [(0, f"{here.tree.root}/src\n")]
        assert [change.path for change in here.read(job).changes] == ["src/here", "src/there"]


@pytest.mark.parametrize("kind", KINDS)
async def test_two_jobs_at_once_on_one_file(kind: str) -> None:
    """Lines apart from each other are merged; the same line is a conflict, and nothing of it is written."""
    async with scene() as here:
        jobs = [here.job(kind, name) for name in ("one", "two", "three")]
        prompts = (
            "%edit a.txt one => eins\n%say x",
            "%edit a.txt three => drei\n%patch of-two x\n%say x",
            "%edit a.txt one => un\n%patch of-three x\n%say x",
        )
        runs = await asyncio.gather(*(here.run(job, text) for job, text in zip(jobs, prompts, strict=True)))
        assert all(run.verdict().has_succeeded for run in runs)
        assert (here.tree.root / "a.txt").read_text() == "one\ntwo\nthree\n"
        assert here.merge(jobs[0]).paths == ("a.txt",)
        second = here.merge(jobs[1])
        assert (second.paths, second.combined) == (("a.txt", "of-two"), ("a.txt",))
        before = things(here.tree.root)
        third = here.merge(jobs[2])
        assert [(each.path, each.kind) for each in third.conflicts] == [("a.txt", "text")]
        assert things(here.tree.root) == before
        assert (here.tree.root / "a.txt").read_text() == "eins\ntwo\ndrei\n"
        assert [change.path for change in here.read(jobs[2]).changes] == ["a.txt", "of-three"]


@linux_only
async def test_an_interrupted_worker_ends_with_its_mounts() -> None:
    """SIGINT reaches Codex itself, which leaves in its own way; its command is gone, too."""
    async with scene() as here:
        job = here.job("overlay")
        heard = Heard()
        environment = {**os.environ, "CODEX_HOME": str(here.bench.home)}
        child = await start(here.words(job), heard, env=environment, kind=guardian.WORKER)
        child.write(b"%run echo begun > begun; sleep 1000\n%say x")
        child.end_input()
        await asyncio.to_thread(wait_for, job.upper(job.tree) / "begun")  # type: ignore[union-attr]
        child.interrupt(may_kill=True)
        assert await ended(child) == Exit(code=1)
        assert [change.path for change in here.read(job).changes] == ["begun"]
        assert not (here.tree.root / "begun").exists()


def wait_for(path: Path) -> None:
    import time

    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
