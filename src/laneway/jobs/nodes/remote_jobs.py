"""Jobs on other machines for the tools of this one: spawn, continue, cancel, results, events, runs.

A job's row is here, everything else of it is there. Owners are a matter of this side: a machine sees all
jobs that come from here as its user's own. An order for a machine that is out of reach waits here until it is
back; what can only be answered there is a `NodeUnreachable` meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from laneway.base.errors import JobUnknown, LanewayError, NodeUnreachable, UsageError
from laneway.core.background import TaskSet
from laneway.jobs import requests
from laneway.jobs.job_json import result_json
from laneway.jobs.model import Job, JobFailure, Result
from laneway.jobs.nodes.mirror import OTHER_HOME, Mirror, OnEnded
from laneway.jobs.nodes.orders import NodeOrder, NodeOrders
from laneway.jobs.nodes.placing import Placed, moved_scope, placed, placed_for
from laneway.jobs.nodes.port import Nodes
from laneway.jobs.nodes.remote_ledger import RemoteJob
from laneway.jobs.places import JOB_ID, new_job_id
from laneway.jobs.requests import THIS_NODE, SpawnRequest
from laneway.jobs.service import LOCAL, Jobs, may_see

REFRESH_S = 10.0
"""For a machine to say how its jobs stand, before they are shown as they were last known."""
RESOLVE_S = 600.0
"""For a rollback or a comparison in a large tree."""


class RemoteJobs:
    """All machines of one user, as one process sees them."""

    def __init__(
        self,
        jobs: Jobs,
        nodes: Nodes,
        repositories: Mapping[str, Path],
        on_ended: OnEnded = lambda order, job: None,
    ) -> None:
        self._jobs = jobs
        self._nodes = nodes
        self._repositories = repositories
        self._on_ended = on_ended
        self._orders = NodeOrders(jobs)
        self._mirrors: dict[str, Mirror] = {}
        self._tasks = TaskSet()
        self._following: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False

    def _mirror(self, name: str) -> Mirror:
        if name not in self._mirrors:
            self._mirrors[name] = Mirror(name, self._jobs, self._nodes, self._on_ended)
        return self._mirrors[name]

    def problem_of(self, job: Job) -> NodeUnreachable | None:
        """Why nothing new can be said of an unfinished job, if that is so."""
        if job.has_ended or not job.is_elsewhere:
            return None
        return self._mirror(job.node).problem_of(job.job_id)

    def position(self, job: Job) -> int:
        """In the queue of its machine, as last known. Blocking."""
        known = self._orders.remote.get(job.job_id)
        return known.position if known is not None else 0

    # ── keeping up ─────────────────────────────────────────────────────────

    async def follow(self) -> None:
        """From now on, keep up with every machine that has unfinished jobs."""
        for job in await asyncio.to_thread(self._jobs.ledger.elsewhere):
            running = self._following.get(job.node)
            # Whoever was about to follow while we are closed would never be cancelled.
            if (running is None or running.done()) and not self._is_closing:
                work = self._mirror(job.node).follow()
                self._following[job.node] = self._tasks.spawn(work, f"jobs on {job.node}")

    async def refresh(self, jobs: Iterable[Job]) -> None:
        """Ask once how these jobs stand; machines that cannot be asked are noted as such."""
        by_name: dict[str, set[str]] = {}
        for job in jobs:
            by_name.setdefault(job.node, set()).add(job.job_id)
        await asyncio.gather(*(self._refresh(name, ids) for name, ids in by_name.items()))

    async def _refresh(self, name: str, job_ids: Collection[str]) -> None:
        try:
            await self._mirror(name).refresh(job_ids, REFRESH_S)
        except NodeUnreachable:
            pass  # `problem_of` says it

    async def close(self) -> None:
        self._is_closing = True
        await self._tasks.cancel()
        await self._nodes.close()

    # ── starting ───────────────────────────────────────────────────────────

    async def choose(self, request: SpawnRequest) -> str:
        """Where a job for any machine goes; a folder that has no name goes nowhere else."""
        place = placed(self._jobs.defaults.cwd, request.cwd, self._repositories)
        if place is None:
            return THIS_NODE
        return await self._nodes.choose(place.repository, requests.mode_of(request))

    async def spawn(
        self, name: str, request: SpawnRequest, owner: str, notify: tuple[str, str] | None
    ) -> Job:
        """Queue a job on a machine; `UsageError` if it, or we, refuse the request."""
        await self._nodes.node(name)
        requests.check_values(request, self._jobs.defaults)
        place = placed_for(name, self._jobs.defaults.cwd, request.cwd, self._repositories)
        job_id = new_job_id()
        order = _order(
            "spawn",
            {
                "jobId": job_id,
                "repository": place.repository,
                "path": place.path,
                "request": msgspec.to_builtins(_for_there(request, place)),
            },
            notify,
        )
        mode = requests.mode_of(request)
        row = requests.row(
            request, job_id=job_id, owner=owner, mode=mode, cwd=place.folder, scope=request.scope, node=name
        )
        return await self._begin(row, order)

    async def send(self, earlier: Job, prompt: str, owner: str, notify: tuple[str, str] | None) -> Job:
        """Queue a job behind another one, on the machine of that."""
        requests.check_prompt(prompt)
        job_id = new_job_id()
        order = _order("send", {"jobId": job_id, "earlier": earlier.job_id, "prompt": prompt}, notify)
        row = _copy(earlier, job_id, owner, title=requests.title_of(prompt))
        return await self._begin(row, order)

    async def _begin(self, row: Job, order: NodeOrder) -> Job:
        """Keep the order, send it, and tell a refusal to whoever asked."""
        mirror = self._mirror(row.node)
        mirror.being_sent.add(row.job_id)
        try:
            job = await asyncio.to_thread(self._orders.add, row, order)
            try:
                await mirror.send_order(job, RemoteJob(job.job_id, "unsent"))
            except NodeUnreachable:
                pass  # it is sent when the machine is back
            except LanewayError:
                await asyncio.to_thread(self._orders.forget, job.job_id)
                raise
        finally:
            mirror.being_sent.discard(row.job_id)
        mirror.stir()
        await self.follow()
        return job

    # ── ending ─────────────────────────────────────────────────────────────

    async def cancel(self, job: Job, *, force: bool) -> Job:
        """Cancel it, now or when its machine is back. With force also if that will never be."""
        if not job.has_ended:
            if await asyncio.to_thread(self._orders.remote.withdraw, job.job_id):
                await asyncio.to_thread(self._orders.end, job, JobFailure("cancelled", "Cancelled."))
            else:
                await self._cancel_there(job, force=force)
        return await asyncio.to_thread(self._now, job.job_id)

    async def _cancel_there(self, job: Job, *, force: bool) -> None:
        mirror = self._mirror(job.node)
        await asyncio.to_thread(self._wish, job, "force" if force else "soft")
        await self._refresh(job.node, (job.job_id,))
        if force and mirror.is_gone_for_good(job.job_id):
            why = mirror.problem_of(job.job_id)
            text = f"Given up. {why}; nobody knows what became of it." if why else "Given up."
            await asyncio.to_thread(self._orders.end, job, JobFailure("cancelled", text))
        mirror.stir()

    def _wish(self, job: Job, how: str) -> None:
        self._orders.remote.wish(job.job_id, how)
        self._jobs.ledger.change(job.job_id, expects=("starting", "running"), status="cancelling")

    # ── looking ────────────────────────────────────────────────────────────

    async def result(self, job: Job) -> dict[str, Any]:
        """Of an ended job also when its machine is gone: as it was when it ended."""
        if not await asyncio.to_thread(self._is_there, job):
            problem = self.problem_of(job)
            found = Result(failure=job.failure, warnings=(str(problem),) if problem is not None else ())
            return result_json(job, found, (), self._jobs.ledger.now())
        try:
            return await self._ask(job, "result", {"jobId": job.job_id})
        except (NodeUnreachable, JobUnknown):
            kept = await asyncio.to_thread(self._orders.kept_answer, job.job_id) if job.has_ended else None
            if kept is None:
                raise
            return kept

    async def events(self, job: Job, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """A page of events; none if all that there is of the job is here."""
        if not await asyncio.to_thread(self._is_there, job):
            return None
        try:
            return await self._ask(job, "events", dict(arguments))
        except JobUnknown:
            if not await asyncio.to_thread(self._jobs.places.job(job.job_id).events.exists):
                raise
            return None  # its machine knows it no more, and its end was written here

    async def _ask(self, job: Job, method: str, arguments: dict[str, Any]) -> dict[str, Any]:
        mirror = self._mirror(job.node)
        if mirror.is_stranger(job.job_id):
            raise NodeUnreachable(job.node, OTHER_HOME)
        return await mirror.ask(method, arguments)

    def _is_there(self, job: Job) -> bool:
        """Whether its machine has accepted it."""
        known = self._orders.remote.get(job.job_id)
        return known is not None and known.state == "sent"

    def _now(self, job_id: str) -> Job:
        job = self._jobs.ledger.get(job_id)
        if job is None:
            raise JobUnknown(job_id)
        return job

    # ── runs ───────────────────────────────────────────────────────────────

    async def resolve(self, arguments: Mapping[str, Any], owner: str) -> dict[str, Any] | None:
        """What the machine of these jobs, or of this run, answers; none if they are here."""
        name, run_id = await asyncio.to_thread(self._place_of_run, arguments, owner)
        if name is None:
            return None
        mirror = self._mirror(name)
        asked = {key: value for key, value in arguments.items() if key != "cwd"} | {"run": run_id}
        if owner != LOCAL:
            await self._check_owner(mirror, run_id, owner)
        answer = await mirror.ask("resolve", asked, timeout_s=RESOLVE_S)
        if arguments.get("action") == "rerun":
            await asyncio.to_thread(self._adopt, answer, owner)
            await self.follow()
        return answer

    def _place_of_run(self, arguments: Mapping[str, Any], owner: str) -> tuple[str | None, str]:
        run_id = str(arguments.get("run") or "")
        named = [str(each) for each in arguments.get("jobIds") or ()]
        jobs = self._jobs.ledger.of_run(run_id) if run_id else []
        if not jobs and named:
            jobs = list(self._jobs.ledger.many(named).values())
        if not any(job.is_elsewhere for job in jobs):
            return None, run_id
        for job in jobs:
            if not may_see(job, owner):
                raise JobUnknown(run_id or job.job_id)
        if len({(job.node, job.run_id) for job in jobs}) > 1:
            raise UsageError("These jobs are of different runs: name one run, or jobs of one.")
        if not jobs[0].run_id:
            raise UsageError(f"Job {jobs[0].job_id} is of no run so far.")
        return jobs[0].node, jobs[0].run_id

    async def _check_owner(self, mirror: Mirror, run_id: str, owner: str) -> None:
        """A run is a matter of all whose jobs are in it; the machine does not know who that is."""
        shown = await mirror.ask("resolve", {"action": "show", "run": run_id, "paths": ["."]})
        ids = [str(each.get("jobId")) for each in shown.get("jobs", ())]
        found = await asyncio.to_thread(self._jobs.ledger.many, ids)
        if any(job_id not in found or not may_see(found[job_id], owner) for job_id in ids):
            raise JobUnknown(run_id)

    def _adopt(self, answer: Mapping[str, Any], owner: str) -> None:
        """The machine has made jobs anew by itself: from now on they are ours, as those before were."""
        for each in answer.get("jobs", ()):
            was = self._jobs.ledger.get(str(each.get("was")))
            known = self._orders.remote.get(was.job_id) if was is not None else None
            job_id = str(each.get("jobId"))
            if was is not None and known is not None and JOB_ID.fullmatch(job_id):
                row = _copy(was, job_id, owner, title=was.title)
                self._orders.remote.add(row, home=known.home)


def _order(method: Any, params: dict[str, Any], notify: tuple[str, str] | None) -> NodeOrder:
    to, team = notify or ("", "")
    return NodeOrder(method=method, params=params, notify=to, team=team)


def _for_there(request: SpawnRequest, place: Placed) -> SpawnRequest:
    scope = moved_scope(request.scope, place.top)
    return msgspec.structs.replace(request, cwd=None, node=None, scope=scope)


def _copy(job: Job, job_id: str, owner: str, *, title: str) -> Job:
    """The row of a job that goes on where another one was."""
    return Job(
        job_id=job_id,
        number=0,
        owner=owner,
        mode=job.mode,
        status="queued",
        priority=job.priority,
        scope=job.scope,
        overlaps=job.overlaps,
        isolation=job.isolation,
        tags=job.tags,
        title=title,
        cwd=job.cwd,
        node=job.node,
    )
