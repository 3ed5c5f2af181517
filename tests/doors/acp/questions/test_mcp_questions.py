"""Questions of a real MCP server: they reach a person by what the client has, and the server its answer."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.doors.acp import mcp_asks
from tests.doors.acp.shared import Shared
from tests.doors.acp.support import CANCELLED, FULL, Client, Message, Refused, select, text
from tests.doors.acp.test_point_09_mcp_results import show_all_tools

ENDED = {"stopReason": "end_turn"}
SERVER: Message = {"name": "desk", "command": sys.executable, "args": [mcp_asks.__file__], "env": []}
GREEN = {"action": "accept", "content": {"colour": "green"}}
NO_OPTIONS = Refused({"code": -32601, "message": "Method not found"})


class Desk:
    """A session with the server, and a person who allows its tools and answers by `reply`."""

    def __init__(self, client: Client, session: str) -> None:
        self.client = client
        self.session = session
        self.asked: list[Message] = []
        """All permission requests but those for the tools themselves."""
        self.reply: Any = CANCELLED
        """An option's id, or the whole answer."""
        client.on_permission = self._permit

    def _permit(self, params: Message) -> Any:
        if "run tool" in params["toolCall"]["title"]:
            return select(params, "allow_once")
        self.asked.append(params)
        return select(params, self.reply) if isinstance(self.reply, str) else self.reply

    async def call(self, tool: str) -> None:
        assert await self.client.prompt(self.session, f"%tool {tool} {{}}\n%say Called.") == ENDED

    @property
    def heard(self) -> Any:
        """What the server was answered last, which its tool returns."""
        calls = self.client.tool_calls(self.session).values()
        return json.loads(text([call for call in calls if "desk." in call["title"]][-1]["content"]))


@asynccontextmanager
async def desk(shared: Shared, capabilities: Message) -> AsyncIterator[Desk]:
    async with shared.stage(show_all_tools) as here, here.agent(capabilities=capabilities) as client:
        yield Desk(client, await client.new(mcpServers=[SERVER]))
        assert client.open_tool_calls() == {}


async def test_a_client_with_forms_and_pages_shows_them(shared: Shared) -> None:
    """With the server's name; a page is told to be done with when the turn is over."""
    async with desk(shared, FULL) as one:
        shown: list[Message] = []

        def answered(params: Message) -> Message:
            shown.append(params)
            return GREEN if params["mode"] == "form" else {"action": "accept"}

        one.client.on_elicitation = answered
        await one.call("form")
        assert one.heard == GREEN
        await one.call("page")
        assert one.heard["action"] == "accept"
        done = await one.client.wait_heard(lambda each: each["method"] == "elicitation/complete")
    form, page = shown
    assert form["message"] == "The MCP server desk asks: Which colour?"
    assert list(form["requestedSchema"]["properties"]) == ["colour"]
    assert (page["url"], page["elicitationId"]) == (mcp_asks.PAGE, done["params"]["elicitationId"])
    assert one.asked == []


async def test_a_client_without_them_shows_buttons(shared: Shared) -> None:
    """One for each option; a page is an address and a button that says that it is open."""
    async with desk(shared, {}) as one:
        one.reply = "1"
        await one.call("form")
        assert one.heard == GREEN
        one.reply = "accept"
        await one.call("page")
        assert one.heard["action"] == "accept"
    form, page = one.asked
    assert [option["name"] for option in form["options"]] == ["red", "green", "Give no answer"]
    assert "The MCP server desk asks: Which colour?" in text(form["toolCall"]["content"])
    assert mcp_asks.PAGE in text(page["toolCall"]["content"])


async def test_a_client_without_either_is_asked_in_text_and_the_next_prompt_answers(shared: Shared) -> None:
    """The server waits meanwhile."""
    async with desk(shared, {}) as one:
        one.reply = NO_OPTIONS
        await one.call("form")
        assert "Which colour?" in one.client.messages(one.session)[-1]
        assert await one.client.prompt(one.session, "green") == ENDED
        assert one.heard == GREEN
        assert one.client.messages(one.session)[-1] == "Called."


@pytest.mark.parametrize(("reply", "notes"), [("decline", 0), (CANCELLED, 1), (NO_OPTIONS, 1)], ids=repr)
async def test_a_no_that_no_person_said_is_told_to_them(shared: Shared, reply: Any, notes: int) -> None:
    """Whoever declines knows it. The server hears a no in each case."""
    async with desk(shared, {}) as one:
        one.reply = reply
        await one.call("page")
        assert one.heard["action"] in ("decline", "cancel")
        thoughts = one.client.messages(one.session, "agent_thought_chunk")
        about = [each for each in thoughts if "the request of the MCP server desk was declined" in each]
        assert len(about) == notes
