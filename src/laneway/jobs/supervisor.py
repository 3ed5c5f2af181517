"""The supervisor of one running job: runs its attempts, and writes the end whatever happens.

A process of its own, which outlives whoever asked for the job. It holds the job's lock and slots (as its
guardian does), so that both are free if and only if nobody is left. The order at the end: every process of
the worker is gone, the tree's border is taken, the result is written, `final` ends the event log, the ledger
says how it ended, the slots are free, and what waits for them is started.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from laneway.base.counting import counted
from laneway.base.errors import LanewayError, StoreError
from laneway.base.foreign_files import read_regular
from laneway.base.plain import code_label
from laneway.codex.exec.events import EventNormaliser
from laneway.codex.exec.outcome import verdict
from laneway.codex.exec.output import output_problem, structured_output
from laneway.codex.exec.stderr import refused_calls
from laneway.jobs import rules
from laneway.jobs.apart import ApartEnd, ApartWork
from laneway.jobs.attempt import Attempt, AttemptEnd, Bounds, Order
from laneway.jobs.attribution import EditWindow, JobTraces
from laneway.jobs.contract import reported_files
from laneway.jobs.dispatch import ring
from laneway.jobs.event_log import FINAL, EventWriter
from laneway.jobs.ledger import Ledger
from laneway.jobs.lineage import mark_of
from laneway.jobs.model import Job, JobFailure, JobSpec, Result
from laneway.jobs.places import JobsLayout
from laneway.jobs.preparation import prepare_worker, spawners_environment, work_folder
from laneway.jobs.processes import end_marked
from laneway.jobs.repo_state import RepoState, breaches, present_litter, remove_litter, repo_state
from laneway.jobs.reports import in_tree
from laneway.jobs.retries import give_back
from laneway.jobs.runs import Judged, TreeRuns
from laneway.jobs.worker import JobWorker, usage_of
from laneway.store.files import write_whole
from laneway.wire.child import Exit

log = logging.getLogger(__name__)

MAX_STDERR_BYTES = 64 * 1024
NOTE_S = 1.0
"""Between two notes in the ledger of what the job does and has used."""
EXITS = {"SIGKILL": -9, "SIGTERM": -15, "SIGINT": -2}


class Supervisor:
    """Runs one job, whose lock and slots this process holds."""

    def __init__(
        self, places: JobsLayout, ledger: Ledger, job: Job, spec: JobSpec, locks: Sequence[int]
    ) -> None:
        self.places = places
        self._ledger = ledger
        self._job = job
        self._spec = spec
        self._locks = tuple(locks)
        self._files = places.job(job.job_id)
        is_writing = job.mode == "write"
        self._runs = TreeRuns(places, ledger, job.tree, spec.codex_home) if is_writing else None
        self._run_id = ""
        self._windows: list[EditWindow] = []
        self._workers: list[JobWorker] = []
        self._thread_id = spec.thread_id
        self._order: Order | None = None
        self._apart: ApartWork | None = None
        self._repo: RepoState | None = None
        self._litter: frozenset[str] = frozenset()
        self._was_cut_off = False
        """Whether the last worker was stopped or killed: it may have been writing a file."""

    async def run(self) -> None:
        """To the end, and the end is written. Only a full disk or a kill can prevent that."""
        try:
            with EventWriter(self._files.events) as events:
                failure = await self._failure(events)
                await asyncio.to_thread(self._finish, events, failure)
        except LanewayError as problem:
            log.warning("The end of job %s is in the ledger only: %s", self._job.job_id, problem)
            self._ledger.end(
                self._job.job_id,
                "failed",
                JobFailure("disk", str(problem)),
                is_inconsistent=self._runs is not None,
            )
            ring(self.places)

    async def _failure(self, events: EventWriter) -> JobFailure | None:
        """Why the job did not succeed, once all its attempts are over."""
        try:
            return await self._work(events)
        except LanewayError as problem:
            has_begun = bool(self._workers) and isinstance(problem, StoreError)
            return JobFailure("disk" if has_begun else "launch", str(problem))
        except Exception:
            log.exception("job %s", self._job.job_id)
            return JobFailure("internal", "Laneway failed; supervisor.log in the job's folder says how.")

    async def _work(self, events: EventWriter) -> JobFailure | None:
        environment = await asyncio.to_thread(spawners_environment, self._files, self._job.job_id)
        self._files.environment.unlink(missing_ok=True)
        if self._spec.continues and not self._take_thread(self._spec.continues):
            return JobFailure(
                "launch", f"Job {self._spec.continues} ended before it had a thread: spawn a new one."
            )
        if self._runs is not None:
            beginning = asyncio.to_thread(
                self._runs.begin,
                self._job,
                require_clean=self._spec.require_clean,
                expiry_s=self._spec.run_expiry_s,
            )
            run, self._repo = await asyncio.gather(beginning, asyncio.to_thread(repo_state, self._runs.tree))
            self._run_id = run.run_id
            self._litter = present_litter(self._spec.cwd)
            if self._spec.isolation != "shared":
                self._apart = ApartWork(self._runs, self._job, self._spec, self._files.work)
                await asyncio.to_thread(self._apart.begin, self._runs.last_snapshot(run))
        wall_at = self._now() + self._spec.timeout_s
        number = 0
        while True:
            number += 1
            failure = await self._attempt(events, environment, number, wall_at)
            if failure is None or not rules.may_retry(failure.kind, number, self._spec.retries):
                return failure
            if self._order is not None or not await asyncio.to_thread(self._is_as_before):
                return failure
            events.append("error", {"kind": "retry", "attempt": number, "message": failure.text})

    def _take_thread(self, job_id: str) -> bool:
        """Go on in the thread of a job that had none when we were queued behind it."""
        earlier = self._ledger.get(job_id)
        if earlier is None or not earlier.thread_id:
            return False
        self._thread_id = earlier.thread_id
        self._spec = msgspec.structs.replace(self._spec, thread_id=earlier.thread_id)
        self._on_thread(earlier.thread_id)
        return True

    # ── attempts ───────────────────────────────────────────────────────────

    async def _attempt(
        self, events: EventWriter, environment: dict[str, str], number: int, wall_at: float
    ) -> JobFailure | None:
        worker = JobWorker(events, self._now, self._spec.codex_home, self._thread_id, self._on_thread)
        worker.used_before = sum(earlier.usage().total for earlier in self._workers)
        self._workers.append(worker)
        spec = self._spec if self._apart is None else self._apart.spec_within(self._spec)
        prepared = await asyncio.to_thread(prepare_worker, spec, self._files, environment, self._thread_id)
        if self._apart is not None:
            prepared = msgspec.structs.replace(prepared, argv=self._apart.wrap(prepared.argv, spec.cwd))
        bounds = Bounds(wall_at, self._spec.stall_s, self._spec.token_budget)
        attempt = Attempt(worker, bounds, self._read_order)
        noting = asyncio.ensure_future(self._note(worker))
        try:
            end = await attempt.run(
                prepared.argv,
                prepared.prompt,
                prepared.environment,
                work_folder(self._spec),
                self._locks,
                mark_of(self._job.job_id),
                lambda: self._on_start(number),
            )
        except OSError as problem:
            return JobFailure("launch", f"Codex cannot be started: {problem.strerror or problem}.")
        finally:
            noting.cancel()
            await asyncio.gather(noting, return_exceptions=True)
        self._was_cut_off = end.stopped is not None or end.exit.code is None
        if end.exit == Exit():
            # Its guardian was killed, which would have waited until all of its processes are gone.
            await asyncio.to_thread(end_marked, self._job.job_id)
        write_whole(self._files.stderr, end.stderr.encode()[-MAX_STDERR_BYTES:])
        if self._runs is not None and self._apart is None:
            self._windows += worker.windows(self._runs.tree)
        for call in refused_calls(end.stderr):
            events.append("error", {"kind": "refused", "message": call.reason, "command": call.command})
        return await asyncio.to_thread(self._failure_of, end, worker.output)

    def _failure_of(self, end: AttemptEnd, output: EventNormaliser) -> JobFailure | None:
        match end.stopped:
            case "cancelled":
                return JobFailure("cancelled", "Cancelled.")
            case "wall":
                return JobFailure("wall", f"It ran for longer than its {self._spec.timeout_s:g} seconds.")
            case "stall":
                return JobFailure("stall", f"Nothing happened for {self._spec.stall_s:g} seconds.")
        if end.fault:
            return JobFailure("disk", end.fault)
        fault = "" if self._apart is None else self._apart.launch_fault(end.exit.code, end.stderr)
        if fault:
            return JobFailure("launch", fault)
        schema = self._spec.output_schema
        message = output.state.last_message or ""
        judged = verdict(
            _return_code(end),
            output.state,
            end.stderr,
            thread_id=self._spec.thread_id,
            schema_problem=None if schema is None else output_problem(schema, message),
            budget=self._spec.token_budget if end.stopped == "budget" else None,
        )
        return None if judged.kind is None else JobFailure(judged.kind, judged.text)

    def _is_as_before(self) -> bool:
        """Whether another attempt finds what the first one found. What this one has edited is given back."""
        if self._runs is None or not self._workers[-1].windows(self._runs.tree):
            return True
        # Whoever goes on in a thread has its past before it, and full access reaches beyond the tree.
        if self._spec.thread_id is not None or self._spec.sandbox == "danger-full-access":
            return False
        if self._apart is not None:
            if not self._apart.begin_again():
                return False
        elif self._breaches() or not give_back(
            self.places, self._ledger, self._runs, self._job, self._run_id, self._shown()
        ):
            return False
        self._thread_id = None
        return True

    def _read_order(self) -> Order | None:
        """The order to cancel; a `force` that follows a `soft` counts."""
        if self._order != "force":
            try:
                data = read_regular(self._files.cancel, 16, follow_links=False)
                self._order = "force" if data == b"force" else "soft"
            except FileNotFoundError:
                pass
            except OSError as problem:
                log.warning("%s: %s", self._files.cancel, problem)
                self._order = "soft"  # somebody has put something there
        return self._order

    def cancel(self) -> None:
        """This process was told to end: the job is asked to, as by its owner."""
        self._order = self._order or "soft"

    # ── the ledger while it runs ───────────────────────────────────────────

    def _on_start(self, number: int) -> None:
        job_id = self._job.job_id
        if not self._ledger.change(job_id, expects=("starting",), status="running", attempt=number):
            self._ledger.change(job_id, expects=("running", "cancelling"), attempt=number)
        ring(self.places)

    def _on_thread(self, thread_id: str) -> None:
        self._thread_id = self._thread_id or thread_id
        self._ledger.change(
            self._job.job_id, expects=("starting", "running", "cancelling"), thread_id=thread_id
        )

    async def _note(self, worker: JobWorker) -> None:
        noted: tuple[Any, ...] = ()
        while True:
            await asyncio.sleep(NOTE_S)
            facts = (worker.activity, await asyncio.to_thread(worker.tokens))
            if facts != noted:
                noted = facts
                try:
                    await asyncio.to_thread(
                        self._ledger.change,
                        self._job.job_id,
                        expects=("running", "cancelling"),
                        activity=facts[0],
                        tokens=facts[1],
                    )
                except LanewayError as problem:
                    log.warning("What job %s does is not noted: %s", self._job.job_id, problem)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # ── the end ────────────────────────────────────────────────────────────

    def _finish(self, events: EventWriter, failure: JobFailure | None) -> None:
        apart = self._end_apart(failure)
        failure = failure or apart.failure
        judged, problem = self._end_border()
        usage = usage_of(worker.usage() for worker in self._workers)
        result = self._result(failure, judged)
        result = msgspec.structs.replace(
            result,
            warnings=(*result.warnings, *apart.warnings, *((problem,) if problem else ())),
            breaches=(*result.breaches, *apart.breaches),
        )
        try:
            write_whole(self._files.result, msgspec.json.encode(msgspec.structs.replace(result, usage=usage)))
        except LanewayError as problem:
            failure = failure or JobFailure("disk", f"Its result could not be written: {problem}")
        status = rules.status_of_end(failure.kind if failure else None)
        content: dict[str, Any] = {"status": status, "lastMessage": result.last_message}
        if failure is not None:
            content |= {"kind": failure.kind, "error": failure.text}
        is_inconsistent = self._runs is not None and self._was_cut_off
        if is_inconsistent:
            content["isInconsistent"] = True
        events.append(FINAL, content)
        self._ledger.change(
            self._job.job_id, expects=("starting", "running", "cancelling"), tokens=usage.total_tokens
        )
        self._ledger.end(self._job.job_id, status, failure, is_inconsistent=is_inconsistent)
        ring(self.places)

    def _end_apart(self, failure: JobFailure | None) -> ApartEnd:
        if self._apart is None:
            return ApartEnd()
        try:
            end = self._apart.end(has_succeeded=failure is None)
        except (LanewayError, OSError) as problem:
            log.warning("The changes of job %s are not merged: %s", self._job.job_id, problem)
            return ApartEnd(JobFailure("merge", f"The job's changes were not merged: {problem}"))
        self._windows += end.windows
        return end

    def _end_border(self) -> tuple[Judged | None, str]:
        """What the job is credited with; or why that is not known, as a sentence."""
        if self._runs is None or not self._run_id:
            return None, ""
        remove_litter(self._spec.cwd, self._litter)
        try:
            return self._runs.end(self._job, self._run_id, self._shown()), ""
        except (LanewayError, OSError) as problem:
            log.warning("The edits of job %s are not known: %s", self._job.job_id, problem)
            return None, f"The edits are not known: {problem}"

    def _shown(self) -> JobTraces:
        reported = reported_files(self.last_message)
        if reported is not None:
            original = str if self._apart is None else self._apart.original
            reported = in_tree(reported, self._job.tree, self._spec.cwd, original)
        return JobTraces(windows=tuple(self._windows), scope=self._spec.scope, reported=reported)

    def _result(self, failure: JobFailure | None, judged: Judged | None) -> Result:
        message = self.last_message
        result = Result(
            last_message=message, failure=failure, warnings=self._warnings(), breaches=self._breaches()
        )
        if failure is None and self._spec.output_schema is not None:
            result = msgspec.structs.replace(
                result, structured_output=structured_output(message), has_structured_output=True
            )
        if judged is None:
            return result
        differences = judged.differences(self._job.job_id)
        return msgspec.structs.replace(
            result,
            warnings=(*result.warnings, *self._unguarded_edits(judged)),
            modified_files=judged.modified(self._job.job_id),
            only_reported=differences.only_reported,
            not_reported=differences.not_reported,
            outside_scope=differences.outside_scope,
        )

    def _unguarded_edits(self, judged: Judged) -> tuple[str, ...]:
        """A warning about patches of files that no snapshot has, so that no rollback would cover them."""
        assert self._runs is not None
        patched = {path for window in self._windows if not window.is_merge for path in window.paths}
        paths = self._runs.unguarded(judged.run, patched)
        if not paths:
            return ()
        what = counted(len(paths), "file was", "files were")
        named = ", ".join(map(code_label, paths[:5]))
        return (f"{what} changed where snapshots do not look, so that no rollback covers it: {named}.",)

    def _breaches(self) -> tuple[str, ...]:
        """Also of other jobs that ran meanwhile, and of a person: they cannot be told apart."""
        if self._runs is None or not self._run_id:
            return ()
        return breaches(self._repo, repo_state(self._runs.tree))

    @property
    def last_message(self) -> str:
        """Of the worker."""
        return self._workers[-1].output.state.last_message or "" if self._workers else ""

    def _warnings(self) -> tuple[str, ...]:
        return tuple(self._workers[-1].output.warnings) if self._workers else ()


def _return_code(end: AttemptEnd) -> int:
    """As `subprocess` tells it; of a worker whose guardian was killed, that it was killed."""
    if end.exit.code is not None:
        return end.exit.code
    return EXITS.get(end.exit.signal or "SIGKILL", -1)
