"""The real Claude Code in a terminal and the real Codex behind `laneway mcp`, each on a scripted model."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from laneway.codex import locate
from laneway.mail.places import Places
from laneway.mail.roster import Roster
from laneway.rehearsal.answer import Piece, answer
from laneway.rehearsal.home import throwaway_home
from laneway.rehearsal.server import ModelServer
from laneway.testing import claude
from laneway.testing.claude import ClaudeHome, claude_home, say
from laneway.testing.terminal import Terminal
from tests.core.support import until
from tests.mail.test_envelope import opened

TEAMS = {"CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS": "1"}
# Its default mode asks the model's server whether a call is safe, and a scripted one knows no such thing.
MAY = ("--permission-mode", "default", "--allowedTools", "mcp__codex", "SendMessage", "Agent")
MAIL_TURN = "You have team mail"
SHOWN = re.compile(r'<teammate-message teammate_id="codex-1"[^>]*>\n(.*?)\n</teammate-message>', re.DOTALL)

Message = dict[str, Any]
MailTurn = list[tuple[dict[str, str], str]]


class ClaudeStage:
    """One Claude Code with a Codex in its team, and all that their models were shown."""

    def __init__(self, home: ClaudeHome, mail_turns: list[MailTurn]) -> None:
        self.mail_turns = mail_turns
        """Each mail turn as the model of Codex was shown it: headers and text of every message."""
        self.places = Places.of(home.environment, home.work.parent)
        self.state = home.work.parent / ".config" / "atm" / "agent-sessions" / "default"
        self._home = home
        self._screen: Terminal | None = None

    @asynccontextmanager
    async def lead(self) -> AsyncIterator[None]:
        """Claude Code at work; at the end it and all that it started are gone."""
        async with self._home.interactive(*MAY) as self._screen:
            try:
                yield
            except TimeoutError as late:
                late.add_note(self._screen.text)
                raise

    # ── what Claude Code's model does, and sees ────────────────────────────

    async def call(self, tool: str, **arguments: Any) -> Message:
        """Have the lead's model call a tool; what it is shown of that, an object or `{"text": …}`."""
        assert self._screen is not None
        before = len(self._results())
        prompt = f"%tool {tool} {json.dumps(arguments)}"
        assert prompt not in self._screen.text, "say it in other words: `say` waits to see them"
        await say(self._screen, prompt)
        await until(lambda: len(self._results()) > before)
        result = self._results()[-1]
        assert not result.get("is_error"), result
        content = result["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        value = json.loads(text) if text.startswith("{") else {"text": text}
        assert isinstance(value, dict)
        return value

    async def start_codex(self, words: str = "hello") -> Message:
        return await self.call("mcp__codex__codex", prompt=f"%say {words}", identity="codex-1")

    async def write(self, message: str | Message) -> Message:
        """Claude Code's own way to write to a member of its team."""
        return await self.call("SendMessage", to="codex-1", summary="a word", message=message)

    async def start_polling(self) -> None:
        """A lead looks into its inbox once it has started a teammate of its own."""
        await self.call("Agent", description="stand by", prompt="Stand by.", name="worker")

    def shown(self) -> list[str]:
        """The mail of `codex-1` that stands in the lead's conversation, in its order."""
        requests = self._requests()
        return [
            text
            for block in _blocks(requests[-1:])
            if block.get("type") == "text"
            for text in SHOWN.findall(block["text"])
        ]

    def polls(self) -> int:
        """How many times mail of `codex-1` came into the lead's conversation."""
        return sum(bool(SHOWN.search(block.get("text", ""))) for block in _blocks(self._requests()[-1:]))

    def _requests(self) -> list[Message]:
        """Of the lead: a teammate in its process says whose child it is."""
        return [
            request
            for request in self._home.model.requests
            if request.get("tools") and "parent_session_id" not in request["metadata"]["user_id"]
        ]

    def _results(self) -> list[Message]:
        return [
            block
            for block in _blocks(self._requests()[-1:])
            if block.get("type") == "tool_result" and "search" not in block["tool_use_id"]
        ]

    # ── what Codex's model sees ────────────────────────────────────────────

    def told(self) -> list[str]:
        """The texts of all mail that Codex got, in the order of its turns."""
        return [text for turn in self.mail_turns for _, text in turn]

    # ── what is on disk ────────────────────────────────────────────────────

    @property
    def team(self) -> str:
        [team] = self.places.teams()
        return team

    def members(self) -> list[str]:
        return [member.name for member in Roster(self.places, self.team).read().members]

    def inbox(self, agent: str) -> list[Message]:
        path = self.places.inbox(self.team, agent)
        entries = json.loads(path.read_bytes()) if path.exists() else []
        assert isinstance(entries, list)
        return entries

    def unread(self) -> list[str]:
        """Mail for Codex that is not marked as read."""
        return [entry["text"] for entry in self.inbox("codex-1") if not entry["read"]]

    def records(self) -> list[Message]:
        """Of all sessions that were called `codex-1`."""
        sessions = json.loads((self.state / "codex-1" / "registry.json").read_bytes())["sessions"]
        assert isinstance(sessions, list)
        return sessions


def _blocks(requests: list[Message]) -> Iterator[Message]:
    for request in requests:
        for message in request["messages"]:
            content = message["content"]
            if isinstance(content, str):
                yield {"type": "text", "text": content}
            else:
                yield from content


def _prompts(request: Message) -> Iterator[str]:
    for item in request["input"]:
        if item["type"] == "message" and item["role"] == "user":
            yield from (part["text"] for part in item["content"])


@asynccontextmanager
async def claude_stage(**settings: str) -> AsyncIterator[ClaudeStage]:
    """Our server is registered as people do it, and nothing names the team to it."""
    binary = claude.find()
    if binary is None:
        pytest.skip("needs claude-agent-sdk, which `make setup` installs")
    pytest.importorskip("pyte", reason="needs pyte, which `make setup` installs")
    prompts: dict[str, None] = {}
    mail_turns: list[MailTurn] = []

    def noted(request: Message) -> Iterator[Piece]:
        for prompt in _prompts(request):
            if prompt.startswith(MAIL_TURN) and prompt not in prompts:
                prompts[prompt] = None  # every request tells the whole story again
                mail_turns.append([(headers, text) for headers, text, is_cut in opened(prompt)])
        return answer(request)

    async with ModelServer(noted) as model:
        with throwaway_home(model.base_url) as codex_home:
            codex = {"CODEX_HOME": str(codex_home), "LANEWAY_CODEX_BIN": locate.find().path}
            async with claude_home(binary, {**TEAMS, **codex, **settings}) as home:
                server = [sys.executable, "-m", "laneway", "mcp"]
                added = await home.run("mcp", "add", "--scope", "user", "codex", "--", *server)
                assert added.end.code == 0, added
                yield ClaudeStage(home, mail_turns)
