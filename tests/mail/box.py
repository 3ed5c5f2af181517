"""A team on a throw-away folder, as Claude Code makes one, and the other programs that share it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from laneway.mail.draft import Draft, draft
from laneway.mail.entries import Urgency
from laneway.mail.inbox import Inbox
from laneway.mail.locks import Patience
from laneway.mail.places import Places
from laneway.testing.mail_rules import inbox_faults, our_entry_faults

TEAM = "session-1c29d454"
NOON = datetime(2026, 11, 16, 12, 0, 0, 123_000, UTC)
AT_ONCE = Patience(budget_s=0.05)
"""For tests in which a lock is not to be had."""


def lead(team: str = TEAM) -> dict[str, Any]:
    """As Claude Code 2.1.325 writes it: without a model."""
    return {
        "agentId": f"team-lead@{team}",
        "name": "team-lead",
        "agentType": "team-lead",
        "joinedAt": 1794806686672,
        "tmuxPaneId": "leader",
        "cwd": "/w",
        "subscriptions": [],
        "backendType": "in-process",
    }


def found(root: Path, *names: str, team: str = TEAM, **fields: Any) -> Places:
    """A team with a lead and these members."""
    places = Places.of({}, root)
    members = [lead(team), *({"agentId": f"{name}@{team}", "name": name} for name in names)]
    config = {
        "name": team,
        "createdAt": 1794806686672,
        "leadAgentId": f"team-lead@{team}",
        "leadSessionId": "1c29d454-0000-4000-8000-000000000000",
        **fields,
        "members": members,
    }
    places.team(team).mkdir(parents=True)
    places.config(team).write_text(json.dumps(config, indent=2))
    return places


def inbox(places: Places, agent: str = "codex", **options: Any) -> Inbox:
    return Inbox(places, TEAM, agent, **options)


def letter(text: str, sender: str = "bob", *, when: datetime = NOON, urgency: Urgency = "normal") -> Draft:
    return draft(sender, text, team=TEAM, when=when, urgency=urgency)


def put(box: Inbox, *entries: Any) -> None:
    """What another program wrote."""
    box.path.parent.mkdir(exist_ok=True)
    box.path.write_text(json.dumps(entries, indent=2))


def on_disk(box: Inbox) -> list[Any]:
    entries: list[Any] = json.loads(box.path.read_bytes())
    return entries


def check_strictly(box: Inbox) -> None:
    """By the rules of the other three."""
    assert inbox_faults(box.path.read_bytes()) == []
    ours = [entry for entry in on_disk(box) if "msgV" in entry and "message_id" in entry]
    assert [our_entry_faults(entry) for entry in ours] == [[]] * len(ours)


def leftovers(places: Places) -> list[str]:
    """Everything that is neither an inbox, a roster nor a lock file that stays."""
    return sorted(
        path.name
        for path in places.team(TEAM).rglob("*")
        if path.is_file() and path.suffix != ".json" and path.suffix != ".lock"
    ) + [path.name for path in places.team(TEAM).rglob("*.json.lock")]


def dialect(*arguments: object) -> subprocess.CompletedProcess[str]:
    """One of the other programs, to its end."""
    command: Sequence[str] = [sys.executable, "-m", "laneway.testing.mail_dialects", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env, timeout=60)
