"""Repositories that want to have a program run, or more allowed, when jobs write in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from laneway.base.errors import LanewayError
from laneway.jobs.attribution import EditWindow, JobTraces
from laneway.jobs.isolation.isolated import isolated
from laneway.jobs.isolation.removal import remove
from laneway.jobs.ledger import Ledger
from laneway.jobs.model import Job
from laneway.jobs.places import JobsLayout, new_job_id
from laneway.jobs.repo_state import repo_state
from laneway.jobs.requests import JobDefaults
from laneway.jobs.resolving import Resolution, resolve
from laneway.jobs.runs import TreeRuns
from laneway.jobs.service import Jobs
from tests.adversary.hostile_repository import Hostile, Trap, hooks, traps
from tests.cli.jobs.support import shell
from tests.jobs.servers import server
from tests.jobs.stage import reading, spawn, stage

LIMITS = """
[laneway.jobs]
k_read = 64
k_write = 32
max_jobs = 64
max_sandbox = "danger-full-access"
timeout_ms = 86400000
run_expiry_hours = 1
executor = "ray"
nodes = { evil = { command = "touch was-run" } }
"""


class Boss:
    """A write job in a hostile repository, and everything that is done about it, but for its Codex."""

    def __init__(self, state: Path, made: Hostile) -> None:
        self.made = made
        self.tree = str(made.root.resolve())
        places = JobsLayout.of(state)
        defaults = JobDefaults(cwd=made.root, codex="codex", codex_home=str(state), work_near=places.jobs)
        self.jobs = Jobs(places, defaults, limits=_none(), environment=made.environment())
        self.refusals: list[str] = []
        self.runs = TreeRuns(places, self.jobs.ledger, self.tree)

    def run(self) -> None:
        """From the border at which it begins to the rollback and back."""
        ledger: Ledger = self.jobs.ledger
        job = ledger.add(
            Job(job_id=new_job_id(), number=0, owner="local", mode="write", status="queued", tree=self.tree)
        )
        ledger.change(job.job_id, expects=("queued",), status="starting")
        run = self.runs.begin(job, require_clean=False)
        repo_state(self.tree)
        self.made.repo.write("tracked.txt", "by the job\n")
        self.made.repo.write("made.txt", "by the job\n")
        self.runs.end(job, run.run_id, JobTraces(windows=(EditWindow(start=0.0),)))
        ledger.end(job.job_id, "succeeded")
        self.resolve("show")
        self.resolve("rollback")
        assert (self.made.root / "tracked.txt").read_text() == "changed\n"
        self.resolve("undo")
        assert (self.made.root / "made.txt").read_text() == "by the job\n"
        self.resolve("accept")

    def resolve(self, action: Any, **more: Any) -> None:
        answer = resolve(self.jobs, "local", Resolution(action=action, cwd=self.tree, **more))
        assert answer.get("ending", "done") == "done", answer

    def work_apart(self, kind: Any, folder: Path) -> None:
        """What a job of its own view needs; a repository that cannot have one is refused in a sentence."""
        baseline = self.runs.shadow.snapshot()
        try:
            own = isolated(kind, self.made.root, folder)
            own.begin(self.runs.shadow, baseline)
            own.read(self.runs.shadow, baseline)
        except LanewayError as problem:
            self.refusals.append(str(problem))
        finally:
            remove(folder)


def _none() -> Any:
    from laneway.jobs.model import JobLimits

    return JobLimits(read=0, write=0, total=0)


@pytest.mark.covers("J-a2.6")
@traps
def test_a_job_and_its_rollback_run_nothing_that_a_repository_brings(
    tmp_path: Path, trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor do its layer and its copy."""
    made = trap.set(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, made.environment()[name])
    boss = Boss(tmp_path / "state", made)
    try:
        boss.run()
        assert made.was_run() == ""
        for kind in ("worktree", "overlay"):
            boss.work_apart(kind, tmp_path / "state" / "apart")
        assert made.was_run() == ""
        assert all(refusal.endswith(".") for refusal in boss.refusals)
    finally:
        boss.jobs.close()


@pytest.mark.covers("J-workers.7")
async def test_a_worker_that_writes_into_gits_own_folder_has_nothing_run_by_us(tmp_path: Path) -> None:
    """Hooks, a monitor and a filter, written while the job ran; nothing of it is rolled back either."""
    async with stage(tmp_path) as here:
        program = tmp_path / "program"
        mark = tmp_path / "was-run"
        program.write_text(f"#!/bin/sh\necho $0 $* >> {mark}\ncat\n")
        program.chmod(0o755)
        jobs = here.jobs(max_sandbox="danger-full-access")
        hooked = "; ".join(
            f"cp {program} .git/hooks/{name}" for name in ("post-index-change", "reference-transaction")
        )
        script = (
            f"%run {hooked}; git config core.fsmonitor {program}; git config filter.x.clean {program};"
            " echo '* filter=x' > .git/info/attributes; echo x >> a.txt; git update-ref refs/heads/mine HEAD"
        )
        job = spawn(jobs, reading(script, sandbox="danger-full-access"))
        await here.ended(jobs, job)
        mark.unlink(missing_ok=True)  # what the worker had git do itself
        result = here.result(jobs, job)
        assert [file.path for file in result.modified_files] == ["a.txt"]
        assert ["refs/heads/mine" in breach for breach in result.breaches] == [True]
        answer = resolve(jobs, "local", Resolution(action="rollback", cwd=str(here.work)))
        assert answer["paths"] == ["a.txt"]
        assert (here.work / ".git/hooks/post-index-change").exists()
        assert not mark.exists()


async def test_a_hostile_repository_of_real_jobs(tmp_path: Path) -> None:
    """With the real supervisor: what Codex itself has git do is not ours."""
    made = Trap(hooks, ("add", "new.txt")).set(tmp_path)
    made.config("core.fsmonitor", str(made.program))
    made.repo.write(".gitattributes", "* filter=evil\n")
    made.config("filter.evil.clean", str(made.program))
    made.was_run()
    async with stage(tmp_path) as here:
        jobs = here.jobs(cwd=made.root)
        job = spawn(jobs, reading("%edit tracked.txt changed => edited", sandbox="workspace-write"))
        (ended,) = await here.ended(jobs, job)
        assert ended.status == "succeeded", here.log_of(job.job_id)
        assert [file.path for file in here.result(jobs, job).modified_files] == ["tracked.txt"]
        assert made.was_run(but_by="codex") == ""


@pytest.mark.covers("J-supervision.5", "J-nodes.2")
@pytest.mark.parametrize("name", [".laneway.toml", ".atm.toml"])
async def test_a_repository_widens_no_limit_of_jobs(tmp_path: Path, name: str) -> None:
    """Not even one that is trusted: these are the user's own settings."""
    async with shell(tmp_path) as person:
        person.here.write(**{name: LIMITS})
        async with server(person) as client:
            listed = await client.content("codex_list")
            assert listed["slots"] == {"read": "0/8", "write": "0/2", "total": "0/10", "queued": "0"}
            refused = (await client.call("codex_spawn", prompt="%say x", sandbox="danger-full-access"))[
                "result"
            ]
            assert refused["isError"]
            assert "Jobs may go as far as workspace-write" in refused["content"][0]["text"]
        assert not (person.here.work / "was-run").exists()
