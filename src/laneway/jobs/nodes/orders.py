"""Orders: what another machine is asked for, kept in the job's folder until it has accepted it. Blocking.

Whoever finds one sends it: the process that made it, or one that comes after it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from laneway.base.prepare import prepare
from laneway.jobs.dispatch import end_unstarted
from laneway.jobs.model import Job, JobFailure
from laneway.jobs.nodes.remote_ledger import RemoteLedger
from laneway.jobs.places import JobsLayout
from laneway.jobs.service import MAX_RESULT_BYTES, MAX_SPEC_BYTES, Jobs
from laneway.jobs.slots import held
from laneway.store.files import decoded, make_folder, read_whole, write_whole


@prepare
class NodeOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call that makes a job, and who is told when the job has ended."""

    method: Literal["spawn", "send"]
    params: dict[str, Any]
    notify: str = ""
    team: str = ""


_decode_order = msgspec.json.Decoder(NodeOrder).decode
_decode_answer = msgspec.json.Decoder(dict[str, Any]).decode


class NodeOrders:
    """The orders of one user, and the last answers about jobs that have ended."""

    def __init__(self, jobs: Jobs) -> None:
        self._places: JobsLayout = jobs.places
        self._ledger = jobs.ledger
        self.remote = RemoteLedger(jobs.ledger)

    def add(self, job: Job, order: NodeOrder) -> Job:
        """From now on it will be sent, whatever becomes of us."""
        files = self._places.job(job.job_id)
        make_folder(files.folder)
        write_whole(files.order, msgspec.json.encode(order))
        return self.remote.add(job)

    def forget(self, job_id: str) -> None:
        """Its machine refused it, and whoever asked for it is told: as if it had never been."""
        self.remote.forget(job_id)
        if self._ledger.get(job_id) is None:
            shutil.rmtree(self._places.job(job_id).folder, ignore_errors=True)

    def read(self, job_id: str) -> NodeOrder | None:
        path = self._places.job(job_id).order
        data = read_whole(path, MAX_SPEC_BYTES)
        return None if data is None else decoded(path, data, _decode_order)

    def keep_answer(self, job_id: str, result: Mapping[str, Any]) -> None:
        """The result of a job that has ended: its machine may be gone tomorrow."""
        files = self._places.job(job_id)
        make_folder(files.folder)
        write_whole(files.answer, msgspec.json.encode(result))

    def kept_answer(self, job_id: str) -> dict[str, Any] | None:
        path = self._places.job(job_id).answer
        data = read_whole(path, MAX_RESULT_BYTES)
        return None if data is None else decoded(path, data, _decode_answer)

    def end(self, job: Job, failure: JobFailure) -> bool:
        """End it from this side: it never came to be on its machine, or is there no more. Whether we did."""
        files = self._places.job(job.job_id)
        make_folder(files.folder)
        with held(files.lock) as is_ours:
            current = self._ledger.get(job.job_id)
            if is_ours and current is not None and not current.has_ended:
                end_unstarted(self._places, self._ledger, current, failure)
                return True
        return False
