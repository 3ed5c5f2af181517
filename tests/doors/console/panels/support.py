"""The console's panels on ports that a test drives by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from laneway.base.errors import JobUnknown, LanewayError, QuestionGone, SessionUnknown, TeamGone, UsageError
from laneway.core.model import Answer, Choice, Event, Question
from laneway.doors.console.panels.ports import (
    CheckRow,
    JobAction,
    Letter,
    LiveSessionRow,
    SessionRows,
    SessionViewer,
)
from laneway.doors.page_parts import PagePart
from laneway.testing.clock import HandClock
from tests.doors.console.support import Answered, PageWithoutSocket

HOSTILE = "<img src=x onerror=alert(1)>\u202egpj.exe"
"""Text that wants to be markup, and to be read backwards."""


def command_question(question_id: str = "q1", **more: Any) -> Question:
    fields: dict[str, Any] = {
        "kind": "command",
        "thread_id": "t1",
        "turn_id": None,
        "item_id": None,
        "message": "May I?",
        "command": "rm -r build",
        "cwd": "/work",
        "choices": (
            Choice(choice_id="accept", label="Allow", grants="once"),
            Choice(choice_id="decline", label="Decline", grants="nothing", takes_words=True),
        ),
    }
    return Question(question_id=question_id, **{**fields, **more})


class HandSessions:
    """Live sessions of other processes, as a test says."""

    def __init__(self, *sessions: LiveSessionRow) -> None:
        self.sessions = {row.agent_id: row for row in sessions}
        self.viewers: dict[str, SessionViewer] = {}
        self.questions: dict[str, list[Question]] = {}
        self.answers: list[tuple[str, str, Answer]] = []
        self.stopped: list[str] = []
        self.ends: dict[str, asyncio.Future[None]] = {}
        self.settled: set[str] = set()
        self.watches = 0

    async def rows(self) -> SessionRows:
        return SessionRows(tuple(self.sessions.values()))

    async def watch(self, agent_id: str, viewer: SessionViewer) -> None:
        if agent_id not in self.sessions:
            raise SessionUnknown(agent_id)
        self.watches += 1
        self.viewers[agent_id] = viewer
        viewer.begin(self.sessions[agent_id], self.questions.get(agent_id, []))
        self.ends[agent_id] = asyncio.get_running_loop().create_future()
        try:
            await self.ends[agent_id]
        finally:
            del self.viewers[agent_id]

    def show(self, agent_id: str, event: Event) -> None:
        self.viewers[agent_id].show(event)

    async def stop(self, agent_id: str) -> bool:
        if agent_id not in self.sessions:
            raise SessionUnknown(agent_id)
        self.stopped.append(agent_id)
        return True

    async def answer(self, agent_id: str, question_id: str, answer: Answer) -> None:
        if question_id in self.settled:
            raise QuestionGone(question_id)
        self.settled.add(question_id)
        self.answers.append((agent_id, question_id, answer))


RUN: dict[str, Any] = {
    "run": "run-1",
    "state": "open",
    "tree": "/work",
    "head": "0123456789abcdef",
    "jobs": [
        {
            "jobId": "job-a",
            "status": "succeeded",
            "title": HOSTILE,
            "modifiedFiles": [{"path": "a\u202e.txt", "certainty": "certain", "change": "modified"}],
        },
        {"jobId": "job-b", "status": "succeeded", "title": "b", "modifiedFiles": []},
    ],
    "conflicts": [{"path": "a\u202e.txt", "kind": "overlap", "jobs": ["job-a", "job-b"]}],
    "changedByOthers": [],
    "unguarded": 0,
    "rollbacks": [],
    "diffs": [
        {
            "path": "a\u202e.txt",
            "jobs": ["job-a", "job-b"],
            "one": "--- before\n+++ job-a\n@@ -1 +1 @@\n-old\n+one\n",
            "other": "--- before\n+++ job-b\n@@ -1 +1 @@\n-old\n+two\n",
            "merged": "top\n<<<<<<< job-a\none\n||||||| before\nold\n=======\ntwo\n>>>>>>> job-b\n",
            "conflicts": 1,
        }
    ],
}


class HandBoard:
    """Jobs, as a test says."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = [
            {"jobId": "job-a", "status": "running", "title": HOSTILE, "mode": "write", "run": "run-1"}
        ]
        self.calls: list[tuple[Any, ...]] = []

    async def jobs(self, cursor: str | None) -> dict[str, Any]:
        slots = {"read": "0/8", "write": "1/2", "total": "1/10", "queued": "0"}
        return {"jobs": self.rows, "slots": slots, "tokens": {"today": 5, "byDay": {}, "byRun": {}}}

    async def result(self, job_id: str) -> dict[str, Any]:
        if job_id != "job-a":
            raise JobUnknown(job_id)
        return {**self.rows[0], "isPartial": True, "lastMessage": HOSTILE}

    async def events(self, job_id: str, cursor: str | None) -> dict[str, Any]:
        event = {"type": "message", "content": {"text": HOSTILE}, "timestamp": "2026-01-01T00:00:00Z"}
        return {"events": [] if cursor else [event], "nextCursor": "c1", "done": False, "status": "running"}

    async def cancel(self, job_id: str, *, is_forced: bool) -> dict[str, Any]:
        await self.result(job_id)
        self.calls.append(("cancel", job_id, is_forced))
        self.rows[0]["status"] = "cancelled"
        return dict(self.rows[0])

    async def again(self, job_id: str) -> str:
        self.calls.append(("again", job_id))
        return "job-c"

    async def run(self, run_id: str, paths: Sequence[str], job_ids: Sequence[str] = ()) -> dict[str, Any]:
        if run_id != "run-1":
            raise UsageError(f"There is no run {run_id}.")
        self.calls.append(("run", *paths, *job_ids))
        return RUN

    async def resolve(
        self, run_id: str, action: JobAction, job_ids: Sequence[str], resolved: Sequence[str], *, merges: bool
    ) -> dict[str, Any]:
        self.calls.append((action, run_id, tuple(job_ids), tuple(resolved), merges))
        done = {
            "ending": "done",
            "rollbackId": "rb-1",
            "paths": ["a"],
            "merged": [],
            "refused": [],
            "left": [],
        }
        return {"run": run_id, **done}


