"""Team files on disk, the mail tools that work on them, and the lines that they audit."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from laneway.core.tools import Caller, ToolBox, ToolResult
from laneway.mail.locks import Patience
from laneway.mail.places import Places
from laneway.mail.post import Post
from laneway.mail.tools import CLIENT, MailFormat, MailTools
from laneway.testing.mail_rules import inbox_faults

TEAM = "crew"
Entry = dict[str, Any]


class TeamFiles:
    """Team files under one root, written as Claude Code writes them."""

    def __init__(self, root: Path) -> None:
        self.places = Places.of({"ATM_HOME": str(root)}, root)

    def create_team(self, team: str = TEAM, *members: str, **records: Entry) -> None:
        """Make a team; `records` adds to the record of a member."""
        folder = self.places.team(team)
        (folder / "inboxes").mkdir(parents=True)
        self.enrol(team, *members, **records)

    def enrol(self, team: str, *members: str, **records: Entry) -> None:
        rows = [
            {"agentId": f"{name}@{team}", "name": name, "agentType": "x", **records.get(name, {})}
            for name in members
        ]
        config = {"name": team, "createdAt": 1, "leadAgentId": f"team-lead@{team}", "members": rows}
        self.places.config(team).write_text(json.dumps(config))

    def entries(self, agent: str, team: str = TEAM) -> list[Entry]:
        """What is on the disk, as another program reads it; every one of them can."""
        path = self.places.inbox(team, agent)
        if not path.exists():
            return []
        data = path.read_bytes()
        assert inbox_faults(data) == []
        found: list[Entry] = json.loads(data)
        return found

    def drop(self, agent: str, *entries: Entry, team: str = TEAM) -> None:
        """Put entries into an inbox, as a stranger would."""
        self.places.inbox(team, agent).write_text(json.dumps(list(entries)))


def entry(sender: str, text: str, when: str = "2026-11-16T05:00:00.000Z", **more: Any) -> Entry:
    """An entry as Claude Code writes it, with an id unless it is taken away by `msg_id=None`."""
    given = {
        "from": sender,
        "text": text,
        "timestamp": when,
        "read": False,
        "msg_id": str(uuid.uuid4()),
        **more,
    }
    return {name: value for name, value in given.items() if value is not None}


class MailUser:
    """The tools, called in somebody's name."""

    def __init__(
        self, team_files: TeamFiles, team: str = TEAM, mail_format: MailFormat = CLIENT, budget_s: float = 5.0
    ) -> None:
        self.team_files = team_files
        self.noted: list[dict[str, Any]] = []
        patience = Patience(budget_s=budget_s)
        post = Post(team_files.places, patience=patience)
        self.mail = MailTools(team_files.places, post, lambda: team, self._note, patience=patience)
        self.box = ToolBox(self.mail.tools(mail_format))

    def _note(self, event_type: str, caller: Caller, **about: str) -> None:
        self.noted.append({"event_type": event_type, "identity": caller.identity, **about})

    async def call(self, identity: str | None, tool: str, /, **arguments: Any) -> ToolResult:
        caller = Caller(agent_id="agent-1", identity=identity, thread_id="thread-1")
        return await self.box.call(caller, tool, arguments)

    async def good(self, identity: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
        result = await self.call(identity, tool, **arguments)
        assert not result.is_error, result
        assert result.data is not None
        return result.data

    async def texts(self, identity: str, /, **arguments: Any) -> list[str]:
        data = await self.good(identity, "atm_read", **arguments)
        return [row["text"] for row in data["messages"]]

    async def refused(self, identity: str | None, tool: str, /, **arguments: Any) -> str:
        result = await self.call(identity, tool, **arguments)
        assert result.is_error, result
        return result.text
