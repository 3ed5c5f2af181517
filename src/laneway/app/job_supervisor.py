"""The program of a job's supervisor: `… -m laneway.app.job_supervisor ROOT DATABASE JOB LOCK SLOTS LIMITS`.

Started by the dispatcher, with the job's lock and slots as open descriptors. When the job has ended, it frees
them and starts what has waited for them, so that a queue is worked off without any server.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

import msgspec

from laneway.base.errors import LanewayError
from laneway.codex.locate import child_environment
from laneway.jobs.dispatch import Dispatcher, end_unstarted
from laneway.jobs.ledger import Ledger
from laneway.jobs.model import JobFailure, JobLimits
from laneway.jobs.places import JobsLayout
from laneway.jobs.runs import trees_being_rolled_back
from laneway.jobs.service import MAX_SPEC_BYTES, decode_spec
from laneway.jobs.supervisor import Supervisor
from laneway.store.database import Database
from laneway.store.files import decoded, read_whole
from laneway.wire.guardian import SUPERVISOR_NAME, become_subreaper

log = logging.getLogger(__name__)


def main(argv: list[str]) -> int:
    root, database, job_id, lock, slots, limits_json = argv[1:]
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    limits = msgspec.json.decode(limits_json, type=JobLimits)
    locks = [int(lock), *(int(slot) for slot in slots.split(","))]
    for fd in locks:
        os.set_inheritable(fd, False)
    # What a worker's guardian leaves behind, should it be killed, becomes ours. The name tells the guardian
    # of an agent that spawned us to let us live.
    become_subreaper(SUPERVISOR_NAME)
    # Told to end with the session of whoever started us, for one: the job is not theirs to end.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    places = JobsLayout(Path(root), Path(database))
    with Database(places.database) as opened:
        ledger = Ledger(opened)
        try:
            asyncio.run(_supervise(places, ledger, job_id, locks))
        finally:
            for fd in locks:
                os.close(fd)
        _start_next(places, ledger, limits)
    return 0


async def _supervise(places: JobsLayout, ledger: Ledger, job_id: str, locks: list[int]) -> None:
    job = ledger.get(job_id)
    if job is None or job.has_ended:
        return
    path = places.job(job_id).spec
    try:
        spec = decoded(path, read_whole(path, MAX_SPEC_BYTES) or b"", decode_spec)
    except LanewayError as problem:
        end_unstarted(places, ledger, job, JobFailure("launch", str(problem)))
        return
    supervisor = Supervisor(places, ledger, job, spec, locks)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, supervisor.cancel)
    await supervisor.run()
    if spec.notify is not None:
        from laneway.app.job_mail import send_end  # most jobs tell nobody

        ended = ledger.get(job_id)
        if ended is not None:
            last_message = supervisor.last_message
            await asyncio.to_thread(send_end, spec.notify, spec.notify_team, ended, last_message)


def _start_next(places: JobsLayout, ledger: Ledger, limits: JobLimits) -> None:
    """Start what has waited for our slots."""

    def busy() -> frozenset[str]:
        return trees_being_rolled_back(places, ledger)

    try:
        Dispatcher(places, ledger, limits, child_environment(os.environ), busy).run()
    except LanewayError as problem:
        log.warning("What waits was not started: %s", problem)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
