"""Background jobs for their callers: spawn, look, cancel, continue. What the tools and the command line call.

Every method blocks for milliseconds: from asyncio call it through `asyncio.to_thread`. A caller sees its
own jobs; the local user sees all of them. `look` is what keeps jobs going where no server runs: it ends
jobs whose supervisor died and starts what may start.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from laneway.base.errors import JobUnknown, LanewayError, UsageError
from laneway.base.plain import code_label
from laneway.codex.locate import child_environment
from laneway.jobs import event_log, requests
from laneway.jobs.dispatch import Dispatcher, end_unstarted, ring
from laneway.jobs.event_log import EventPage
from laneway.jobs.ledger import Ledger
from laneway.jobs.model import Job, JobFailure, JobLimits, JobSpec, Mode, Result
from laneway.jobs.places import JOB_ID, JobsLayout, new_job_id
from laneway.jobs.recovery import complete_log, end_lost
from laneway.jobs.requests import JobDefaults, SpawnRequest
from laneway.jobs.rules import count
from laneway.jobs.run_ledger import RunLedger
from laneway.jobs.slots import held
from laneway.store.database import Database
from laneway.store.files import decoded, make_folder, read_whole, write_whole

log = logging.getLogger(__name__)

LOCAL = "local"
"""The owner of jobs of the user's own programs. It sees every job."""
MAX_SPEC_BYTES = 64 * 1024 * 1024
MAX_RESULT_BYTES = 64 * 1024 * 1024

decode_spec = msgspec.json.Decoder(JobSpec).decode
decode_result = msgspec.json.Decoder(Result).decode


