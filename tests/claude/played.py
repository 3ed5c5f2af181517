"""One script through two clients of the real Claude Code: what a person would have seen of each.

`through_us` drives it as an engine behind a hub, `through_the_sdk` by Anthropic's own client, in a home
of its own. Both answer questions by the same rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    TextBlock,
    ToolPermissionContext,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
)
from claude_agent_sdk import tool as sdk_tool

from laneway.claude import locate
from laneway.claude.activities import SILENT
from laneway.claude.checklist import TOOLS as CHECKLIST_TOOLS
from laneway.core.model import Activity, Answer, Asked, Event, Question, Text
from laneway.core.tools import Caller, Tool, ToolBox, ToolResult
from laneway.testing.rehearse_claude import claude_rehearsal
from tests.claude.support import real
from tests.codex.support import only, play

REFUSED = "refuse"
"""Whoever asks for something with this word in it gets a no."""
_MODEL = re.compile(r"127\.0\.0\.1:\d+")
_PLAN_FILE = re.compile(r'"[^"]*/plans/[^"/]*\.md"')
GREETING = {"type": "object", "properties": {"whom": {"type": "string"}}}


class PlayedTurn(msgspec.Struct, frozen=True):
    """What one turn showed."""

    is_failed: bool
    streamed: str
    """All texts as they came, piece by piece."""
    result: str
    tools: list[tuple[str, dict[str, Any], bool]]
    """Calls in the order of their ends: name, arguments, and whether it failed or was refused."""
    questions: list[tuple[str, dict[str, Any]]]
    """In their order: tool and arguments."""


class Played(msgspec.Struct, frozen=True):
    turns: list[PlayedTurn]
    files: dict[str, str]
    """What was made in the folder."""


def is_allowed(arguments: dict[str, Any]) -> bool:
    return REFUSED not in json.dumps(arguments)


def answers_of(arguments: dict[str, Any]) -> dict[str, str]:
    """The first option of each question."""
    return {each["question"]: each["options"][0]["label"] for each in arguments["questions"]}


def files_in(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir()) if path.is_file()}


def plain(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Without what differs from home to home: the folder's path, and the random name of a plan's file."""
    text = json.dumps(arguments).replace(str(folder.resolve()), "WORK")
    value: dict[str, Any] = json.loads(_PLAN_FILE.sub('"PLAN"', text))
    return value


def is_shown(name: str) -> bool:
    return name not in SILENT and name not in CHECKLIST_TOOLS


# ── Laneway ─────────────────────────────────────────────────────────────────


async def through_us(prompts: Sequence[str]) -> Played:
    async def greet(caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
        return ToolResult(f"hello {arguments['whom']}")

    tools = ToolBox((Tool(name="greet", description="Greets", schema=GREETING, handler=greet),))
    async with real(tools=tools) as here:
        session = await here.session()

        def decide(question: Question) -> Answer:
            if question.kind == "input":
                labels = (field.options[0].label for field in question.fields)
                fields = (field.field_id for field in question.fields)
                return Answer(choice_id="accept", values=dict(zip(fields, labels, strict=True)))
            is_yes = is_allowed(question.params["input"])
            return Answer(choice_id="accept" if is_yes else "decline")

        turns = []
        for prompt in prompts:
            events, result = await play(session, prompt, decide=decide)
            failure = "" if result.failure is None else result.failure.message
            turns.append(_our_turn(events, result.status == "failed", failure or result.text, here.work))
        return Played(turns, files_in(here.work))


def _our_turn(events: list[Event], is_failed: bool, result: str, folder: Path) -> PlayedTurn:
    calls = [event for event in only(events, Activity) if event.status != "running" and event.item]
    asked = [event.question.params for event in only(events, Asked)]
    return PlayedTurn(
        is_failed=is_failed,
        streamed="".join(event.text for event in only(events, Text)),
        result=_MODEL.sub("MODEL", result),
        tools=[
            (call.item["name"], plain(call.item["input"], folder), call.status in ("failed", "declined"))
            for call in calls
            if call.item is not None
        ],
        questions=[(each["tool_name"], plain(each["input"], folder)) for each in asked],
    )


# ── the SDK ─────────────────────────────────────────────────────────────────


class _SdkTurn:
    """Collects the messages of one turn."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.streamed = ""
        self.calls: dict[str, ToolUseBlock] = {}
        self.tools: list[tuple[str, dict[str, Any], bool]] = []
        self.questions: list[tuple[str, dict[str, Any]]] = []
        self.result: PlayedTurn | None = None

    def take(self, message: object) -> None:
        match message:
            case StreamEvent(event={"type": "content_block_delta", "delta": {"text": str(text)}}):
                self.streamed += text
            case AssistantMessage(content=blocks):
                self.calls |= {block.id: block for block in blocks if isinstance(block, ToolUseBlock)}
                texts = [block.text for block in blocks if isinstance(block, TextBlock)]
                if message.error is None and texts:
                    assert "".join(texts) in self.streamed
            case UserMessage(content=list(blocks)):
                for block in blocks:
                    if isinstance(block, ToolResultBlock):
                        self._end(self.calls.pop(block.tool_use_id), block)
            case ResultMessage():
                self.result = PlayedTurn(
                    is_failed=message.is_error,
                    streamed=self.streamed,
                    result=_MODEL.sub("MODEL", message.result or ""),
                    tools=self.tools,
                    questions=self.questions,
                )

    def _end(self, call: ToolUseBlock, result: ToolResultBlock) -> None:
        if is_shown(call.name):
            self.tools.append((call.name, plain(call.input, self.folder), result.is_error is True))


async def through_the_sdk(prompts: Sequence[str]) -> Played:
    async with claude_rehearsal() as here:
        turn = _SdkTurn(here.work)

        async def decide(
            name: str, arguments: dict[str, Any], context: ToolPermissionContext
        ) -> PermissionResultAllow | PermissionResultDeny:
            turn.questions.append((name, plain(arguments, here.work)))
            if name == "AskUserQuestion":
                return PermissionResultAllow(updated_input={**arguments, "answers": answers_of(arguments)})
            if is_allowed(arguments):
                return PermissionResultAllow()
            return PermissionResultDeny(message="The user declined this.")

        @sdk_tool("greet", "Greets", GREETING)
        async def greet(arguments: dict[str, Any]) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": f"hello {arguments['whom']}"}]}

        options = ClaudeAgentOptions(
            cli_path=locate.find().path,
            cwd=here.work,
            env=here.environment,
            setting_sources=["user"],
            can_use_tool=decide,
            include_partial_messages=True,
            mcp_servers={"laneway": create_sdk_mcp_server("laneway", tools=[greet])},
            allowed_tools=["mcp__laneway"],
            system_prompt={"type": "preset", "preset": "claude_code"},
        )
        turns = []
        async with ClaudeSDKClient(options) as client:
            for prompt in prompts:
                turn = _SdkTurn(here.work)
                await client.query(prompt)
                async for message in client.receive_response():
                    turn.take(message)
                assert turn.result is not None
                turns.append(turn.result)
        return Played(turns, files_in(here.work))
