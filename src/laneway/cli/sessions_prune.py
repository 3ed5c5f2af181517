"""`laneway sessions --prune`: removes ended sessions from the list and killed ones from their teams.

Shows what will be removed, and asks if a person can answer. Removes only sessions of `laneway mcp`
and members that Laneway registered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec

from laneway.base.errors import StoreError, TeamGone
from laneway.base.plain import code_label
from laneway.cli.command_settings import settings_in
from laneway.cli.confirming import confirm
from laneway.cli.session_filters import passes_filters
from laneway.cli.session_list import KnownSession, of_row, with_digests
from laneway.cli.session_output import print_problems, print_table
from laneway.mail.places import Places
from laneway.mail.roster import SESSION, Member, Roster
from laneway.mail.teams import DEFAULT
from laneway.store.registry import Entry
from laneway.store.stamps import utc_now
from laneway.store.store import Pruned, Store
from laneway.terminal.prompting.keyboard import Keyboard, find_keyboard

MAX_NAMED = 30
"""Sessions, or members of one team, that are named; the others are counted."""


class GoneMember(msgspec.Struct, frozen=True):
    """A member of a team whose process has ended."""

    team: str
    name: str
    agent_id: str
    pid: int


class PruningPlan(msgspec.Struct, frozen=True):
    """What will be removed."""

    sessions: tuple[KnownSession, ...] = ()
    members: tuple[GoneMember, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.sessions and not self.members


def prune(store: Store, options: argparse.Namespace) -> int:
    plan = plan_pruning(store, options)
    if options.dry_run:
        return report_plan(plan, options)
    if not plan.is_empty and (keyboard := keyboard_to_ask(options)) is not None:
        show_plan(plan, "will be")
        if not asyncio.run(confirm(keyboard, "Remove them?")):
            print("Nothing was removed.")
            return 0
    chosen = {session.agent_id for session in plan.sessions}
    pruned = store.prune(timedelta(0), lambda entry: entry.agent_id in chosen)
    members, member_problems = remove_members(plan.members)
    problems = tuple(dict.fromkeys((*plan.problems, *pruned.problems, *member_problems)))
    report_done(options, pruned, members, problems)
    return 1 if problems else 0


def keyboard_to_ask(options: argparse.Namespace) -> Keyboard | None:
    """The terminal to ask at; None if a program reads our output, or --yes was given."""
    if options.yes or options.json or not os.isatty(0):
        return None
    return find_keyboard()


# ── the plan ───────────────────────────────────────────────────────────────


def plan_pruning(store: Store, options: argparse.Namespace) -> PruningPlan:
    age = timedelta(days=options.older_than)
    prunable = store.prunable(age, lambda row: passes_filters(options, of_row(row, None)))
    sessions = with_digests(of_row(row, None) for row in prunable.rows)
    ordered = sorted(sessions, key=lambda each: each.active_at, reverse=True)
    problems = list(prunable.problems)
    members = list(gone_members(options, age, problems))
    return PruningPlan(tuple(ordered), tuple(members), tuple(problems))


def gone_members(options: argparse.Namespace, age: timedelta, problems: list[str]) -> Iterator[GoneMember]:
    """Members that pass the filters. Members have no repository and no status, unlike sessions."""
    if (
        options.repo is not None
        or options.status not in (None, "stale")
        or options.source in ("ask", "editor")
    ):
        return
    places = Places.of()
    now = utc_now()
    for team in mail_teams(places, options.team):
        try:
            members = Roster(places, team).read().members
        except TeamGone:
            continue
        except StoreError as problem:
            problems.append(str(problem))
            continue
        for member in members:
            is_young = age > timedelta(0) and (member.joined_at is None or now - member.joined_at <= age)
            if options.identity in (None, member.name) and not is_young and member.is_gone:
                pid = member.owner.pid if member.owner else 0
                yield GoneMember(team, member.name, member.agent_id, pid)


def mail_teams(places: Places, chosen: str | None) -> list[str]:
    """The named team; else all teams that a session without a configured team may join."""
    settings = settings_in({"team": chosen})
    if settings.source("team").kind != "default":
        return [settings.team]
    return [team for team in places.teams() if team == DEFAULT or team.startswith(SESSION)]


def remove_members(members: tuple[GoneMember, ...]) -> tuple[list[GoneMember], list[str]]:
    """Remove these members; returns those removed, and the problems."""
    teams: dict[str, list[GoneMember]] = defaultdict(list)
    for member in members:
        teams[member.team].append(member)
    removed: list[GoneMember] = []
    problems: list[str] = []
    for team, team_members in teams.items():
        agents = {member.agent_id for member in team_members}

        def is_chosen(member: Member, agents: set[str] = agents) -> bool:
            return member.agent_id in agents

        try:
            # A member that was registered again meanwhile is alive, and stays.
            if Roster(Places.of(), team).clear_dead(is_chosen):
                removed += team_members
        except StoreError as problem:
            problems.append(str(problem))
    return removed, problems


# ── output ─────────────────────────────────────────────────────────────────


def report_plan(plan: PruningPlan, options: argparse.Namespace) -> int:
    if options.json:
        data = {"would_remove": plan.sessions, "members": plan.members, "problems": plan.problems}
        print(json.dumps({"dry_run": True, **msgspec.to_builtins(data)}))
    else:
        show_plan(plan, "would be")
        print_problems(plan.problems)
    return 1 if plan.problems else 0


def show_plan(plan: PruningPlan, be: str) -> None:
    if plan.is_empty:
        print("There is nothing to remove.")
    if plan.sessions:
        print_table(plan.sessions)
        count = counted(len(plan.sessions), "session")
        print(f"{count} {be} removed from the list; Codex keeps the transcripts.")
    for line in member_lines(plan.members, f"{be} removed"):
        print(line)


def report_done(
    options: argparse.Namespace, pruned: Pruned, members: list[GoneMember], problems: tuple[str, ...]
) -> None:
    if options.json:
        data = {
            "removed": [public(entry) for entry in pruned.removed],
            "members": msgspec.to_builtins(members),
            "in_use": pruned.in_use,
            "problems": problems,
        }
        print(json.dumps(data))
        return
    if pruned.removed:
        names = [entry.identity for entry in pruned.removed]
        print(f"{counted(len(names), 'session')} removed: {listed(names)}.")
    for line in member_lines(tuple(members), "removed"):
        print(line)
    if not pruned.removed and not members:
        print("There is nothing to remove.")
    for identity in pruned.in_use:
        print(f"{code_label(identity)} is in use and was left alone.")
    print_problems(problems)


def member_lines(members: tuple[GoneMember, ...], removed: str) -> Iterator[str]:
    teams: dict[str, list[str]] = defaultdict(list)
    for member in members:
        teams[member.team].append(member.name)
    for team, names in teams.items():
        count = counted(len(names), "member")
        reason = f"from team {code_label(team)}, because their process is gone"
        yield f"{count} {removed} {reason}: {listed(names)}."


def listed(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(map(code_label, names[:MAX_NAMED])) + more


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def public(entry: Entry) -> dict[str, Any]:
    return {
        "agent_id": entry.agent_id,
        "thread_id": entry.backend_id,
        "identity": entry.identity,
        "team": entry.team,
        "status": entry.status,
        "started_at": entry.started_at,
        "last_active": entry.last_active,
        "cwd": entry.cwd,
        "branch": entry.branch,
        "tag": entry.tag,
    }
