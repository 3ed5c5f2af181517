"""Questions of every kind, and one of them on its way to a client in the test's hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from laneway.base.errors import RemoteError
from laneway.core.model import Question
from laneway.doors.acp.client import client_of
from laneway.doors.acp.questions import ask_client
from laneway.doors.acp.questions.ask_client import AskOutcome
from laneway.rendering.questions_in_text import InText
from tests.doors.acp.hand import DEADLINE_S, SESSION, Call, Hand
from tests.doors.acp.questions.test_permission_options import asked

FORMS: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}}
CANCELLED: dict[str, Any] = {"outcome": {"outcome": "cancelled"}}
ITEM = "codex:t:u:i"
OWN = "codex:t:u:q-1"
COLOUR = {
    "id": "colour",
    "header": "Colour",
    "question": "Which colour?",
    "isOther": True,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}
WHY = {"id": "why", "header": "Why", "question": "Why that one?"}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def user_input(*wanted: dict[str, Any]) -> Question:
    params = {"threadId": "t", "turnId": "u", "itemId": "i", "questions": [*wanted]}
    return asked("item/tool/requestUserInput", params)


def elicited(**params: Any) -> Question:
    common = {"threadId": "t", "turnId": "u", "serverName": "desk", "message": "Who are you?", "mode": "form"}
    return asked("mcpServer/elicitation/request", {**common, **params})


TOOL = elicited(
    message="Allow the desk MCP server to run tool?",
    requestedSchema={"type": "object", "properties": {}},
    _meta={"codex_approval_kind": "mcp_tool_call", "persist": ["session"], "tool_params": {"x": 1}},
)
PAGE = elicited(mode="url", url="https://example.org/login", elicitationId="e")


class Asking:
    """One question on its way, and the client that it goes to."""

    def __init__(self, hand: Hand, task: asyncio.Task[AskOutcome | InText]) -> None:
        self.hand = hand
        self._task = task

    async def call(self, method: str) -> Call:
        call = await self.hand.asked()
        assert call.method == method
        return call

    async def reply(self, method: str, result: Any) -> dict[str, Any]:
        """Answer the next request; what it asked."""
        call = await self.call(method)
        if isinstance(result, Exception):
            call.reply.set_exception(result)
        else:
            call.reply.set_result(result)
        return call.params

    async def end(self) -> AskOutcome | InText:
        async with asyncio.timeout(DEADLINE_S):
            return await self._task

    async def settled(self) -> AskOutcome:
        end = await self.end()
        assert isinstance(end, AskOutcome)
        return end

    def withdraw(self) -> None:
        self._task.cancel()


@asynccontextmanager
async def asking(
    question: Question, capabilities: dict[str, Any] | None = None, **more: Any
) -> AsyncIterator[Asking]:
    """Ends with: nothing off the protocol was said, and no tool call of ours is open."""
    hand = Hand(capabilities)
    hand.announce(ITEM)
    client = client_of({"clientCapabilities": capabilities or {}})
    task = asyncio.create_task(ask_client.ask(question, hand, client, SESSION, "t", **more))
    yield Asking(hand, task)
    await asyncio.wait([task])
    hand.lint.assert_clean()
    assert hand.open_calls() <= {ITEM}


PERMISSION, ELICITATION = "session/request_permission", "elicitation/create"
REFUSED = RemoteError(-32601, "Method not found")
