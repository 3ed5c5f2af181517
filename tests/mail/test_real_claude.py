"""The real Claude Code and we in one team, offline: found, addressed, and nothing lost when both write."""

from __future__ import annotations

import asyncio
import json
import threading
from functools import partial
from pathlib import Path

import pytest

from laneway.mail.ancestry import AncestorProcess, Ancestry, fate, pid_space
from laneway.mail.draft import draft
from laneway.mail.inbox import Inbox
from laneway.mail.places import Places
from laneway.mail.roster import Roster
from laneway.mail.teams import TeamChoice, TeamRemoved, mail_team, whereabouts
from laneway.testing import claude
from laneway.testing.claude import ClaudeHome, claude_home, say
from laneway.testing.mail_rules import config_faults, inbox_faults
from tests.core.support import until

TEAMS = {"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"}
MESSAGES = 4


def has_answered(home: ClaudeHome, count: int) -> bool:
    """Whether the model was shown the results of so many calls."""
    return len(home.model.results()) >= count


class Writer(threading.Thread):
    """Sends and marks as fast as it goes, until it is told to stop."""

    def __init__(self, box: Inbox, name: str) -> None:
        super().__init__(name=name)
        self.sent: list[str] = []
        self.is_over = threading.Event()
        self._box = box

    def run(self) -> None:
        while not self.is_over.is_set():
            text = f"{self.name} {len(self.sent)}"
            self._box.append(draft(self.name, text, team=self._box.team))
            self.sent.append(text)
            if len(self.sent) % 5 == 0:
                self._box.mark_read(self._box.read().unread()[:2])


@pytest.mark.covers("FR-20.2")
async def test_claude_code_and_we_write_one_inbox_and_nothing_is_lost() -> None:
    """Its team is found by its process; a member of ours can be written to; the team goes when it goes."""
    binary = claude.find()
    if binary is None:
        pytest.skip("needs claude-agent-sdk, which `make setup` installs")
    async with claude_home(binary, TEAMS) as home:
        places = Places.of(home.environment, home.work.parent)
        async with home.interactive("--allowedTools", "SendMessage") as screen:
            await until(places.teams)
            [team] = places.teams()
            roster = Roster(places, team)
            lead = roster.read().lead
            assert lead is not None
            assert fate(lead.pid, lead.start, lead.space) == "alive"
            below = Ancestry((AncestorProcess(2**22, ""), AncestorProcess(lead.pid, lead.start)), pid_space())
            assert mail_team(places, None, below) == TeamChoice(team, "claude")

            assert roster.register("codex-1", cwd=str(home.work)) == "added"
            writers = [Writer(Inbox(places, team, "codex-1"), f"bob-{number}") for number in range(2)]
            for writer in writers:
                writer.start()
            try:
                for number in range(MESSAGES):
                    words = {"to": "codex-1", "summary": "hello", "message": f"claude {number}"}
                    await say(screen, f"%tool SendMessage {json.dumps(words)}")
                    await until(partial(has_answered, home, number + 1))
            finally:
                for writer in writers:
                    writer.is_over.set()
                for writer in writers:
                    await asyncio.to_thread(writer.join)

            check(places.inbox(team, "codex-1"), [f"claude {number}" for number in range(MESSAGES)], writers)
            assert config_faults(places.config(team).read_bytes(), {"codex-1"}) == []
            assert [member.name for member in roster.read().members] == ["team-lead", "codex-1"]
            assert roster.deregister("codex-1")
        assert whereabouts(places, team, below) == TeamRemoved()
        assert not roster.deregister("codex-1")


def check(inbox: Path, claudes: list[str], writers: list[Writer]) -> None:
    data = inbox.read_bytes()
    assert inbox_faults(data) == []
    texts = [entry["text"] for entry in json.loads(data)]
    assert [text for text in texts if text.startswith("claude")] == claudes
    for writer in writers:
        assert [text for text in texts if text.startswith(f"{writer.name} ")] == writer.sent
    assert sorted(path.name for path in inbox.parent.iterdir()) == ["codex-1.json", "codex-1.lock"]
