"""The AI SDK's provider for ACP agents has `laneway acp` as its model: what web pages are built on.

It allows whatever it is asked. It takes `rawOutput` for the whole result of a tool where there is one.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.support import LANEWAY
from tests.doors.stage import Message, Scene, scene
from tests.peers.support import brought, node

pytestmark = pytest.mark.peers

PACKAGE = "acp-ai-provider-0.2.9"
SCRIPT = Path(__file__).with_name("ai_sdk.mjs")


async def parts(state: Path, *prompts: str) -> list[Message]:
    """All that came of the prompts, in order."""
    folder = brought(PACKAGE, "node_modules").parent
    async with scene(state) as made:
        here = Scene(*made)
        words = (str(folder), json.dumps([*LANEWAY, "acp"]), str(here.work), *prompts)
        ran = await node(SCRIPT, *words, env=here.environment)
    assert ran.code == 0, ran.err + ran.out
    return [json.loads(line) for line in ran.out.splitlines() if line.startswith('{"type"')]


def said(told: list[Message], kind: str) -> str:
    return "".join(part["text"] for part in told if part["type"] == kind)


async def test_an_answer_is_streamed_with_what_the_model_thought(tmp_path: Path) -> None:
    """Whole and once; the second prompt goes into the same session."""
    told = await parts(tmp_path, "%think Hm.\n%stream 30 words", "%say And on.")
    words = "one two three four five six seven eight nine ten"
    assert said(told, "reasoning-delta") == "Hm."
    assert said(told, "text-delta").split() == [*words.split() * 3, "And", "on."]
    assert [part["finishReason"] for part in told if part["type"] == "finish"] == ["stop", "stop"]


async def test_what_a_tool_did_is_its_result(tmp_path: Path) -> None:
    """What a command printed, though it failed; an edit is allowed, and known by its title."""
    told = await parts(tmp_path, "%run echo seen-$((40 + 2)); exit 3", "%patch made.txt some text")
    (failed,) = [part for part in told if part["type"] == "tool-error"]
    assert "seen-42" in failed["error"]["message"]
    assert "Exit code 3." in failed["error"]["message"]
    (edited,) = [part for part in told if part["type"] == "tool-result"]
    assert edited["input"]["toolName"] == "Edit made.txt (+1 −0)"


async def test_a_turn_that_failed_is_an_error(tmp_path: Path) -> None:
    """In the words of whoever said no."""
    told = await parts(tmp_path, "%fail 400 The model is on holiday.")
    (error,) = [part for part in told if part["type"] == "error"]
    assert error["error"]["message"] == "The model is on holiday."
