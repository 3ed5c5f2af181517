"""Mirrors one machine's jobs in our ledger, and sends that machine the orders it has not had yet.

While `follow` runs, a long call tells when a job's status there changes; the end of a job is written into the
ledger here once, by whichever process hears of it first, and then everything that waits for jobs sees it. Out
of reach means that nothing is written: what is known stays, and the next process that looks goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec

from laneway.base.errors import JobUnknown, LanewayError, NodeUnreachable, UsageError
from laneway.base.ids import new_id
from laneway.jobs.dispatch import ring
from laneway.jobs.model import Job, JobFailure
from laneway.jobs.nodes.messages import NodeJob, NodeJobs, answer_of
from laneway.jobs.nodes.orders import NodeOrder, NodeOrders
from laneway.jobs.nodes.port import CALL_S, Node, Nodes
from laneway.jobs.nodes.remote_ledger import RemoteJob
from laneway.jobs.service import Jobs

log = logging.getLogger(__name__)

WATCH_S = 10.0
"""One long call. Also how old what a job does and has used may be here."""
RETRY_S = 1.0
"""Between two rounds while the machine is out of reach; when to try is the transport's matter."""
ROUND_S = 0.05
"""Between two rounds, whatever the machine says."""
OTHER_HOME = "another ledger answers under its name than the one that has this job"

OnEnded = Callable[[NodeOrder, Job], None]
"""Called in a thread when a job has ended that somebody wants to be told of."""


