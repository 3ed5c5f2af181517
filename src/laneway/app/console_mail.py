"""The mail of all teams on this machine for the console: members, inboxes without marking, and sending.

A message is sent only under a name that nobody else holds: the name is claimed while it is sent.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from laneway.app.stores import store_of
from laneway.base.errors import StoreError, TeamGone, UsageError
from laneway.base.settings import Settings
from laneway.core.named.records import AuditLine
from laneway.core.tools import Caller, ToolResult
from laneway.doors.console.panels.ports import Letter
from laneway.mail import reading
from laneway.mail.entries import Mail
from laneway.mail.inbox import Inbox
from laneway.mail.names import check_recipient, check_sender, check_team
from laneway.mail.places import Places
from laneway.mail.post import Post
from laneway.mail.reading import MailQuery
from laneway.mail.roster import SESSION, Member, Roster, check_may_act_as
from laneway.mail.teams import mail_team
from laneway.mail.tools import MailTools
from laneway.store.store import Store

log = logging.getLogger(__name__)

SHOWN_MESSAGES = 200
"""Of one inbox, the newest."""
MAX_MESSAGE_CHARS = 20_000
"""Shown of one message."""
ALL = "*"


class FileMail:
    """The `TeamMailPort` of the console, on the files that Claude Code and ATM use."""

    def __init__(self, settings: Settings, places: Places) -> None:
        self._settings = settings
        self._places = places

    # ── looking ────────────────────────────────────────────────────────────

    async def teams(self) -> dict[str, Any]:
        return await asyncio.to_thread(self._teams)

    def _teams(self) -> dict[str, Any]:
        settings = self._settings
        chosen = settings.team if settings.source("team").kind != "default" else None
        team = mail_team(self._places, chosen).team
        known = sorted(self._places.teams())
        if known and team not in known and chosen is None:
            team = known[0]  # the default has nobody in it
        me = settings.identity if settings.source("identity").kind != "default" else None
        return {"teams": sorted({*known, team}), "team": team, "me": me}

    async def members(self, team: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._members, check_team(team))

    def _members(self, team: str) -> dict[str, Any]:
        members = {member.name: member for member in self._roster(team)}
        others = [name for name in self._inbox_names(team) if name not in members]
        rows = [self._member(team, name, member) for name, member in members.items()]
        rows += [self._member(team, name, None) for name in others]
        return {"team": team, "members": rows}

    def _roster(self, team: str) -> tuple[Member, ...]:
        try:
            return Roster(self._places, team).read().members
        except TeamGone:
            return ()  # no team yet: nobody is in it

    def _inbox_names(self, team: str) -> list[str]:
        """Who has an inbox, in the team or not: senders get one for answers."""
        try:
            files = sorted(self._places.inboxes(team).glob("*.json"))
        except OSError:
            return []
        return [file.stem for file in files if _is_name(file.stem)]

    def _member(self, team: str, name: str, member: Member | None) -> dict[str, Any]:
        unread, problem = 0, ""
        try:
            unread = Inbox(self._places, team, check_recipient(name)).pending_count()
        except TeamGone:
            pass  # no inbox, no mail
        except StoreError as error:
            problem = str(error)
        row: dict[str, Any] = {
            "name": name,
            "unread": unread,
            "problem": problem,
            "is_member": member is not None,
        }
        if member is not None:
            row |= {
                "type": member.agent_type,
                "model": member.model,
                "cwd": member.cwd,
                "is_active": member.is_active,
                "is_lead": member.is_lead,
                "is_gone": member.is_gone,
                "pid": member.owner.pid if member.owner else None,
            }
        return row

    async def inbox(self, team: str, name: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._inbox, check_team(team), check_recipient(name))

    def _inbox(self, team: str, name: str) -> dict[str, Any]:
        try:
            mail = Inbox(self._places, team, name).read(include_read=True)
        except TeamGone:
            mail = Mail()
        query = MailQuery(include_read=True, limit=SHOWN_MESSAGES)
        page = reading.page(mail, query, None, None)
        rows = [reading.row(each, each.text[:MAX_MESSAGE_CHARS]) for each in reversed(page.messages)]
        for row in rows:
            del row["message"]  # the same text under its other name
        return {
            "team": team,
            "name": name,
            "messages": rows,
            "older": page.left,
            "problems": [problem.text for problem in mail.problems],
        }

    async def marks(self) -> object:
        return await asyncio.to_thread(self._marks)

    def _marks(self) -> object:
        """Sizes and times of all rosters and inboxes."""
        return [
            (str(file), *_look(file))
            for team in self._places.teams()
            for file in (self._places.config(team), *sorted(self._places.inboxes(team).glob("*.json")))
        ]

    # ── sending ────────────────────────────────────────────────────────────

    async def send(self, team: str, letter: Letter) -> dict[str, Any]:
        return await asyncio.to_thread(self._send, check_team(team), letter)

    def _send(self, team: str, letter: Letter) -> dict[str, Any]:
        store = self._store(team)
        sender = check_sender(letter.sender)
        claim = store.claim(sender)
        try:
            check_may_act_as(self._places, team, sender)
            tools = MailTools(self._places, Post(self._places), lambda: team, _noting(store))
            caller = Caller(agent_id="", identity=sender)
            words = {"message": letter.text, "priority": letter.priority}
            if letter.summary:
                words["summary"] = letter.summary
            if letter.to == ALL:
                return _data(asyncio.run(tools.broadcast(caller, words)))
            return _data(asyncio.run(tools.send(caller, {"to": letter.to, **words})))
        finally:
            claim.release()

    def _store(self, team: str) -> Store:
        """That of the team; the team of a Claude Code session is only a mail address, and has none."""
        if team.startswith(SESSION):
            return store_of(self._settings)
        return store_of(self._settings, team=team)


def _noting(store: Store) -> Callable[..., None]:
    def note(event_type: str, caller: Caller, **about: str) -> None:
        line = AuditLine(event_type=event_type, agent_id=None, identity=caller.identity, **about)
        try:
            store.audit.append(line)
        except StoreError as problem:
            log.warning("mail that was sent could not be written to the audit log: %s", problem)

    return note


def _data(result: ToolResult) -> dict[str, Any]:
    if result.is_error or result.data is None:
        raise UsageError(" ".join((result.text, *result.notes)))
    return {**result.data, "text": result.text, "notes": list(result.notes)}


def _is_name(stem: str) -> bool:
    try:
        check_recipient(stem)
    except StoreError:
        return False
    return True


def _look(file: Path) -> tuple[int, int]:
    try:
        status = os.stat(file)
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns
