"""The ports of the console's panels: live sessions, jobs, team mail, and checks of this machine.

A `LanewayError` that a port raises is told to the person at the page in its own words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from laneway.core.model import Answer, Event, Question

# ── live sessions ──────────────────────────────────────────────────────────


class LiveSessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A live session of some process of this user."""

    agent_id: str
    name: str = ""
    """Its identity; empty for those of editors and of chat."""
    team: str = ""
    door: str = ""
    """The command that serves it: `mcp`, `acp`, `chat`, …"""
    pid: int = 0
    state: Literal["busy", "idle", "closed"] = "idle"
    engine: str = ""
    cwd: str = ""
    branch: str = ""
    model: str = ""
    turns: int = 0
    tokens: int = 0
    open_questions: int = 0
    last_text: str = ""
    """The beginning of the last message of its last turn."""
    last_active: str = ""


class ProcessProblem(msgspec.Struct, frozen=True):
    """A serving process that did not tell its sessions, and why."""

    pid: int
    why: str


class SessionRows(msgspec.Struct, frozen=True):
    sessions: tuple[LiveSessionRow, ...] = ()
    problems: tuple[ProcessProblem, ...] = ()


class SessionViewer(Protocol):
    """Is told what happens in a watched session. Called on the event loop; it returns at once."""

    def begin(self, session: LiveSessionRow, questions: Sequence[Question]) -> None:
        """The state when the watch begins; `questions` are the open ones."""
        ...

    def show(self, event: Event) -> None: ...

    def miss(self, count: int) -> None:
        """So many events were lost: this process was too slow."""
        ...


class LiveSessions(Protocol):
    """The live sessions of all serving processes of this user, reached by their own sockets."""

    async def rows(self) -> SessionRows: ...

    async def watch(self, agent_id: str, viewer: SessionViewer) -> None:
        """Until the session is closed. `SessionUnknown`; `WireBroken` if its process ends."""
        ...

    async def stop(self, agent_id: str) -> bool:
        """Cancel its turns; whether they have ended. `SessionUnknown`."""
        ...

    async def answer(self, agent_id: str, question_id: str, answer: Answer) -> None:
        """`QuestionGone` if somebody else was faster. The process decides who may answer."""
        ...


# ── jobs ───────────────────────────────────────────────────────────────────

JobAction: TypeAlias = Literal["accept", "rollback", "rerun", "undo"]


class JobBoard(Protocol):
    """The user's background jobs, in the form of the job tools' answers."""

    async def jobs(self, cursor: str | None) -> dict[str, Any]: ...

    async def result(self, job_id: str) -> dict[str, Any]:
        """`JobUnknown`."""
        ...

    async def events(self, job_id: str, cursor: str | None) -> dict[str, Any]: ...

    async def cancel(self, job_id: str, *, is_forced: bool) -> dict[str, Any]: ...

    async def again(self, job_id: str) -> str:
        """Queue the same work anew; the id of the new job."""
        ...

    async def run(self, run_id: str, paths: Sequence[str], job_ids: Sequence[str] = ()) -> dict[str, Any]:
        """What the jobs of a run did, its conflicts, and differences of these paths (or of the conflicts).

        `job_ids`: what only these did.
        """
        ...

    async def resolve(
        self, run_id: str, action: JobAction, job_ids: Sequence[str], resolved: Sequence[str], *, merges: bool
    ) -> dict[str, Any]: ...


# ── mail ───────────────────────────────────────────────────────────────────


class Letter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message to be sent, as the page sends it."""

    sender: str
    to: str
    """A member, or `*` for all of them."""
    text: str
    summary: str = ""
    priority: Literal["urgent", "normal", "low"] = "normal"


class TeamMailPort(Protocol):
    """The mail of all teams on this machine."""

    async def teams(self) -> dict[str, Any]:
        """`teams`, the usual `team`, and the name that the user has in the settings (`me`, or none)."""
        ...

    async def members(self, team: str) -> dict[str, Any]: ...

    async def inbox(self, team: str, name: str) -> dict[str, Any]:
        """All messages, newest first; none is marked as read."""
        ...

    async def send(self, team: str, letter: Letter) -> dict[str, Any]:
        """Under a name that nobody else holds."""
        ...

    async def marks(self) -> object:
        """A value that is another one after any change."""
        ...


# ── health ─────────────────────────────────────────────────────────────────


class CheckRow(msgspec.Struct, frozen=True):
    """One result of `laneway doctor`."""

    name: str
    severity: str
    message: str
    remedy: str = ""


class HealthChecks(Protocol):
    async def run(self, doing: Callable[[str], None], done: Callable[[Sequence[CheckRow]], None]) -> None:
        """Run all checks, one after the other."""
        ...
