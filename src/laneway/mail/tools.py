"""The mail tools for every client and engine: `atm_send`, `atm_read`, `atm_broadcast`, `atm_pending_count`.

The sender is the caller's bound identity and never an argument. Every call is written to the audit log
with its outcome. Problems are returned to the model as error results; nothing is raised.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

import msgspec

from laneway.base.errors import LanewayError, MemberUnknown, StoreError, TeamGone, UsageError
from laneway.core.tools import Caller, Tool, ToolResult
from laneway.mail import reading
from laneway.mail.draft import draft
from laneway.mail.entries import Mail, Message
from laneway.mail.inbox import Inbox
from laneway.mail.locks import Patience
from laneway.mail.names import Address, address
from laneway.mail.places import Places
from laneway.mail.post import Post, Receipt
from laneway.mail.reading import MailQuery
from laneway.mail.roster import Roster
from laneway.mail.tool_schemas import ALL, ENDED, PAGE_CHARS, joining
from laneway.store import stamps

SUMMARY_CHARS = 200
"""Of a message in the audit log: the figure of the original specification."""
MAX_NAMED = 30
"""Members that an error names, so that the model can choose one."""
MAX_INBOXES = 256
"""Inboxes whose unread count is cached."""

Team: TypeAlias = Callable[[], str]
"""The team that mail goes through; a Claude Code session can move to another."""


class Note(Protocol):
    """Writes a line to the audit log, in the background."""

    def __call__(
        self, event_type: str, caller: Caller, *, recipient: str, message_summary: str, outcome: str
    ) -> None: ...


class MailFormat(msgspec.Struct, frozen=True):
    """How mail is rendered for one kind of reader."""

    total_chars: int | None
    """For all texts in one result. What does not fit stays unread."""
    has_both_names: bool
    """Whether a text comes under both of its names, `message` and `text`, though a model pays for each."""
    max_chars: int | None = reading.MAX_TEXT_CHARS
    """Of one text."""


THREAD = MailFormat(total_chars=8000, has_both_names=False)
"""Codex cuts the result of a tool: some models are shown 10,000 bytes of it."""
CLIENT = MailFormat(total_chars=40_000, has_both_names=True)
"""Claude Code takes 25,000 tokens."""
UNLIMITED = MailFormat(total_chars=None, has_both_names=True, max_chars=None)
"""For people and scripts."""


class _ToolOutcome(msgspec.Struct, frozen=True):
    result: ToolResult
    outcome: str
    recipient: str = ""


class MailTools:
    """Handlers of the mail tools, for all callers."""

    def __init__(
        self,
        places: Places,
        post: Post,
        team: Team,
        note: Note,
        *,
        patience: Patience = Patience(),  # noqa: B008  frozen
    ) -> None:
        self._places = places
        self._post = post
        self._team = team
        self._note = note
        self._patience = patience
        self._inboxes: dict[tuple[str, str], Inbox] = {}

    def tools(self, mail_format: MailFormat = THREAD) -> tuple[Tool, ...]:
        """The tools with their handlers, for one kind of reader."""

        async def read(caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
            return await self.read(caller, arguments, mail_format)

        handlers = (self.send, read, self.broadcast, self.pending_count)
        return tuple(words.tool(handler) for words, handler in zip(ALL, handlers, strict=True))

    # ── sending ────────────────────────────────────────────────────────────

    async def send(self, caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
        async def work(sender: str) -> _ToolOutcome:
            team = self._team()
            to = address(arguments["to"], team)
            message = draft(
                sender,
                arguments["message"],
                team=team,
                summary=arguments.get("summary", ""),
                urgency=arguments.get("priority", "normal"),
            )
            try:
                receipt = await asyncio.to_thread(self._post.send, message, to)
            except MemberUnknown as unknown:
                raise UsageError(f"{unknown} {await self._present(to)}") from unknown
            except TeamGone as gone:
                if to.team != team:
                    raise
                raise UsageError(f"{MemberUnknown(to.agent, team)} {nobody_yet(to.agent)}") from gone
            return _ToolOutcome(_sent(receipt), receipt.outcome, str(to))

        return await self._noted("atm_send", caller, arguments, work)

    async def broadcast(self, caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
        async def work(sender: str) -> _ToolOutcome:
            ours = self._team()
            team = arguments.get("team", ours)
            done = await asyncio.to_thread(
                self._post.broadcast,
                sender,
                arguments["message"],
                team=team,
                source_team=ours,
                summary=arguments.get("summary", ""),
                urgency=arguments.get("priority", "normal"),
            )
            gone = [str(each) for each in done.gone]
            ended = f"Not sent to {', '.join(gone)}: their sessions have ended." if gone else ""
            if not done.results:
                nobody = f"Nobody but {sender} is in the team {team}: there is nobody to send to."
                raise UsageError(f"{nobody} {ended}".rstrip())
            sent = [each for each in done.results if isinstance(each, Receipt)]
            failed = {str(each.to): str(each.error) for each in done.results if not isinstance(each, Receipt)}
            data = {
                "message_id": done.message_id,
                "team": team,
                "sent": [{"to": str(each.to), "outcome": each.outcome} for each in sent],
                "failed": [{"to": to, "error": why} for to, why in failed.items()],
                "gone": gone,
            }
            notes = tuple(f"{to} did not get it: {why}" for to, why in failed.items())
            spooled = [str(each.to) for each in sent if each.outcome == "spooled"]
            if spooled:
                notes += (f"Kept for later, because another program holds the inbox: {', '.join(spooled)}.",)
            notes += (ended,) if ended else ()
            of_all = f"{len(sent)} of {len(done.results)}"
            members = "member" if len(done.results) == 1 else "members"
            text = f"Sent to {of_all} {members} of {team} (message_id {done.message_id})."
            result = ToolResult(text, is_error=not sent, data=data, notes=notes)
            return _ToolOutcome(result, f"sent to {of_all}", f"*@{team}")

        return await self._noted("atm_broadcast", caller, arguments, work)

    async def _present(self, to: Address) -> str:
        """Who is in the team, or how a session joins it if it is empty."""
        team = await asyncio.to_thread(Roster(self._places, to.team).read)
        names = await asyncio.to_thread(team.names)
        if not names:
            return nobody_yet(to.agent)
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        return f"In it now: {', '.join(names[:MAX_NAMED])}{more}."

    # ── reading ────────────────────────────────────────────────────────────

    async def read(
        self, caller: Caller, arguments: Mapping[str, Any], mail_format: MailFormat = CLIENT
    ) -> ToolResult:
        async def work(identity: str) -> _ToolOutcome:
            inbox = self._inbox(identity)
            if "message_id" in arguments:
                return await self._read_one(inbox, arguments, mail_format)
            query = _query(arguments)
            mail, notes = await _opened(inbox, include_read=query.include_read)
            page = reading.page(mail, query, mail_format.total_chars, mail_format.max_chars)
            if arguments.get("mark_read", True):
                notes += await _mark(inbox, page.messages)
            if page.left:
                notes += (_remaining_note(page.left, query),)
            rows = [
                reading.row(each, reading.shortened(each, mail_format.max_chars)) for each in page.messages
            ]
            result = _result(mail_format, rows, notes, inbox, remaining=page.left)
            return _ToolOutcome(result, f"{len(rows)} read, {page.left} left")

        return await self._noted("atm_read", caller, arguments, work)

    async def _read_one(
        self, inbox: Inbox, arguments: Mapping[str, Any], mail_format: MailFormat
    ) -> _ToolOutcome:
        message_id = arguments["message_id"]
        mail, notes = await _opened(inbox, include_read=True)
        message = reading.by_id(mail, message_id)
        if message is None:
            raise UsageError(f"There is no message {message_id[:100]} in the inbox of {inbox.agent}.")
        if arguments.get("mark_read", True):
            notes += await _mark(inbox, (message,))
        text = message.text
        if "offset" in arguments:
            start = arguments["offset"]
            end = min(start + PAGE_CHARS, len(text))
            notes += (f"Characters {start} to {end} of {len(text)}.",)
            text = text[start:end]
        result = _result(mail_format, [reading.row(message, text)], notes, inbox, remaining=0)
        return _ToolOutcome(result, "1 read by its id")

    async def pending_count(self, caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
        async def work(identity: str) -> _ToolOutcome:
            inbox = self._inbox(identity)
            notes: tuple[str, ...] = ()
            try:
                count = await asyncio.to_thread(inbox.pending_count)
            except TeamGone as gone:
                count, notes = 0, (str(gone),)
            data = {"unread": count, "identity": identity, "team": inbox.team}
            return _ToolOutcome(ToolResult(_json(data), data=data, notes=notes), f"{count} unread")

        return await self._noted("atm_pending_count", caller, arguments, work)

    def _inbox(self, identity: str) -> Inbox:
        key = (self._team(), identity)
        if key not in self._inboxes:
            if len(self._inboxes) >= MAX_INBOXES:
                self._inboxes.clear()
            self._inboxes[key] = Inbox(self._places, *key, patience=self._patience)
        return self._inboxes[key]

    # ── every call ─────────────────────────────────────────────────────────

    async def _noted(
        self,
        event_type: str,
        caller: Caller,
        arguments: Mapping[str, Any],
        work: Callable[[str], Awaitable[_ToolOutcome]],
    ) -> ToolResult:
        recipient = str(arguments.get("to") or arguments.get("team") or "")[:SUMMARY_CHARS]
        summary = str(arguments.get("summary") or arguments.get("message") or "")[:SUMMARY_CHARS]
        outcome = "given up by the caller"
        try:
            if caller.identity is None:
                raise UsageError("This session has no identity, and so it has no mail.")
            done = await work(caller.identity)
            outcome, recipient = done.outcome, done.recipient or recipient
            return done.result
        except LanewayError as problem:
            outcome = f"refused: {problem}"
            return ToolResult(str(problem), is_error=True)
        finally:
            self._note(event_type, caller, recipient=recipient, message_summary=summary, outcome=outcome)


async def _opened(inbox: Inbox, *, include_read: bool) -> tuple[Mail, tuple[str, ...]]:
    """The mail, and notes about it. A missing team has no mail."""
    try:
        mail = await asyncio.to_thread(inbox.read, include_read=include_read)
    except TeamGone as gone:
        return Mail(), (str(gone),)
    return mail, tuple(problem.text for problem in mail.problems)


async def _mark(inbox: Inbox, messages: tuple[Message, ...]) -> tuple[str, ...]:
    """Mark exactly the messages that are about to be returned."""
    unread = [message for message in messages if not message.is_read]
    if not unread:
        return ()
    try:
        marked = await asyncio.to_thread(inbox.mark_read, unread)
    except StoreError as problem:
        return (f"These could not be marked as read and will come again. {problem}",)
    return tuple(problem.text for problem in marked.problems)


def _query(arguments: Mapping[str, Any]) -> MailQuery:
    since = None
    if "since" in arguments:
        since = stamps.parse(arguments["since"])
        if since is None:
            since_text = arguments["since"][:40]
            raise UsageError(f"since must be a time such as 2026-01-31T12:00:00Z, not {since_text!r}.")
    return MailQuery(
        include_read=arguments.get("all", False),
        limit=arguments.get("limit"),
        since=since,
        sender=arguments.get("from"),
    )


def _remaining_note(left: int, query: MailQuery) -> str:
    if query.include_read:
        return f"{left} older ones are not shown: ask for fewer with since or from, or raise limit."
    return f"{left} more are unread: read again to get the next ones."


def _result(
    mail_format: MailFormat,
    rows: list[dict[str, Any]],
    notes: tuple[str, ...],
    inbox: Inbox,
    *,
    remaining: int,
) -> ToolResult:
    """As text the array of messages that `atm-agent-mcp` returns, and as data all there is to know."""
    data = {
        "messages": rows,
        "count": len(rows),
        "remaining": remaining,
        "identity": inbox.agent,
        "team": inbox.team,
        "notes": list(notes),
    }
    if not mail_format.has_both_names:
        rows = [{name: value for name, value in row.items() if name != "text"} for row in rows]
    return ToolResult(_json(rows), data=data, notes=notes)


def nobody_yet(identity: str) -> str:
    """A sentence on how to join a team that nobody is in."""
    return f"Nobody is in it now. {joining(identity)}"


def _sent(receipt: Receipt) -> ToolResult:
    data = {
        "to": str(receipt.to),
        "message_id": receipt.message_id,
        "outcome": receipt.outcome,
        "is_gone": receipt.is_gone,
    }
    if receipt.outcome == "delivered":
        ended = f" {ENDED}" if receipt.is_gone else ""
        return ToolResult(f"Delivered to {receipt.to} (message_id {receipt.message_id}).{ended}", data=data)
    text = (
        f"Another program holds the inbox of {receipt.to}. The message is kept and is delivered, in order, "
        f"when the inbox is free (message_id {receipt.message_id}). Do not send it again."
    )
    return ToolResult(text, data=data)


def _json(data: Any) -> str:
    return msgspec.json.encode(data).decode()
