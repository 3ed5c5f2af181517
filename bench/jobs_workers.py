"""Benchmark of one worker: what a job takes beyond `codex exec` with the same arguments, prompt and folder.

A job is measured as its boss sees it: from the call of `codex_spawn` until `codex_wait_any` says that it has
ended. Its supervisor and its guardian are what it has in memory beyond Codex.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

from bench.jobs_server import HANG, JobServer, job_server, timed
from bench.processes import GONE, pss_kb, started_with, tree
from bench.rig import CHILD_S, Rig, tell
from bench.table import Goal, Row, Section
from laneway.jobs.preparation import Prepared, prepare_worker
from laneway.jobs.processes import SUPERVISOR

MODES = {"read": "read-only", "write": "workspace-write"}
ADDED_S = Goal(0.3, of="ours")
ADDED_MB = Goal(40.0, of="ours")
BARE = "bare codex exec"
PROMPTS = {"read": "%say done", "write": "%patch made-0.txt one line"}
"""For each round another file has the place of this one."""
WARM_UP = 2
"""Rounds before those that count."""
Samples = dict[str, list[float]]


def run(rig: Rig, *, quick: bool = False) -> Section:
    rounds = 3 if quick else 15
    samples: Samples = rig.measure("bench.jobs_workers", rounds, rig.codex, rig.work, rig.home)
    rows = [_added(mode, samples) for mode in MODES]
    rows += [
        Row(
            what=f"memory of supervisor and guardian, {which}",
            unit="MB",
            base=statistics.median(samples[f"{name} codex mb"]),
            base_is="its Codex",
            ours=statistics.median(samples[f"{name} mb"]),
            goal=ADDED_MB,
            digits=1,
        )
        for name, which in (
            ("read", "one read job"),
            ("write", "one write job"),
            ("ten", "each of ten jobs"),
        )
    ]
    note = (
        f"Workers: {rounds} rounds of one trivial turn on each side, the sides in turn (a write job makes a"
        " file); medians of the runs and of the differences within a round, with the middle half of those"
        " differences in brackets. Memory is what a process has alone and its share of the rest (PSS), while"
        " the model's answer is waited for."
    )
    return Section("Jobs: one worker", rows, [note], {"samples": samples})


def _added(mode: str, samples: Samples) -> Row:
    bare, job = samples[f"{mode} bare"], samples[f"{mode} job"]
    added = [mine - theirs for mine, theirs in zip(job, bare, strict=True)]
    low, _, high = statistics.quantiles(added, n=4, method="inclusive")
    return Row(
        what=f"a {mode} job, added (middle half {low:.3f} to {high:.3f})",
        unit="s",
        base=statistics.median(bare),
        base_is=BARE,
        ours=statistics.median(added),
        goal=ADDED_S,
        digits=3,
    )


# ── one measurement, in a process of its own ───────────────────────────────


def measure(rounds: int, rig: Rig) -> Samples:
    samples: Samples = {}
    with job_server(rig) as server:
        bare = {mode: _prepared(server, mode) for mode in MODES}
        for number in range(WARM_UP + rounds):
            for mode in MODES:
                sides = [
                    (f"{mode} bare", partial(_run_bare, server, bare[mode], f"bare-{number}")),
                    (f"{mode} job", partial(_run_job, server, mode, f"job-{number}")),
                ]
                for name, work in reversed(sides) if number % 2 else sides:
                    (took_ms,) = timed(work, 1)
                    if number >= WARM_UP:
                        samples.setdefault(name, []).append(took_ms / 1e3)
        for mode, sandbox in MODES.items():
            job_id = server.spawn(HANG, sandbox)
            _note_memory(server, [job_id], mode, samples)
            server.end(job_id)
        _note_memory(server, server.fill_slots(), "ten", samples)
    return samples


def _prepared(server: JobServer, mode: str) -> Prepared:
    """What the supervisor of such a job starts."""
    job = _run_job(server, mode, "made-0")
    spec = server.jobs.spec(server.jobs.get(job))
    return prepare_worker(spec, server.places.job(job), server.environment, None)


def _run_bare(server: JobServer, prepared: Prepared, file: str) -> None:
    subprocess.run(
        prepared.argv,
        input=prepared.prompt.replace(b"made-0", file.encode()),
        env=prepared.environment,
        cwd=server.repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=CHILD_S,
    )


def _run_job(server: JobServer, mode: str, file: str) -> str:
    job_id = server.spawn(PROMPTS[mode].replace("made-0", file), MODES[mode])
    (ended,) = server.call("codex_wait_any", jobIds=[job_id])["ended"]
    if ended["status"] != "succeeded":
        raise RuntimeError(f"the job ended: {ended}")
    return job_id


def _note_memory(server: JobServer, job_ids: list[str], name: str, samples: Samples) -> None:
    server.wait(lambda: all(job.thread_id for job in server.ledger.many(job_ids).values()))
    for job_id in job_ids:
        (supervisor,) = (pid for pid in started_with(job_id) if pid in started_with(SUPERVISOR))
        ours = codex = 0.0
        for pid, is_codex in tree(supervisor, server.codex).items():
            mb = 0.0
            with contextlib.suppress(*GONE):  # a helper of Codex, which ended meanwhile
                mb = pss_kb(pid) / 1e3
            ours, codex = (ours, codex + mb) if is_codex else (ours + mb, codex)
        if not ours or not codex:
            raise RuntimeError("the processes of the job were not found")
        samples.setdefault(f"{name} mb", []).append(ours)
        samples.setdefault(f"{name} codex mb", []).append(codex)


if __name__ == "__main__":
    rounds, codex, work, home = sys.argv[1:]
    child_rig = Rig(codex, Path(home), Path(work), dict(os.environ))
    tell(measure(int(rounds), child_rig))
