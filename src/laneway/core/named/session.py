"""One live named session: its record, its budget, and the saved summary for its first turn.

Made by `NamedSessions` and handed to front ends, which read it and use its `session`. It observes the
session and has its record written when something has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec

from laneway.base.errors import LanewayError
from laneway.core.model import Usage
from laneway.core.named.briefing import work_folder_of
from laneway.core.named.opening import Budget, with_folder
from laneway.core.named.records import Record, Status
from laneway.core.named.rules import overdrawn
from laneway.core.named.writers import RecordWriter
from laneway.core.ports import TextPart, TurnSpec
from laneway.core.session import Session
from laneway.core.turn import Turn, TurnResult

PREFACE = "What you reported when this session was last closed:\n\n{summary}\n\nIt goes on with this:"


class ClosedSession(msgspec.Struct, frozen=True, kw_only=True):
    """The result of closing a session."""

    agent_id: str
    identity: str
    thread_id: str | None
    was: Literal["busy", "idle", "active", "stale", "closed", "interrupted"]
    status: Status
    summary: str | None = None


class NamedSession:
    """A session with an identity, a record on disk and a budget."""

    def __init__(
        self,
        session: Session,
        record: Record,
        *,
        writer: Callable[[Callable[[], Record]], RecordWriter],
        budget: Budget,
        now: Callable[[], str],
        summary: str | None,
    ) -> None:
        self.session = session
        self.identity = record.identity
        self.writer = writer(lambda: self.record)
        self.ending: asyncio.Task[ClosedSession] | None = None
        """The closing of this session, once it has begun."""
        self.on_closed: Callable[[], None] = lambda: None
        self.on_change: Callable[[Literal["busy", "idle"]], None] = lambda state: None
        self._record = record
        self._turns_before = record.turns
        self._tokens_before = record.tokens
        self._turns_requested = 0
        self._budget = budget
        self._now = now
        self._summary = summary
        self._status: str = "idle"
        self._turns: dict[str, Turn] = {}

    @property
    def agent_id(self) -> str:
        return self.session.agent_id

    @property
    def principal(self) -> str:
        return self.session.principal

    @property
    def thread_id(self) -> str:
        return self.session.thread_id

    @property
    def state(self) -> Literal["busy", "idle", "closed"]:
        return self.session.status

    @property
    def turns(self) -> int:
        """Turns asked for so far, across resumes."""
        return self._turns_before + self._turns_requested

    @property
    def tokens(self) -> int:
        """Tokens used so far; Codex's own count continues across a resume."""
        return max(self._tokens_before, self.session.usage.total.total if self.session.usage else 0)

    @property
    def is_resumable(self) -> bool:
        return not self._record.ephemeral

    @property
    def record(self) -> Record:
        """The record in its present state, with the current branch."""
        return msgspec.structs.replace(
            with_folder(self._record, work_folder_of(self.session.spec.cwd)),
            thread_id=self.thread_id or None,
            state="busy" if self.state == "busy" else "idle",
            is_empty=not self.session.has_history,
            turns=self.turns,
            tokens=self.tokens,
        )

    # ── turns ──────────────────────────────────────────────────────────────

    def take_turn(self, spec: TurnSpec, say: Callable[[TurnSpec], Turn]) -> Turn:
        """Queue a turn within the budget; the saved summary goes in front of the first one."""
        spent = overdrawn(self._budget, self.agent_id, self.turns, self.tokens)
        if spent is not None:
            raise spent
        self._turns_requested += 1
        summary, self._summary = self._summary, None
        if summary is not None:
            preface = TextPart(PREFACE.format(summary=summary))
            spec = msgspec.structs.replace(spec, parts=(preface, *spec.parts))
        if spec.effort is None:
            spec = msgspec.structs.replace(spec, effort=self._record.effort)
        turn = say(spec)
        self._turns[turn.ticket] = turn
        turn.on_settled(lambda end: self._settled(turn.ticket, end, summary))
        self._be_active()
        return turn

    def _settled(self, ticket: str, end: TurnResult | LanewayError, summary: str | None) -> None:
        del self._turns[ticket]
        if isinstance(end, LanewayError) or end.turn_id is None:
            # The turn never ran: it costs nothing, and the model has not seen the summary.
            self._turns_requested -= 1
            self._summary = self._summary or summary
        self._be_active()

    def _be_active(self) -> None:
        self._record = msgspec.structs.replace(self._record, last_active=self._now())
        self.writer.touch()

    # ── called by the session (the Observer port) ──────────────────────────

    def on_status(self, status: Literal["idle", "busy", "closed"]) -> None:
        if status == self._status:
            return
        self._status = status
        self._be_active()
        if status == "closed":
            self.on_closed()
        else:
            self.on_change(status)

    def on_usage(self, usage: Usage) -> None:
        if self.has_tokens_left:
            return
        for turn in self._turns.values():
            turn.cancel("budget")

    @property
    def has_tokens_left(self) -> bool:
        return self._budget.max_tokens is None or self.tokens < self._budget.max_tokens
