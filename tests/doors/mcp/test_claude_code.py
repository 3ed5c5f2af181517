"""The real Claude Code uses our server, offline: headless, with a host that answers, and in a terminal.

Claude Code comes in the `claude-agent-sdk` wheel; its model is scripted on loopback, and so is the
one of the real Codex behind our server. Both eras of MCP are spoken: it picks the stateless one
wherever it is offered, and takes the old one when told to.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import takewhile
from typing import Any

import pytest

from laneway.testing.claude import ClaudeHome, Message, say
from tests.doors.mcp.tapped_claude import TappedClaude, real_claude

MAY = ("--allowedTools", "mcp__codex")
ERAS = {"stateless": {}, "handshake": {"MCP_PROTOCOL_NEGOTIATION": "legacy"}}


each_server_in_another_era = pytest.mark.parametrize(
    ("command", "era"), [("mcp", "stateless"), ("mcp-server", "handshake")]
)
"""Eras are understood in one place for both: every server and every era is enough, not every pair."""


@asynccontextmanager
async def registered(command: str, era: str) -> AsyncIterator[ClaudeHome]:
    """Claude Code with our server registered as people do it, and a tap on the line between them."""
    async with real_claude(ERAS[era]) as home:
        await TappedClaude(home).register("codex", sys.executable, "-m", "laneway", command, "--rehearse")
        yield home


def call(tool: str, **arguments: Any) -> str:
    return f"%tool mcp__codex__{tool} {json.dumps(arguments)}"


def call_that_asks(home: ClaudeHome) -> str:
    """A command that leaves the sandbox, so that somebody must allow it."""
    return call("codex", prompt="%run! touch made.txt", cwd=str(home.work), sandbox="read-only")


def shown(home: ClaudeHome) -> dict[str, Any]:
    """What the model of Claude Code was shown of the last call."""
    results = home.model.results()
    assert results, home.model.requests[-1]["messages"][-2:]
    value = json.loads(results[-1]["content"])
    assert isinstance(value, dict)
    return value


@each_server_in_another_era
async def test_claude_code_calls_codex_and_the_work_reaches_its_model(command: str, era: str) -> None:
    """Registered, called, told of progress meanwhile; and the session goes on in a second call.

    Headless, it cancels every question by itself; the model must not think that a person said no.
    """
    async with registered(command, era) as home:
        async with home.headless(*MAY) as conversation:
            await conversation.ask(call("codex", prompt="%run echo working\n%say hello"))
            first = shown(home)
            assert first["content"] == "hello"
            await conversation.ask(call("codex-reply", threadId=first["threadId"], prompt="%say again"))
            assert (shown(home)["threadId"], shown(home)["content"]) == (first["threadId"], "again")
            await conversation.ask(call_that_asks(home))
            assert "dismissed the question without an answer" in shown(home)["content"]
            assert not (home.work / "made.txt").exists()
        told = list(takewhile(lambda each: "made.txt" not in str(each), TappedClaude(home).passed()))
    methods = [message.get("method") for way, message in told if way == ">"]
    assert ("initialize" in methods) == (era == "handshake")
    calls = [message for way, message in told if message.get("method") == "tools/call"]
    for made in calls:
        answered = next(
            n for n, (way, message) in enumerate(told) if way == "<" and message.get("id") == made["id"]
        )
        progress = [
            message["params"]["message"]
            for way, message in told[:answered]
            if message.get("method") == "notifications/progress"
            and message["params"]["progressToken"] == made["params"]["_meta"]["progressToken"]
        ]
        assert progress
    assert any(
        "echo working" in str(message)
        for way, message in told
        if message.get("method") == "notifications/progress"
    )


async def test_a_host_that_answers_for_a_person_grants_a_command() -> None:
    """Hosts of Claude Code may ask somebody: so headless is no reason not to ask."""
    questions: list[Message] = []

    def allow(question: Message) -> Message:
        questions.append(question)
        return {"action": "accept", "content": {}}

    async with registered("mcp", "handshake") as home:
        async with home.headless(*MAY, elicit=allow) as conversation:
            await conversation.ask(call_that_asks(home))
        assert (home.work / "made.txt").exists()
    assert [question["mcp_server_name"] for question in questions] == ["codex"]
    assert "touch made.txt" in questions[0]["message"]


async def test_a_person_at_the_terminal_sees_the_question_and_grants_it() -> None:
    """The dialog names the command; Enter on Accept runs it, and Claude Code goes on with the result."""
    pytest.importorskip("pyte", reason="needs pyte, which `make setup` installs")
    async with registered("mcp", "stateless") as home:
        async with home.interactive(*MAY) as screen:
            await say(screen, call_that_asks(home))
            await screen.wait_for("requests your input")
            assert "touch made.txt" in screen.text
            assert not (home.work / "made.txt").exists()
            await screen.press_until_gone("enter", "requests your input")
            await screen.wait_for("● Done.")
        assert (home.work / "made.txt").exists()
        assert "declined" not in shown(home)["content"].lower()


async def test_a_person_at_the_terminal_sees_the_question_and_declines_it() -> None:
    """The command does not run, and the call ends all the same."""
    pytest.importorskip("pyte", reason="needs pyte, which `make setup` installs")
    async with registered("mcp", "handshake") as home:
        async with home.interactive(*MAY) as screen:
            await say(screen, call_that_asks(home))
            await screen.wait_for("requests your input")
            screen.press("right")
            await screen.press_until_gone("enter", "requests your input")
            await screen.wait_for("● Done.")
        assert not (home.work / "made.txt").exists()
