"""What a worker is told, may do and leaves behind, and how it is stopped: real ones, under supervisors."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from laneway.jobs.listing import JobFilter, listed
from laneway.jobs.model import Job, JobLimits
from laneway.jobs.processes import marked
from laneway.jobs.repo_state import LITTER
from tests.jobs.killing import processes_of
from tests.jobs.stage import Stage, reading, spawn, stage, writing
from tests.jobs.trees import git_files
from tests.wire.support import linux_only

STUBBORN = (
    "setsid sh -c 'trap \"\" TERM INT HUP; touch {0}; while :; do sleep 0.05; done'"
    " </dev/null >/dev/null 2>&1 & until test -e {0}; do sleep 0.02; done"
)
"""A grandchild in a session of its own that ends by SIGKILL only."""
COLOUR = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}


def kinds(here: Stage, jobs: Any, job: Job) -> list[str]:
    return [event["content"].get("kind") for event in here.events(jobs, job) if event["type"] == "error"]


@pytest.mark.covers("004-boss.2", "J-workers.5", "J-supervision.3", "J-supervision.4", "J-supervision.8")
async def test_a_worker_gets_the_contract_and_its_spawners_environment_and_no_lock(tmp_path: Path) -> None:
    """What its spawner had is kept in a private file until it starts, without secrets of ours."""
    async with stage(tmp_path) as here:
        here.environment |= {"GREETING": "hello", "LANEWAY_HTTP_TOKEN": "secret"}
        jobs = here.jobs()
        go = here.state / "go"
        job = jobs.spawn(writing(f"%run echo $GREETING; until test -e {go}; do sleep 0.02; done"))
        kept = here.places.job(job.job_id).environment
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        assert b'"GREETING":"hello"' in kept.read_bytes()
        assert b"secret" not in kept.read_bytes()
        jobs.dispatch()
        await here.until(jobs, job, lambda each: "until" in each.activity)
        assert not kept.exists()
        if sys.platform == "linux":
            pids = processes_of(job.job_id)
            locks = {str(here.places.job(job.job_id).lock), *map(str, here.places.slots.iterdir())}
            assert len(locks & opened(pids["supervisor"])) == len(locks & opened(pids["guardian"])) == 3
            assert locks & opened(pids["worker"]) == set()
        go.touch()
        (ended,) = await here.ended(jobs, job)
        outputs = [event["content"].get("output") for event in here.events(jobs, ended)]
        assert "hello\n" in outputs
        told = str(here.requests[0]["input"])
        for words in ("You are a worker", "Never commit", "no sub-agents", "Modified files:"):
            assert words in told


async def test_a_spawners_environment_may_have_any_bytes(tmp_path: Path) -> None:
    """As where a name is in the encoding of an older system: Codex itself would run no command at all."""
    async with stage(tmp_path) as here:
        here.environment |= {"ODD": os.fsdecode(b"caf\xe9"), "EVEN": "café =x"}
        jobs = here.jobs()
        (ended,) = await here.ended(jobs, spawn(jobs, reading('%run printf %s "$EVEN"')))
        outputs = [event["content"].get("output") for event in here.events(jobs, ended)]
        assert "café =x" in outputs


def opened(pid: int) -> set[str]:
    """The paths of its descriptors."""
    folder = f"/proc/{pid}/fd"
    return {os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)}


@pytest.mark.covers("004-tree.s", "J-workers.6", "J-a2.4", "J-proof.3")
async def test_a_run_leaves_everything_of_the_user_as_it_was(tmp_path: Path) -> None:
    """Index, references, objects, stash, hooks and configuration of git; and the one of Codex."""
    async with stage(tmp_path) as here:
        here.write(**{"a.txt": "not committed\n", "staged.txt": "x\n", "stashed.txt": "y\n"})
        here.git("add", "stashed.txt")
        here.git("stash", "push", "--quiet", "stashed.txt")
        here.git("add", "staged.txt")
        before, config = git_files(here.work), (here.home / "config.toml").read_bytes()
        jobs = here.jobs()
        prompt = "%edit a.txt not committed => changed\n%patch new 1\n%run rm b.txt; git status\n%say Done."
        both = [spawn(jobs, writing(prompt)), spawn(jobs, writing("%patch other 2"))]
        await here.ended(jobs, *both)
        assert git_files(here.work) == before
        assert (here.home / "config.toml").read_bytes() == config


@pytest.mark.covers("004-boss.3", "J-tools.3", "J-tools.6", "J-workers.8", "J-workers.9")
async def test_success_is_a_completed_turn_and_an_output_that_satisfies_the_schema(tmp_path: Path) -> None:
    """Codex itself exits with 0 in all of these. What it refused to run is told, too."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        prompts = ('%say {"colour": "red"}', '%say {"colour": "green"}', "%say red")
        good, wrong, none = (spawn(jobs, reading(prompt, output_schema=COLOUR)) for prompt in prompts)
        refused = spawn(jobs, reading("%run! touch /etc/x\n%say Done."))
        unknown = spawn(here.jobs(codex="/nowhere/codex"), reading("%say x"))
        ended = await here.ended(jobs, good, wrong, none, refused, unknown)
        assert [job.status for job in ended] == ["succeeded", "failed", "failed", "succeeded", "failed"]
        assert [job.failure and job.failure.kind for job in ended] == [
            None,
            "schema",
            "schema",
            None,
            "launch",
        ]
        result = here.result(jobs, good)
        assert (result.has_structured_output, result.structured_output) == (True, {"colour": "red"})
        assert not here.result(jobs, wrong).has_structured_output
        assert "refused" in kinds(here, jobs, refused)


