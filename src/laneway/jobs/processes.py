"""Processes of jobs: starts supervisors, and ends what a dead supervisor and guardian left running.

A worker's processes carry the job's id in their environment (`lineage.MARKER`). Blocking.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from laneway.base.errors import LanewayError
from laneway.jobs.lineage import MARKER
from laneway.jobs.model import JobLimits
from laneway.jobs.places import JobsLayout
from laneway.store.files import FILE_MODE, trouble
from laneway.wire import guardian

SUPERVISOR = "laneway.app.job_supervisor"
"""The program, which is composed where all programs are."""
MAX_ENVIRONMENT_BYTES = 4 * 1024 * 1024
"""Of one process: the kernel's own limit is of this size."""
SWEEP_S = 10.0
"""To end marked processes: a killed one is gone in milliseconds, unless its disk hangs."""
SWEEP_TICK_S = 0.02


class SweepFailed(LanewayError):
    def __init__(self, pids: Sequence[int]) -> None:
        super().__init__(f"These processes do not end: {', '.join(map(str, pids))}")


_started: list[subprocess.Popen[bytes]] = []
"""Supervisors that this process started and has not reaped. They outlive us."""


def start_supervisor(
    places: JobsLayout,
    job_id: str,
    limits: JobLimits,
    lock: int,
    slots: Sequence[int],
    environment: Mapping[str, str],
) -> None:
    """Start a job's supervisor in its own session. It inherits the locks; the caller closes its copies."""
    _started[:] = [process for process in _started if process.poll() is None]
    job = places.job(job_id)
    orders = [str(places.root), str(places.database), job_id, str(lock), ",".join(map(str, slots))]
    words = [*orders, msgspec.json.encode(limits).decode()]
    try:
        log = os.open(
            job.supervisor_log,
            os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC,
            FILE_MODE,
        )
    except OSError as problem:
        raise trouble(job.supervisor_log, problem) from problem
    try:
        process = subprocess.Popen(
            # -P: nothing is imported from the folder that we happen to be in.
            [sys.executable, "-P", "-m", SUPERVISOR, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd="/",
            env=dict(environment),
            pass_fds=(lock, *slots),
            start_new_session=True,
        )
    except OSError as problem:
        raise trouble(Path(sys.executable), problem) from problem
    finally:
        os.close(log)
    _started.append(process)


# ── what is left of a job ──────────────────────────────────────────────────


def end_marked(job_id: str) -> int:
    """Kill every process that carries the job's mark, however often they fork; how many there were."""
    ended = 0
    deadline = time.monotonic() + SWEEP_S
    while pids := list(marked(job_id)):
        if time.monotonic() >= deadline:
            raise SweepFailed(pids)
        ended += len(pids)
        guardian.signal_all(pids, signal.SIGSTOP)  # a stopped process cannot fork meanwhile
        guardian.signal_all(pids, signal.SIGKILL)
        time.sleep(SWEEP_TICK_S)
    return ended


def marked(job_id: str) -> Iterator[int]:
    """Living processes of ours with the job's mark, ourselves left out."""
    mark = f"{MARKER}={job_id}"
    if not os.path.isdir("/proc/self"):
        yield from _marked_by_ps(mark)
        return
    own = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != own and mark.encode() in _environment(name).split(b"\0"):
            yield int(name)


def _environment(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read(MAX_ENVIRONMENT_BYTES)
    except OSError:
        return b""  # it has ended (also as a zombie), or is another user's


def _marked_by_ps(mark: str) -> Iterator[int]:
    completed = subprocess.run(
        ["/bin/ps", "-axEww", "-o", "pid=,command="],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    for line in completed.stdout.decode(errors="replace").splitlines():
        pid, _, words = line.strip().partition(" ")
        if pid.isdigit() and int(pid) != os.getpid() and mark in words.split(" "):
            yield int(pid)