class Jobs:
    """The jobs of one user, as one process sees them."""

    def __init__(
        self,
        places: JobsLayout,
        defaults: JobDefaults,
        limits: JobLimits,
        environment: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
        on_lost: Callable[[JobSpec, Job], None] | None = None,
    ) -> None:
        """`on_lost` hears of each job that was ended here, because its supervisor had died."""
        self.places = places
        self.defaults = defaults
        self.limits = limits
        self.ledger = Ledger(Database(places.database), now)
        self.runs = RunLedger(self.ledger)
        self._on_lost = on_lost
        self._environment = child_environment(os.environ if environment is None else environment)
        self._dispatcher = Dispatcher(places, self.ledger, limits, self._environment, self._busy_trees)

    def close(self) -> None:
        self.ledger.database.close()

    # ── starting ───────────────────────────────────────────────────────────

    def spawn(
        self,
        request: SpawnRequest,
        owner: str = LOCAL,
        *,
        notify: tuple[str, str] | None = None,
        job_id: str = "",
    ) -> Job:
        """Queue a job; `UsageError` if the request is no good. `dispatch` starts it.

        `job_id`: made by another machine, which may ask twice; if there is a job of it, that is the answer.
        """
        checked = requests.checked(request, self.defaults)
        return self._queue(checked, request, owner, notify, job_id=job_id)

    def send(
        self,
        earlier_id: str,
        prompt: str,
        owner: str = LOCAL,
        *,
        notify: tuple[str, str] | None = None,
        job_id: str = "",
    ) -> Job:
        """Queue a job that continues the thread of another one, behind it if it has not ended."""
        earlier = self.get(earlier_id, owner)
        spec = self.spec(earlier)
        request = _continuing(prompt, earlier, spec)
        thread_id = earlier.thread_id or None
        if earlier.has_ended and thread_id is None:
            raise UsageError(f"Job {earlier_id} ended before it had a thread: spawn a new one.")
        checked = requests.checked(request, self.defaults, thread_id=thread_id)
        if thread_id is None:
            checked = requests.Checked(
                msgspec.structs.replace(checked.spec, continues=earlier_id), checked.tree
            )
        last = self._last_of_thread(earlier)
        after = "" if last.has_ended else last.job_id
        return self._queue(checked, request, owner, notify, after, job_id)

    def again(self, job: Job, owner: str = LOCAL, *, after: str = "") -> Job:
        """Queue a job anew, with what it was asked for, behind another one."""
        spec = self.spec(job)
        request = _continuing(spec.prompt, job, spec)
        notify = (spec.notify, spec.notify_team or "") if spec.notify else None
        return self._queue(requests.checked(request, self.defaults), request, owner, notify, after)

    def check_again(self, job: Job) -> None:
        """`UsageError` if this job may not be queued anew: what it asked for is not allowed any more."""
        spec = self.spec(job)
        if spec.thread_id or spec.continues:  # without what was said before, or with its own answer behind it
            raise UsageError(
                f"Job {job.job_id} went on in the thread of another one and cannot run again by itself:"
                " roll it back, and send it again."
            )
        requests.checked(_continuing(spec.prompt, job, spec), self.defaults)

    def dispatch(self) -> tuple[str, ...]:
        """Start what may start now."""
        return self._dispatcher.run()

    def look(self) -> None:
        """End jobs whose supervisor died, and start what may start."""
        for job in self.ledger.active():
            try:
                if end_lost(self.places, self.ledger, job) and self._on_lost is not None:
                    self._on_lost(self.spec(job), self.ledger.get(job.job_id) or job)
            except (LanewayError, OSError) as problem:
                log.warning("Job %s is lost and could not be ended: %s", job.job_id, problem)
        self.dispatch()

    def _queue(
        self,
        checked: requests.Checked,
        request: SpawnRequest,
        owner: str,
        notify: tuple[str, str] | None,
        after: str = "",
        job_id: str = "",
    ) -> Job:
        job_id = job_id or new_job_id()
        spec = checked.spec
        if notify is not None:
            spec = msgspec.structs.replace(spec, notify=notify[0], notify_team=notify[1])
        self._check_run(request, checked.tree)
        files = self.places.job(job_id)
        job = requests.queued(checked, request, job_id, owner, after=after, thread_id=spec.thread_id or "")
        encoded = _encoded(spec, job)
        make_folder(files.folder)
        write_whole(files.spec, encoded)
        write_whole(files.environment, msgspec.json.encode(self._environment))
        added = self.ledger.add(job)
        if added.has_ended:  # it was there, and another copy of the call has written our secrets again
            files.environment.unlink(missing_ok=True)
        return added

    def _check_run(self, request: SpawnRequest, tree: str) -> None:
        if request.run is None:
            return
        run = self.runs.open_run(tree) if tree else None
        if run is None or run.run_id != request.run:
            current = f"the open run is {run.run_id}" if run else "this tree has no open run"
            raise UsageError(f"{code_label(request.run)} is no open run of this tree: {current}.")

    def _last_of_thread(self, job: Job) -> Job:
        """The newest unfinished job that continues this one, or the job itself."""
        last = job
        for other in self.ledger.unfinished():
            if other.after == last.job_id or (job.thread_id and other.thread_id == job.thread_id):
                last = other
        return last

    def _busy_trees(self) -> frozenset[str]:
        from laneway.jobs.runs import trees_being_rolled_back

        return trees_being_rolled_back(self.places, self.ledger)

    # ── looking ────────────────────────────────────────────────────────────

    def get(self, job_id: str, owner: str = LOCAL) -> Job:
        """`JobUnknown` if there is none of this id that the caller may see."""
        job = self.ledger.get(job_id) if JOB_ID.fullmatch(job_id) else None
        if job is None or not may_see(job, owner):
            raise JobUnknown(job_id)
        return job

    def many(self, job_ids: Sequence[str], owner: str = LOCAL) -> list[Job]:
        """In this order, each once; `JobUnknown` for the first that is none."""
        found = self.ledger.many(job_ids)
        for job_id in job_ids:
            if job_id not in found or not may_see(found[job_id], owner):
                raise JobUnknown(job_id)
        return [found[job_id] for job_id in dict.fromkeys(job_ids)]

    def spec(self, job: Job) -> JobSpec:
        data = read_whole(self.places.job(job.job_id).spec, MAX_SPEC_BYTES)
        if data is None:
            raise JobUnknown(job.job_id)
        return decoded(self.places.job(job.job_id).spec, data, decode_spec)

    def result(self, job: Job) -> Result | None:
        """What an ended job produced; none while it has not ended, or if it never began."""
        path = self.places.job(job.job_id).result
        data = read_whole(path, MAX_RESULT_BYTES)
        return None if data is None else decoded(path, data, decode_result)

    def events(self, job: Job, cursor: str | None = None, **options: Any) -> EventPage:
        """A page of the job's events; see `event_log.read`."""
        path = self.places.job(job.job_id).events
        page = event_log.read(path, job.job_id, cursor, **options)
        lacks_end = job.has_ended and page.is_at_end and not page.has_final and not job.is_elsewhere
        if lacks_end and complete_log(self.places, job):
            page = event_log.read(path, job.job_id, cursor, **options)
        return page

    # ── ending ─────────────────────────────────────────────────────────────

    def cancel(self, job_id: str, owner: str = LOCAL, *, force: bool = False) -> Job:
        """Cancel a job. One that runs is asked to end; `force` kills it. An ended one stays as it is."""
        job = self.get(job_id, owner)
        files = self.places.job(job_id)
        if not job.has_ended and job.status == "queued":
            with held(files.lock) as is_ours:  # nobody can start it meanwhile
                current = self.get(job_id, owner)
                if is_ours and current.status == "queued":
                    end_unstarted(self.places, self.ledger, current, JobFailure("cancelled", "Cancelled."))
                    return self.get(job_id, owner)
        job = self.get(job_id, owner)
        if not job.has_ended:
            write_whole(files.cancel, b"force" if force else b"soft")
            self.ledger.change(job_id, expects=("starting", "running"), status="cancelling")
            ring(self.places)
        return self.get(job_id, owner)

    def free(self, mode: Mode) -> int:
        """JobsLayout for jobs of this mode, less those that wait for one; below zero if more of them wait."""
        active, queued = self.ledger.active(), self.ledger.queued()
        of_mode = self.limits.of(mode) - count(active, mode) - count(queued, mode)
        return min(of_mode, self.limits.total - len(active) - len(queued))

    def unfinished(self, owner: str = LOCAL) -> list[Job]:
        return [job for job in self.ledger.unfinished() if may_see(job, owner)]


def _encoded(spec: JobSpec, job: Job) -> bytes:
    """The spec as it is kept. Names of files may be any bytes; Codex takes, and tells, only UTF-8."""
    try:
        msgspec.json.encode(job)
        return msgspec.json.encode(spec)
    except UnicodeEncodeError as problem:
        raise UsageError(
            f"{code_label(str(problem.object))} is not valid UTF-8: no job can be asked for with it."
        ) from problem


def may_see(job: Job, owner: str) -> bool:
    return owner in (LOCAL, job.owner)


def _continuing(prompt: str, job: Job, spec: JobSpec) -> SpawnRequest:
    """The request of a job that goes on where another one stopped, with its settings."""
    return SpawnRequest(
        prompt=prompt,
        cwd=spec.cwd,
        sandbox=spec.sandbox,
        model=spec.model,
        effort=spec.effort,
        output_schema=spec.output_schema,
        timeout_ms=round(spec.timeout_s * 1000),
        stall_ms=round(spec.stall_s * 1000),
        scope=spec.scope,
        priority=job.priority,
        retries=spec.retries,
        isolation=spec.isolation,
        tags=job.tags,
        token_budget=spec.token_budget,
        overlap="allow" if job.overlaps else "queue",
        node=job.node or None,
    )