@pytest.mark.covers("J-workers.10", "J-workers.11", "J-workers.12")
async def test_a_job_that_uses_too_many_tokens_is_stopped_and_all_are_counted(tmp_path: Path) -> None:
    """A follow-up counts from where the thread stood."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        first = spawn(jobs, writing("%usage 1000\n%run true\n%usage 2000\n%say x", token_budget=4000))
        spent = spawn(jobs, writing("%usage 5000\n%run true\n%run sleep 1000", token_budget=4000))
        ended, over = await here.ended(jobs, first, spent)
        assert (ended.is_inconsistent, over.is_inconsistent) == (False, True)
        assert (ended.status, ended.tokens) == ("succeeded", 3001)
        assert over.failure is not None
        assert (over.status, over.failure.kind) == ("failed", "budget")
        second = jobs.send(first.job_id, "%usage 500\n%say again")
        jobs.dispatch()
        (again,) = await here.ended(jobs, second)
        assert (again.status, again.tokens) == ("succeeded", 501)
        totals = listed(jobs, "local", JobFilter()).totals
        assert totals.today == sum(job.tokens for job in (ended, over, again))
        assert totals.by_run == {ended.run_id: 3001 + over.tokens + 501}


@pytest.mark.covers("J-tools.5", "J-workers.13")
async def test_time_without_progress_and_time_in_all_are_limited(tmp_path: Path) -> None:
    """A provider that is out of reach is no progress, though Codex says each time that it tries again."""
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        config = (here.home / "config.toml").read_text()
        away = tmp_path / "away"
        away.mkdir()
        url = config.split('base_url = "')[1].split('"')[0]
        (away / "config.toml").write_text(config.replace(url, "http://127.0.0.1:9/v1"))
        hung = spawn(jobs, reading("%hang", stall_ms=1000))
        here.environment["CODEX_HOME"] = str(away)
        alone = spawn(here.jobs(codex_home=str(away)), reading("%say x", stall_ms=1500))
        slow = spawn(jobs, reading("%run sleep 1000", timeout_ms=1500))
        ended = await here.ended(jobs, hung, alone, slow)
        assert [(job.status, job.failure and job.failure.kind) for job in ended] == [
            ("timed_out", "stall"),
            ("timed_out", "stall"),
            ("timed_out", "wall"),
        ]
        assert not ended[0].is_inconsistent, "it could not write"


@pytest.mark.covers(
    "004-tools.4", "004-cancel.s1", "004-cancel.s2", "J-workers.14", "J-workers.15", "J-workers.16"
)
@linux_only
async def test_a_soft_cancellation_never_kills_and_force_leaves_nothing(tmp_path: Path) -> None:
    """Not even what began a session of its own and ignores every other signal. Time limits kill, too."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(JobLimits(), max_sandbox="danger-full-access")
        marks = [tmp_path / "one", tmp_path / "two"]
        soft, late = (
            spawn(
                jobs,
                reading(
                    f"%run {STUBBORN.format(mark)}\n%run sleep 1000", sandbox="danger-full-access", **more
                ),
            )
            for mark, more in zip(marks, ({}, {"timeout_ms": 3000}), strict=True)
        )
        await here.until(jobs, soft, lambda job: "sleep 1000" in job.activity)
        jobs.cancel(soft.job_id)
        (over,) = await here.ended(jobs, late)
        assert (over.status, over.is_inconsistent) == ("timed_out", True)
        assert list(marked(late.job_id)) == []
        # Its Codex is gone by now, and the stubborn one is as it was.
        current = jobs.get(soft.job_id)
        assert (current.status, len(processes_of(soft.job_id)) >= 2) == ("cancelling", True)
        assert marks[0].exists()
        jobs.cancel(soft.job_id, force=True)
        (ended,) = await here.ended(jobs, soft)
        assert (ended.status, ended.is_inconsistent) == ("cancelled", True)
        assert list(marked(soft.job_id)) == []
        assert [name for name in LITTER if (here.work / name).exists()] == []


