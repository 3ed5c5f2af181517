"""The members of a team in Claude Code's config.json: read with tolerance, changed under its locks.

We add and remove members of our own and nothing else; what we do not know keeps its bytes. Claude Code
writes this file in place, so it may be half-written when we read it: then we read again.
Blocking: from asyncio call through `asyncio.to_thread`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

import msgspec

from laneway.base.errors import FileDamaged, MemberForeign, TeamGone
from laneway.mail import ancestry, raw_json, rewrite, swap
from laneway.mail.locks import Patience, locked
from laneway.mail.names import HeldBy, Registered, check_sender, in_the_way, is_taken_for
from laneway.mail.places import Places
from laneway.mail.raw_json import NotJson
from laneway.mail.rewrite import Rewrite
from laneway.store.files import FILE_MODE, FOLDER_MODE, make_folder, sync_folder, trouble
from laneway.store.stamps import Now, utc_now

LEAD = "team-lead"
OURS = "laneway"
"""The key in a member's record under which we note the process that registered it."""
SESSION = "session-"
"""How the names of Claude Code's session teams begin. Only Claude Code creates and removes those."""
UNKNOWN_MODEL = "unknown"
"""ATM 0.46 cannot read a team with a member that has no model."""
MAX_CONFIG_BYTES = 16 * 1024 * 1024
"""It holds the prompts of all teammates; a hundred long ones are a megabyte."""
MEMBER_DEPTH = 2

Outcome: TypeAlias = Literal["added", "renewed"]


class Owner(msgspec.Struct, frozen=True):
    """The process of a Laneway, as a member's record names it."""

    pid: int
    start: str
    space: str

    def fate(self) -> Literal["alive", "gone", "unknown"]:
        return ancestry.fate(self.pid, self.start, self.space)

    def is_us(self) -> bool:
        return self == ourselves()


class Member(msgspec.Struct, frozen=True):
    """One member of a team."""

    name: str
    agent_id: str
    raw: bytes
    agent_type: str = ""
    model: str = ""
    cwd: str = ""
    joined_at: datetime | None = None
    is_active: bool | None = None
    """Whether it is busy, if the record says so."""
    color: str = ""
    is_lead: bool = False
    owner: Owner | None = None
    """Set if a Laneway registered it."""

    @property
    def is_ours(self) -> bool:
        """Whether this very process registered it."""
        return self.owner is not None and self.owner.is_us()

    @property
    def held_by(self) -> HeldBy:
        """Who holds the name now; asks the system about another Laneway's process."""
        if self.owner is None:
            return "others"
        if self.owner.is_us():
            return "us"
        fate = self.owner.fate()
        return "others" if fate == "alive" else fate

    @property
    def is_gone(self) -> bool:
        """Whether a Laneway registered it whose process has ended. For other programs it is unknown."""
        return self.owner is not None and self.owner.fate() == "gone"

    @property
    def fields(self) -> dict[str, Any]:
        known: dict[str, Any] = raw_json.value(self.raw)
        return known


class Lead(msgspec.Struct, frozen=True):
    """The process of the Claude Code that owns the team."""

    pid: int
    start: str
    space: str
    claimed_at: float


class Team(msgspec.Struct, frozen=True):
    """A team as its config.json describes it."""

    name: str
    members: tuple[Member, ...]
    lead_agent_id: str = ""
    lead_session_id: str = ""
    lead: Lead | None = None

    def member(self, name: str) -> Member | None:
        return next((member for member in self.members if member.name == name), None)

    def names(self) -> tuple[str, ...]:
        """Names of all members but the sessions whose process has ended."""
        return tuple(dict.fromkeys(member.name for member in self.members if not member.is_gone))

    def gone(self) -> tuple[str, ...]:
        """Names of sessions whose process has ended."""
        present = self.names()
        return tuple(dict.fromkeys(m.name for m in self.members if m.name not in present))