class Mirror:
    """The jobs of one machine."""

    def __init__(
        self, name: str, jobs: Jobs, nodes: Nodes, on_ended: OnEnded, *, retry_s: float = RETRY_S
    ) -> None:
        self.name = name
        self._jobs = jobs
        self._nodes = nodes
        self._orders = NodeOrders(jobs)
        self._on_ended = on_ended
        self._retry_s = retry_s
        self._watcher = new_id("watcher")
        self._stirred = asyncio.Event()
        self._strangers: frozenset[str] = frozenset()
        """Jobs of another ledger than the one that answers."""
        self._problem: NodeUnreachable | None = None
        self._has_answered = False
        self.is_named = True
        """Whether the settings still know the machine."""
        self.being_sent: set[str] = set()
        """Jobs whose spawn is under way: whoever asked for it is told what becomes of it."""

    def problem_of(self, job_id: str) -> NodeUnreachable | None:
        """Why nothing new can be said of the job, if that is so."""
        if self.is_stranger(job_id):
            return NodeUnreachable(self.name, OTHER_HOME)
        return self._problem

    def is_stranger(self, job_id: str) -> bool:
        """Whether it belongs to another ledger than the one that answered last."""
        return job_id in self._strangers

    def is_gone_for_good(self, job_id: str) -> bool:
        """Whether waiting will not bring it back: the settings have to change first."""
        return job_id in self._strangers or not self.is_named

    def stir(self) -> None:
        """Something was ordered, or is to be followed from now on."""
        self._stirred.set()

    async def node(self) -> Node:
        """`NodeUnreachable` if the settings do not know it any more."""
        try:
            node = await self._nodes.node(self.name)
        except UsageError as problem:
            self.is_named = False
            self._problem = NodeUnreachable(self.name, "the settings name no such machine any more")
            raise self._problem from problem
        self.is_named = True
        return node

    async def call(self, method: str, params: dict[str, Any], *, timeout_s: float = CALL_S) -> Any:
        """A call about the machine's jobs; whether it is out of reach is noted."""
        node = await self.node()
        try:
            answer = await node.call(method, params, timeout_s=timeout_s)
        except NodeUnreachable as problem:
            self._problem, self._has_answered = problem, False
            raise
        except LanewayError:
            self._problem, self._has_answered = None, True
            raise
        self._problem, self._has_answered = None, True
        return answer

    async def ask(
        self, method: str, arguments: dict[str, Any], *, timeout_s: float = CALL_S
    ) -> dict[str, Any]:
        """A call that is a tool's, with the answer of that."""
        answer = await self.call(method, arguments, timeout_s=timeout_s)
        try:
            return answer_of(method, answer)
        except msgspec.ValidationError as problem:
            raise self._nonsense() from problem

    # ── following ──────────────────────────────────────────────────────────

    async def follow(self) -> None:
        """Until none of the machine's jobs is unfinished."""
        while True:
            self._stirred.clear()
            try:
                if not await self._round():
                    return
                await asyncio.sleep(ROUND_S)  # also of many orders at once only one is told
            except NodeUnreachable as problem:
                log.info("%s", problem)
                await self._pause(self._retry_s)

    async def _round(self) -> bool:
        """Whether there is anything left to follow."""
        was_away = not self._has_answered
        await self._deliver_all()
        there = await self._there()
        if not there:
            return False
        if was_away or any(known.cancel for _, known in there):
            await self._look(there)
            there = await self._there()
        jobs = [job for job, _ in there if job.job_id not in self._strangers]
        if there and not jobs:
            raise NodeUnreachable(self.name, OTHER_HOME)
        watch = asyncio.ensure_future(self._watch(jobs, WATCH_S, self._watcher))
        stirred = asyncio.ensure_future(self._stirred.wait())
        try:
            await asyncio.wait((watch, stirred), return_when=asyncio.FIRST_COMPLETED)
            if watch.done():
                await self._apply(watch.result())
        finally:
            watch.cancel()
            stirred.cancel()
        return True

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stirred.wait()
        except TimeoutError:
            pass

    async def refresh(self, only: Collection[str] = (), timeout_s: float = CALL_S) -> None:
        """Send what was ordered, and learn how unfinished jobs stand: all, or only these."""
        await self._deliver_all(timeout_s)
        there = await self._there()
        await self._look([each for each in there if not only or each[0].job_id in only], timeout_s)

    async def _look(self, there: Sequence[tuple[Job, RemoteJob]], timeout_s: float = CALL_S) -> None:
        """Ask how these stand, and say that some of them are to be cancelled."""
        if not there:
            return
        await self._apply(await self._watch([job for job, _ in there], 0.0, timeout_s=timeout_s))
        for job, known in there:
            if known.cancel and job.job_id not in self._strangers:
                await self._cancel(job, known)

    async def _there(self) -> list[tuple[Job, RemoteJob]]:
        """Unfinished jobs that the machine has accepted."""
        return [(job, known) for job, known in await self._load() if known.state == "sent"]

    async def _load(self) -> list[tuple[Job, RemoteJob]]:
        def load() -> list[tuple[Job, RemoteJob]]:
            jobs = [job for job in self._jobs.ledger.elsewhere() if job.node == self.name]
            known = self._orders.remote.many(job.job_id for job in jobs)
            return [(job, known[job.job_id]) for job in jobs if job.job_id in known]

        return await asyncio.to_thread(load)

    async def _watch(
        self, jobs: Iterable[Job], wait_s: float, watcher: str = "", *, timeout_s: float = CALL_S
    ) -> NodeJobs:
        params = {
            "jobs": {job.job_id: job.status for job in jobs},
            "timeoutMs": round(wait_s * 1000),
            "watcher": watcher,
        }
        return self._read(await self.call("watch", params, timeout_s=wait_s + timeout_s))

    def _read(self, answer: Any) -> NodeJobs:
        try:
            return msgspec.convert(answer, NodeJobs)
        except msgspec.ValidationError as problem:
            raise self._nonsense() from problem

    def _nonsense(self) -> NodeUnreachable:
        self._problem = NodeUnreachable(self.name, "its answer is none of Laneway's")
        return self._problem

    # ── sending ────────────────────────────────────────────────────────────

    async def _deliver_all(self, timeout_s: float = CALL_S) -> None:
        for job, known in await self._load():
            if known.state != "sent" and job.job_id not in self.being_sent:
                await self._deliver(job, known, timeout_s)

    async def _deliver(self, job: Job, known: RemoteJob, timeout_s: float) -> None:
        """Send an order that may have been sent before; what cannot be done ends the job."""
        if known.state == "withdrawn":
            await asyncio.to_thread(self._orders.end, job, JobFailure("cancelled", "Cancelled."))
            return
        try:
            await self.send_order(job, known, timeout_s)
        except NodeUnreachable:
            raise
        except LanewayError as refusal:
            await asyncio.to_thread(self._end, job, JobFailure("refused", str(refusal)))

    async def send_order(self, job: Job, known: RemoteJob, timeout_s: float = CALL_S) -> None:
        """`NodeUnreachable` if nobody knows whether it arrived; any other error is the machine's refusal."""
        order = await asyncio.to_thread(self._orders.read, job.job_id)
        if order is None:
            raise UsageError("What was ordered is not known any more: the job's folder is gone.")
        if known.state == "unsent" and not self._has_answered:
            # Whoever cancels it knows for sure then that it was never sent.
            await self.call("hello", {}, timeout_s=timeout_s)
        if not await asyncio.to_thread(self._orders.remote.begin, job.job_id):
            return  # sent by somebody else, or withdrawn
        params = {**order.params, "cancel": known.cancel}
        answer = self._read(await self.call(order.method, params, timeout_s=timeout_s))
        if job.job_id not in {each.job_id for each in answer.jobs}:
            raise self._nonsense()
        await asyncio.to_thread(self._orders.remote.sent, job.job_id, answer.home)
        if known.cancel:
            await asyncio.to_thread(self._orders.remote.wish_granted, job.job_id, known.cancel)
        await self._apply(answer)

    async def _cancel(self, job: Job, known: RemoteJob) -> None:
        try:
            await self.call("cancel", {"jobId": job.job_id, "force": known.cancel == "force"})
        except JobUnknown:
            pass  # the next look at it says so
        await asyncio.to_thread(self._orders.remote.wish_granted, job.job_id, known.cancel)

    # ── what the machine says ──────────────────────────────────────────────

    async def _apply(self, answer: NodeJobs) -> None:
        """Write down what is new."""
        ids = [each.job_id for each in answer.jobs] + list(answer.unknown)
        known, jobs = await asyncio.to_thread(self._rows, ids)
        self._note_strangers(answer, known)
        for each in answer.jobs:
            job = jobs.get(each.job_id)
            if job is not None and self._is_of(known.get(each.job_id), answer.home):
                await self._update(job, each)
        for job_id in answer.unknown:
            if job_id in jobs and self._is_of(known.get(job_id), answer.home):
                text = f"{self.name} has no such job any more: it was removed there."
                await asyncio.to_thread(self._end, jobs[job_id], JobFailure("lost", text))

    def _rows(self, ids: Sequence[str]) -> tuple[dict[str, RemoteJob], dict[str, Job]]:
        """Of unfinished jobs of this machine: it has no say about any other."""
        found = self._jobs.ledger.many(ids)
        ours = {job_id: job for job_id, job in found.items() if job.node == self.name and not job.has_ended}
        return self._orders.remote.many(ours), ours

    def _note_strangers(self, answer: NodeJobs, known: dict[str, RemoteJob]) -> None:
        strangers = {each.job_id for each in known.values() if each.home not in ("", answer.home)}
        self._strangers = (self._strangers - known.keys()) | strangers

    def _is_of(self, known: RemoteJob | None, home: str) -> bool:
        return known is not None and known.state == "sent" and known.home == home

    async def _update(self, job: Job, there: NodeJob) -> None:
        if there.ended_ago_s is not None:
            await self._keep_result(job)
        # In one go: whoever waits for the job may end this process as soon as the bell rings.
        await asyncio.to_thread(self._write, job, there)

    def _write(self, job: Job, there: NodeJob) -> None:
        if self._orders.remote.update(job, there):
            if there.ended_ago_s is not None:
                self._tell(job.job_id)
            ring(self._jobs.places)

    async def _keep_result(self, job: Job) -> None:
        """Before its end is told. A result that cannot be had is asked for again by whoever wants it."""
        try:
            result = await self.ask("result", {"jobId": job.job_id})
        except NodeUnreachable:
            raise
        except LanewayError as problem:
            log.warning("The result of job %s is not kept: %s", job.job_id, problem)
            return
        await asyncio.to_thread(self._orders.keep_answer, job.job_id, result)

    def _end(self, job: Job, failure: JobFailure) -> None:
        if self._orders.end(job, failure):
            self._tell(job.job_id)

    def _tell(self, job_id: str) -> None:
        order = self._orders.read(job_id)
        ended = self._jobs.ledger.get(job_id)
        if order is not None and order.notify and ended is not None:
            self._on_ended(order, ended)
