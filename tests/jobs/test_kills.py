"""kill -9 of whatever belongs to jobs: each ends all the same, and nothing of it is left."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from laneway.jobs.isolation.isolated import why_not
from laneway.jobs.model import JobLimits, Run
from laneway.jobs.resolving import Resolution, resolve
from laneway.jobs.runs import Judged, TreeRuns
from tests.cli.jobs.support import Shell, shell
from tests.core.support import until
from tests.doors.mcp.support import Client
from tests.jobs.killing import PAUSE_S, all_ended, is_stopped, kill, nothing_is_left, processes_of, runs
from tests.jobs.servers import start
from tests.jobs.stage import reading, spawn, stage, writing
from tests.wire.support import linux_only

KILLS = 300 if os.environ.get("LANEWAY_CHAOS") else 12
LIMITS = JobLimits(read=1, write=2, total=3)
JOBS = 4
"""More than run at once: the last one is started by whoever is there when another one has ended."""
DECK = (
    ("supervisor",),
    ("guardian",),
    ("worker",),
    ("supervisor", "guardian"),
    ("guardian", "worker"),
    ("supervisor", "guardian", "looker"),
)
"""Who of one job is killed, and whoever looks after it then."""
MOMENTS = 9
"""A job has about so many events."""
PROMPTS = (
    "# {0}\n%run true\n%think hm\n%run echo x\n%say Done.",
    "# {0}\n%patch p.{0} 1\n%run true\n%patch q.{0} 2\n%say Done.",
    "# {0}\n%run seq 20 | while read n; do echo x > s$n.{0}; done\n%patch t.{0} 2\n%say Done.",
)


@pytest.mark.covers("J-tools.5", "J-supervision.2", "J-supervision.4", "J-a2.10")
@linux_only
async def test_whoever_of_a_job_is_killed_it_ends_and_frees_its_slots(tmp_path: Path) -> None:
    """Where the supervisor cannot write the end, whoever looks next does; the edits are known."""
    fates = {
        ("supervisor",): "lost",
        ("guardian",): "failed",
        ("worker",): "failed",
        ("supervisor", "guardian"): "lost",
        ("guardian", "supervisor", "worker"): "lost",
    }
    limits = JobLimits(read=0, write=len(fates), total=len(fates))
    async with stage(tmp_path) as here:
        jobs = here.jobs(limits)
        started = [
            spawn(jobs, writing(f"%patch x{number} 1\n%run sleep 1000")) for number in range(len(fates))
        ]
        for job in started:
            await here.until(jobs, job, lambda each: "sleep" in each.activity)
        for job, names in zip(started, fates, strict=True):
            pids = processes_of(job.job_id)
            for name in names:
                assert kill(pids[name])
        ended = await all_ended(here, jobs, [job.job_id for job in started])
        await nothing_is_left(here, jobs, ended, limits)
        assert [job.status for job in ended] == list(fates.values())
        for number, job in enumerate(ended):
            assert [(f.path, f.certainty) for f in here.result(jobs, job).modified_files] == [
                (f"x{number}", "patch")
            ]
            assert job.is_inconsistent, "it may have been writing a file"


@pytest.mark.covers("J-supervision.2")
@linux_only
async def test_what_hides_in_a_session_and_an_environment_of_its_own_ends_with_its_job(
    tmp_path: Path,
) -> None:
    """Although everybody who knew it is killed at once."""
    async with stage(tmp_path) as here:
        jobs = here.jobs(max_sandbox="danger-full-access")
        stray = tmp_path / "stray"
        hidden = f"env -i setsid sh -c 'echo $$ > {stray}; exec sleep 1000' </dev/null >/dev/null 2>&1 &"
        hidden += f" until test -e {stray}; do sleep 0.02; done"  # Codex ends its group after the command
        job = spawn(jobs, reading(f"%run {hidden}\n%run sleep 1000", sandbox="danger-full-access"))
        await here.until(jobs, job, lambda each: "sleep 1000" in each.activity and stray.exists())
        pid = int(stray.read_text())
        pids = processes_of(job.job_id).values()
        for each in pids:  # none of them sees another one die
            os.kill(each, signal.SIGSTOP)
        await until(lambda: all(is_stopped(each) for each in pids))
        for each in reversed(pids):  # the worker dies with its guardian
            assert kill(each)
        assert runs(pid)
        (ended,) = await all_ended(here, jobs, [job.job_id])
        assert ended.status == "lost"
        assert not runs(pid)


@pytest.mark.covers("J-tools.9", "J-supervision.1", "J-supervision.4", "J-a2.10", "J-a2.11", "J-proof.2")
@linux_only
@pytest.mark.chaos
@pytest.mark.timeout(3600)
async def test_kills_at_any_moment_lose_no_job_no_slot_and_no_event(tmp_path: Path) -> None:
    """Of supervisors, guardians, workers, servers, lookers, and in the middle of a rollback."""
    seed = random.randrange(2**32)
    async with shell(tmp_path) as person:
        config = tmp_path / ".config" / "laneway" / "config.toml"
        config.parent.mkdir(parents=True)
        numbers = (f"k_{kind} = {getattr(LIMITS, kind)}" for kind in ("read", "write"))
        config.write_text("\n".join(["[laneway.jobs]", *numbers, f"max_jobs = {LIMITS.total}"]))
        rounds = Rounds(person, random.Random(seed))
        while rounds.kills.total() < KILLS:
            await rounds.play(f"seed {seed}, round {rounds.number}")
        print(dict(rounds.kills), f"in {rounds.number} rounds", dict(rounds.statuses))
        kinds = {"server", "rollback", *itertools.chain(*DECK)}
        assert rounds.kills.keys() >= kinds or KILLS < 100, f"seed {seed}: {rounds.kills}"
        # As many as ever run at once again.
        again = [rounds.jobs.spawn(writing(f"%run sleep 1000  # {number}")) for number in range(3)]
        assert len(rounds.jobs.dispatch()) == LIMITS.write, again


ISOLATIONS = ("shared", "shared", "worktree", "shared", "overlay")
"""Of writing jobs: most share the tree; the others are killed while they are merged, too."""


class Rounds:
    """Jobs of servers that are killed, read by somebody who remembers what it has read."""

    def __init__(self, person: Shell, chance: random.Random) -> None:
        self.person = person
        self.here = person.here
        self.jobs = person.here.jobs(LIMITS)
        self.chance = chance
        self.number = 0
        self.kills: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self._cards = self._drawn()
        self._ages = itertools.count()
        self._known: set[str] = set()
        self._rollbacks = 0
        no_overlay = why_not("overlay", person.here.work, person.here.places.jobs)
        self._isolations = ["worktree" if no_overlay and each == "overlay" else each for each in ISOLATIONS]

    def _drawn(self) -> Iterator[tuple[str, ...]]:
        while True:
            yield from self.chance.sample(DECK, len(DECK))

    async def play(self, where: str) -> None:
        """One round: some jobs, some kills, and everything is as it should be."""
        self.number += 1
        watching: list[asyncio.Task[None]] = []
        client = Client(await start(self.person, "mcp"))
        try:
            await client.greet({})
            spawned = [self._spawn(client) for _ in range(JOBS)]
            if self.number % 2:
                await asyncio.wait(spawned[: self.chance.randrange(1, JOBS)])
                self._kill("server", client.process.pid)
            answers = await asyncio.gather(*spawned, return_exceptions=True)
            told = [
                each["result"]["structuredContent"]["jobId"] for each in answers if isinstance(each, dict)
            ]
            readers = [Reader(self, job_id) for job_id in self._unresolved()]
            assert set(told) <= {reader.job_id for reader in readers}, where
            watching = [asyncio.create_task(reader.run()) for reader in readers]
            killing = asyncio.gather(*(self._kill_some(reader) for reader in readers))
            ended = await all_ended(self.here, self.jobs, [reader.job_id for reader in readers])
            await asyncio.gather(killing, *watching)
        finally:
            for task in watching:
                task.cancel()
            await client.aclose()
        await nothing_is_left(self.here, self.jobs, ended, LIMITS)
        for reader, job in zip(readers, ended, strict=True):
            assert self.here.events(self.jobs, job) == reader.seen, (where, job)
            assert job.status in ("succeeded", "failed", "lost"), (where, job)
            self.statuses[job.status] += 1
        await self._resolve(where)

    def _spawn(self, client: Client) -> asyncio.Future[Any]:
        age = next(self._ages)
        prompt = PROMPTS[age % len(PROMPTS)]
        asked = {"prompt": prompt.format(age)}
        if prompt != PROMPTS[0]:
            asked |= {"sandbox": "workspace-write", "isolation": self._isolations[age % len(ISOLATIONS)]}
        return client.start("codex_spawn", **asked)

    def _unresolved(self) -> list[str]:
        """The jobs of this round."""
        found = [job.job_id for job in self.jobs.ledger.listed(limit=JOBS) if job.job_id not in self._known]
        self._known.update(found)
        return sorted(found)

    async def _kill_some(self, reader: Reader) -> None:
        """After so many events of this job."""
        await reader.wait_for(self.chance.randrange(MOMENTS))
        card = next(self._cards)
        pids = processes_of(reader.job_id)
        for name in card:
            if name in pids:
                self._kill(name, pids[name])
        if "looker" in card:  # who ends the lost job is killed over it
            looker = await start(self.person, "jobs", "list")
            for _ in range(self.chance.randrange(10)):
                await asyncio.sleep(PAUSE_S)
            if looker.returncode is None:
                self._kill("looker", looker.pid)
            await looker.wait()

    def _kill(self, name: str, pid: int) -> None:
        self.kills[name] += kill(pid)

    # ── the run ────────────────────────────────────────────────────────────

    async def _resolve(self, where: str) -> None:
        """What is certain is true, and the tree is given back, in spite of a kill in the middle of it."""
        run = self.jobs.runs.open_run(str(self.here.work))
        if run is None:
            return
        runs = TreeRuns(self.jobs.places, self.jobs.ledger, run.tree)
        judged = runs.judge(run)
        for claim in judged.credits.claims:
            if claim.certainty in ("overlay", "patch", "alone"):
                owner = claim.path.rpartition(".")[2]
                if owner != self.jobs.get(claim.job_id).title[2:]:
                    pytest.fail(f"{where}: {claim}\n{self._history(run, judged)}")
        if self.number % 2 == 0:
            edited = self.files()
            process = await start(self.person, "jobs", "resolve", "rollback")
            await self._wait_for_a_trace(runs, process)
            if process.returncode is None:
                self._kill("rollback", process.pid)
            await process.wait()
            resolve(self.jobs, "local", Resolution(action="show", run=run.run_id))
            was_begun = bool(runs.rollbacks.records()[self._rollbacks :])
            assert (self.files() == edited) != was_begun, where
        if self.jobs.runs.open_run(run.tree) is not None:
            answer = resolve(self.jobs, "local", Resolution(action="rollback", run=run.run_id))
            if answer["ending"] != "done":
                pytest.fail(f"{where}: {answer}\n{self._history(run, judged)}")
        left = self.files().keys() - {"a.txt", "b.txt"}
        judged = runs.judge(run)
        if not left <= {each.path for each in judged.credits.claims if each.certainty == "uncertain"}:
            pytest.fail(f"{where}: {left}\n{self._history(run, judged)}")
        self._rollbacks = len(runs.rollbacks.records())
        self.here.git("clean", "--force", "--quiet")

    def _history(self, run: Run, judged: Judged) -> str:
        """All that the judgement was made from."""
        lines = [f"border {each.at:.3f} {each.active}" for each in self.jobs.runs.borders(run.run_id)]
        for job in judged.jobs:
            span = f"{job.started_at:.3f}-{job.ended_at:.3f}"
            lines.append(f"{job.title} {job.job_id} {job.status} {span} {job.failure}")
            lines += [f"    {window}" for window in judged.shown[job.job_id].windows]
            lines += [f"    {event}" for event in self.here.events(self.jobs, job)]
            lines += [f"    {line}" for line in self.here.log_of(job.job_id).splitlines()]
        return "\n".join(lines)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.here.work.iterdir() if path.is_file()}

    async def _wait_for_a_trace(self, runs: TreeRuns, process: Process) -> None:
        """Until the rollback has begun: its contents, its journal, its first file aside, its commit."""
        folder, trace = self.chance.choice(
            (
                (runs.rollbacks.folder, "*/contents"),
                (runs.rollbacks.folder, "*/journal.json"),
                (self.here.work, ".laneway-*"),
                (runs.rollbacks.folder, "*/committed"),
            )
        )
        before = set(folder.glob(trace))
        while process.returncode is None and set(folder.glob(trace)) <= before:
            await asyncio.sleep(0.001)


class Reader:
    """Somebody who reads the events of a job as they come."""

    def __init__(self, rounds: Rounds, job_id: str) -> None:
        self._jobs = rounds.jobs
        self.job_id = job_id
        self.seen: list[dict[str, Any]] = []
        self._is_over = False

    async def run(self) -> None:
        cursor: str | None = None
        while not self._is_over:
            job = self._jobs.get(self.job_id)
            page = self._jobs.events(job, cursor)
            self.seen += page.events
            cursor = page.next_cursor
            self._is_over = page.has_final
            await asyncio.sleep(PAUSE_S)

    async def wait_for(self, events: int) -> None:
        while len(self.seen) < events and not self._is_over:
            await asyncio.sleep(PAUSE_S)