@pytest.mark.covers("004-boss.4", "004-tree.2", "J-workers.7")
async def test_what_the_contract_forbids_is_told_and_can_be_taken_back(tmp_path: Path) -> None:
    """A commit, where the sandbox does not prevent it."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(max_sandbox="danger-full-access")
        head = here.git("rev-parse", "HEAD")
        job = spawn(
            jobs,
            reading("%patch new 1\n%run git add new; git commit -qm x", sandbox="danger-full-access"),
        )
        await here.ended(jobs, job)
        assert here.git("rev-parse", "HEAD") != head
        (breach,) = here.result(jobs, job).breaches
        command = breach.partition("`")[2].partition("`")[0].split()
        assert command[:2] == ["git", "update-ref"]
        here.git(*command[1:])
        assert here.git("rev-parse", "HEAD") == head

        kept = spawn(jobs, writing("%run git commit --allow-empty -qm x; git branch y"))
        await here.ended(jobs, kept)
        assert here.result(jobs, kept).breaches == ()
        assert here.git("rev-parse", "HEAD") == head


@pytest.mark.covers("004-cancel.s2", "J-workers.18", "J-a2.10")
async def test_a_cancelled_writer_is_marked_and_credited_and_leaves_no_litter(tmp_path: Path) -> None:
    async with stage(tmp_path) as here:
        jobs = here.jobs()
        job = spawn(jobs, writing("%patch new 1\n%run sleep 1000"))
        await here.until(jobs, job, lambda each: "sleep" in each.activity)
        jobs.cancel(job.job_id, force=True)
        (ended,) = await here.ended(jobs, job)
        assert (ended.status, ended.is_inconsistent) == ("cancelled", True)
        assert [file.path for file in here.result(jobs, job).modified_files] == ["new"]
        assert here.git("status", "--porcelain") == "?? new\n"


@pytest.mark.covers("004-a2.1", "004-a2.2", "004-a2.3", "J-a2.2")
@pytest.mark.parametrize("is_dirty", [True, False])
async def test_a_job_may_demand_a_clean_tree(tmp_path: Path, is_dirty: bool) -> None:
    """What the tree was like is recorded with the run."""
    async with stage(tmp_path) as here:
        if is_dirty:
            here.write(**{"b.txt": "mine\n"})
        jobs = here.jobs()
        job = spawn(jobs, writing("%patch new 1", require_clean=True))
        (ended,) = await here.ended(jobs, job)
        assert ended.status == ("failed" if is_dirty else "succeeded")
        if is_dirty:
            assert ended.failure is not None
            assert "uncommitted changes" in ended.failure.text
            job = spawn(jobs, writing("%patch new 1"))
            await here.ended(jobs, job)
        run = jobs.runs.open_run(str(here.work))
        assert run is not None
        assert run.porcelain == (" M b.txt\n" if is_dirty else "")
        assert run.head == here.git("rev-parse", "HEAD").strip()


@pytest.mark.covers("J-a2.8")
async def test_a_patch_in_an_ignored_folder_is_told_because_no_rollback_covers_it(tmp_path: Path) -> None:
    """What a job changes elsewhere is credited as ever."""
    async with stage(tmp_path) as here:
        here.write(**{".gitignore": "build/\n"})
        (here.work / "build").mkdir()
        jobs = here.jobs()
        job = spawn(jobs, writing("%patch build/new.txt 1\n%patch seen.txt 1\n%say Done."))
        await here.ended(jobs, job)
        result = here.result(jobs, job)
        assert [file.path for file in result.modified_files] == ["seen.txt"]
        assert result.warnings == (
            "1 file was changed where snapshots do not look, so that no rollback covers it: build/new.txt.",
        )