class Roster:
    """The config.json of one team."""

    def __init__(
        self,
        places: Places,
        team: str,
        *,
        patience: Patience = Patience(),  # noqa: B008  frozen
        now: Now = utc_now,
    ) -> None:
        self.team = team
        self.path = places.config(team)
        self._teams_root = places.teams_root
        self._patience = patience
        self._now = now

    def read(self) -> Team:
        """The team as it is; `TeamGone` if it does not exist, `FileDamaged` if it stays unreadable."""
        try:
            return rewrite.read(self.path, lambda data: parse(data, self.team), MAX_CONFIG_BYTES)
        except FileNotFoundError:
            raise TeamGone(self.team, str(self.path)) from None
        except NotJson as problem:
            raise FileDamaged(f"{self.path} cannot be read ({problem}).", str(self.path)) from None

    def register(self, name: str, *, model: str = "", cwd: str = "", create: bool = False) -> Outcome:
        """Add a member under this name, which the caller has claimed, or renew its record.

        `MemberForeign` if another has it, or a name that looks the same: a member that no Laneway
        registered, or that a living one did. A record that a dead Laneway left is taken over.
        `create` makes a team that does not exist yet, but never one of Claude Code's sessions.
        """
        check_sender(name)
        outcome: Outcome = "added"

        def edit(members: list[bytes]) -> list[bytes]:
            nonlocal outcome
            place = self._place_for(name, members)
            outcome = "added" if place is None else "renewed"
            old = raw_json.fields(members[place]) if place is not None else {}
            record = raw_json.object_of({**old, **self._record(name, model, cwd)}, MEMBER_DEPTH)
            if place is None:
                return [*members, record]
            return [*members[:place], record, *members[place + 1 :]]

        if create and not self.team.startswith(SESSION):
            self._found()
        self._change(edit)
        return outcome

    def deregister(self, name: str) -> bool:
        """Remove the record, if this process made it; whether there was one. A missing team has none."""
        return self._remove(lambda member: member.name == name and member.is_ours)

    def clear_dead(self, is_selected: Callable[[Member], bool] = lambda member: True) -> bool:
        """Remove the records of Laneways that ended without leaving; whether there were any."""
        return self._remove(lambda member: is_selected(member) and member.is_gone)

    # ── changing ───────────────────────────────────────────────────────────

    def _remove(self, is_selected: Callable[[Member], bool]) -> bool:
        def edit(members: list[bytes]) -> list[bytes] | None:
            remaining = [
                raw for raw in members if (member := _member(raw, "")) is None or not is_selected(member)
            ]
            return remaining if len(remaining) < len(members) else None

        return self._change_if_there(edit)

    def _place_for(self, name: str, members: list[bytes]) -> int | None:
        """The position of a record under this name that we may take over; none if there is none."""
        known = {place: member for place, raw in enumerate(members) if (member := _member(raw, ""))}
        _refuse(name, owner_of(name, known.values()), self.team)
        alike = [place for place, member in known.items() if is_taken_for(name, member.name)]
        own = [place for place in alike if known[place].name == name]
        return next(iter(own or alike), None)

    def _record(self, name: str, model: str, cwd: str) -> dict[str, bytes]:
        """The fields that all three programs need. With the pane `leader` or `in-process` our mail would
        count as forged."""
        us = ourselves()
        record: dict[str, Any] = {
            "agentId": f"{name}@{self.team}",
            "name": name,
            "agentType": "codex",
            "model": model or UNKNOWN_MODEL,
            "joinedAt": int(self._now().timestamp() * 1000),
            "tmuxPaneId": "",
            "cwd": cwd or os.getcwd(),
            "subscriptions": [],
            "isActive": False,
            "externalBackendType": "codex",
            OURS: {"pid": us.pid, "procStart": us.start, "pidSpace": us.space},
        }
        return {key: raw_json.pretty(value, MEMBER_DEPTH + 1) for key, value in record.items()}

    def _change_if_there(self, edit: Callable[[list[bytes]], list[bytes] | None]) -> bool:
        try:
            return self._change(edit)
        except TeamGone:
            return False

    def _change(self, edit: Callable[[list[bytes]], list[bytes] | None]) -> bool:
        def rewritten(before: bytes) -> bytes | None:
            fields = raw_json.fields(before)
            members = edit(_members(fields))
            if members is None:
                return None
            return raw_json.object_of({**fields, "members": raw_json.array(members, 1)})

        try:
            with Rewrite(
                self.path,
                rewritten,
                lambda base, ours, theirs: rewritten(theirs) or theirs,
                max_bytes=MAX_CONFIG_BYTES,
                now=self._now,
            ) as work:
                work.prepare()
                if not work.is_needed:
                    return False
                with locked(self.path, self._patience):
                    work.commit()
                sync_folder(self.path.parent)
                return work.is_needed
        except (FileNotFoundError, NotADirectoryError):
            raise TeamGone(self.team, str(self.path)) from None
        except OSError as problem:
            raise trouble(self.path, problem) from problem

    def _found(self) -> None:
        """Create the team in one step, if nothing has its name yet."""
        folder = self.path.parent
        if os.path.lexists(folder):
            return
        config = {
            "name": self.team,
            "createdAt": int(self._now().timestamp() * 1000),
            "leadAgentId": f"{LEAD}@{self.team}",
            "leadSessionId": "",
            "members": [],
        }
        make_folder(self._teams_root)
        beside = self._teams_root / f".{self.team}.{os.urandom(8).hex()}"
        try:
            os.mkdir(beside, FOLDER_MODE)
            try:
                fd = os.open(beside / self.path.name, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
                try:
                    os.write(fd, raw_json.pretty(config))
                    os.fsync(fd)
                finally:
                    os.close(fd)
                os.rename(beside, folder)
            except BaseException:
                swap.discard(beside / self.path.name)
                os.rmdir(beside)
                raise
        except FileExistsError:
            pass  # another program was quicker
        except OSError as problem:
            if not os.path.lexists(folder):
                raise trouble(folder, problem) from problem


def ourselves() -> Owner:
    process = ancestry.ourselves()
    return Owner(process.pid, process.start, ancestry.pid_space())


def check_may_act_as(places: Places, team: str, name: str) -> None:
    """Raise `MemberForeign` if the name belongs to another in the team; a missing team has no members."""
    check_sender(name)
    try:
        members = Roster(places, team).read().members
    except TeamGone:
        return
    _refuse(name, owner_of(name, members), team)


def owner_of(name: str, members: Iterable[Member]) -> Member | None:
    """The member, not ours, that owns the name or its inbox; none if we may have the name."""
    # `held_by` is asked only of those that matter: it may cost a process each.
    alike = [member for member in members if is_taken_for(name, member.name)]
    rows = [Registered(member.name, member.held_by) for member in alike]
    owner = in_the_way(name, rows)
    return alike[rows.index(owner)] if owner is not None else None


def _refuse(name: str, member: Member | None, team: str) -> None:
    if member is not None:
        raise MemberForeign(member.name, team, member.owner.pid if member.owner else None, name=name)


# ── reading ────────────────────────────────────────────────────────────────


def parse(data: bytes, team: str) -> Team:
    """Parse a config.json. All but a member's `agentId` and `name` may be missing or of another type."""
    fields = raw_json.fields(data)
    lead_agent_id = _text(fields.get("leadAgentId"))
    members = (_member(raw, lead_agent_id) for raw in _members(fields))
    return Team(
        name=_text(fields.get("name")) or team,
        members=tuple(member for member in members if member is not None),
        lead_agent_id=lead_agent_id,
        lead_session_id=_text(fields.get("leadSessionId")),
        lead=_lead(fields.get("leadProcess")),
    )


def _members(fields: dict[str, bytes]) -> list[bytes]:
    members = fields.get("members", b"null")
    return [] if members == b"null" else raw_json.items(members)


def _member(raw: bytes, lead_agent_id: str) -> Member | None:
    try:
        record = raw_json.value(raw)
    except NotJson:
        return None
    if not isinstance(record, dict):
        return None
    name, agent_id = record.get("name"), record.get("agentId")
    if not isinstance(name, str) or not isinstance(agent_id, str):
        return None
    active = record.get("isActive")
    return Member(
        name=name,
        agent_id=agent_id,
        raw=raw,
        agent_type=_str(record.get("agentType")),
        model=_str(record.get("model")),
        cwd=_str(record.get("cwd")),
        joined_at=_instant(record.get("joinedAt")),
        is_active=active if isinstance(active, bool) else None,
        color=_str(record.get("color")),
        is_lead=name == LEAD or agent_id == lead_agent_id,
        owner=_owner(record.get(OURS)),
    )


def _owner(record: object) -> Owner | None:
    if not isinstance(record, dict) or not isinstance(pid := record.get("pid"), int):
        return None
    return Owner(pid, _str(record.get("procStart")), _str(record.get("pidSpace")))


def _lead(raw: bytes | None) -> Lead | None:
    record = raw_json.value(raw) if raw is not None else None
    if not isinstance(record, dict) or not isinstance(pid := record.get("pid"), int):
        return None
    claimed = record.get("claimedAt")
    at = float(claimed) if isinstance(claimed, (int, float)) else 0.0
    return Lead(pid, _str(record.get("procStart")), _str(record.get("pidSpace")), at)


def _instant(ms: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC) if isinstance(ms, (int, float)) else None
    except (ValueError, OverflowError, OSError):
        return None


def _text(raw: bytes | None) -> str:
    return _str(raw_json.value(raw)) if raw is not None else ""


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""