class HandDesk:
    """Mail, as a test says."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Letter]] = []
        self.mark = 0

    async def teams(self) -> dict[str, Any]:
        return {"teams": ["crew"], "team": "crew", "me": "ann"}

    async def members(self, team: str) -> dict[str, Any]:
        if team != "crew":
            raise TeamGone(team)
        row = {"name": "bob", "unread": 1, "problem": "", "is_member": True, "type": HOSTILE, "model": ""}
        return {"team": team, "members": [{**row, "is_gone": False, "is_active": True}]}

    async def inbox(self, team: str, name: str) -> dict[str, Any]:
        message = {"from": "eve", "text": HOSTILE, "timestamp": "now", "message_id": "m1", "read": False}
        return {"team": team, "name": name, "messages": [message], "older": 0, "problems": []}

    async def send(self, team: str, letter: Letter) -> dict[str, Any]:
        if letter.sender == "taken":
            raise UsageError("taken belongs to another process.")
        self.sent.append((team, letter))
        return {"text": f"Delivered to {letter.to}.", "notes": []}

    async def marks(self) -> object:
        return self.mark


class HandChecks:
    """Checks whose results a test hands out."""

    def __init__(self) -> None:
        self.problem: LanewayError | None = None
        self.rows = [CheckRow("codex", "warning", HOSTILE, "install it")]
        self.runs = 0
        self.may_end = asyncio.Event()

    async def run(self, doing: Callable[[str], None], done: Callable[[Sequence[CheckRow]], None]) -> None:
        self.runs += 1
        doing("looking")
        await self.may_end.wait()
        if self.problem is not None:
            raise self.problem
        done(self.rows)


class Panel:
    """A page with one part, whose requests a test makes."""

    def __init__(self, page: PageWithoutSocket, part: PagePart) -> None:
        self.page = page
        self._name = part.name
        self._posts = 0

    async def get(self, path: str = "") -> Answered:
        return await self.page.ask("GET", f"/api/{self._name}{path}")

    async def post(self, path: str, body: bytes = b"{}") -> Answered:
        self._posts += 1
        return await self.page.ask(
            "POST", f"/api/{self._name}{path}", body, idempotency_key=f"key-{self._posts:08}"
        )


@asynccontextmanager
async def panel(part: PagePart) -> AsyncIterator[Panel]:
    page = PageWithoutSocket(part)
    async with part.running(page.feed.of(part.name)):
        yield Panel(page, part)


async def settle(clock: HandClock, seconds: float) -> None:
    """Let time pass, and everything that is due run."""
    clock.advance(seconds)
    for _ in range(20):
        await asyncio.sleep(0)
