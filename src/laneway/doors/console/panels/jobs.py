"""The panel of background jobs: queue and slots, events, files and conflicts, and what can be done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import msgspec

from laneway.base.errors import BadCursor, JobUnknown, UsageError
from laneway.base.plain import plain_code
from laneway.core.ports import Clock
from laneway.doors.console.panels.news import news_of
from laneway.doors.console.panels.plain_json import shown
from laneway.doors.console.panels.ports import JobAction, JobBoard
from laneway.doors.page_parts import PageFeed, PageRefused, PageReply, PageRequest, json_reply, unknown

LOOK_S = 1.0
"""Between two looks at the ledger, while a browser is open."""
ACTIONS: tuple[JobAction, ...] = get_args(JobAction)
_VOLATILE = ("elapsedMs", "tokens")
"""Fields of a job that change while it runs, without news for the list."""


class CancelJob(msgspec.Struct, forbid_unknown_fields=True):
    is_forced: bool = False


class ResolveRun(msgspec.Struct, forbid_unknown_fields=True):
    jobs: tuple[str, ...] = ()
    """Only these; all of the run if empty."""
    resolved: tuple[str, ...] = ()
    """Of an acceptance: conflicting paths that were merged by hand, as the page showed them."""
    merges: bool = False


class NoBody(msgspec.Struct, forbid_unknown_fields=True):
    pass


class JobsPart:
    """A `PagePart`."""

    name = "jobs"
    title = "Jobs"
    static = Path(__file__).with_name("static") / "jobs"

    def __init__(self, board: JobBoard, clock: Clock) -> None:
        self._board = board
        self._clock = clock

    @asynccontextmanager
    async def running(self, feed: PageFeed) -> AsyncIterator[None]:
        async with news_of(feed, self._marks, self._clock, LOOK_S):
            yield

    async def _marks(self) -> object:
        answer = await self._board.jobs(None)
        rows = [
            {name: value for name, value in row.items() if name not in _VOLATILE} for row in answer["jobs"]
        ]
        return rows, answer["slots"]

    async def get(self, request: PageRequest) -> PageReply:
        try:
            match request.path:
                case ():
                    return json_reply(shown(await self._board.jobs(request.query("cursor"))))
                case ("runs", run_id):
                    return json_reply(
                        shown(await self._run(run_id, request.query("path"), request.query("job")))
                    )
                case (job_id,):
                    return json_reply(shown(await self._board.result(job_id)))
                case (job_id, "events"):
                    return json_reply(shown(await self._board.events(job_id, request.query("cursor"))))
                case _:
                    raise unknown()
        except JobUnknown:
            raise unknown("job") from None
        except BadCursor:
            raise PageRefused(400, "This cursor is none of ours") from None

    async def post(self, request: PageRequest) -> PageReply:
        try:
            match request.path:
                case (job_id, "cancel"):
                    body = await request.value(CancelJob)
                    return json_reply(shown(await self._board.cancel(job_id, is_forced=body.is_forced)))
                case (job_id, "again"):
                    await request.value(NoBody)
                    return json_reply({"jobId": await self._board.again(job_id)})
                case ("runs", run_id, action) if action in ACTIONS:
                    return await self._resolve(run_id, action, await request.value(ResolveRun))
                case _:
                    raise unknown()
        except JobUnknown:
            raise unknown("job") from None

    async def _run(self, run_id: str, path: str | None, job_id: str | None) -> dict[str, Any]:
        """What is known of a run, or of one job in it; with a path, what they made of that one."""
        job_ids = (job_id,) if job_id else ()
        try:
            answer = await self._board.run(run_id, (), job_ids)
            if path is None:
                return answer
            return await self._board.run(run_id, (_raw_paths(answer, (path,))[0],), job_ids)
        except UsageError as problem:
            raise PageRefused(404, plain_code(str(problem))) from None

    async def _resolve(self, run_id: str, action: JobAction, body: ResolveRun) -> PageReply:
        resolved: Sequence[str] = ()
        if body.resolved:
            resolved = _raw_paths(await self._board.run(run_id, ()), body.resolved)
        answer = await self._board.resolve(run_id, action, body.jobs, resolved, merges=body.merges)
        return json_reply(shown(answer))


def _raw_paths(run: dict[str, Any], asked: Sequence[str]) -> list[str]:
    """The paths of a run by how the page shows them; one that could be two is refused."""
    named = [each["path"] for each in run["conflicts"]]
    named += [each["path"] for job in run["jobs"] for each in job["modifiedFiles"]]
    found = []
    for path in asked:
        matches = {each for each in named if plain_code(each) == path}
        if len(matches) != 1:
            raise PageRefused(404, "There is no such path in this run, or more than one that looks like it")
        found.append(matches.pop())
    return found
