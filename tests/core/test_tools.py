"""Tools: found by name, called in the caller's name, errors told to the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from laneway.core.tools import Caller, Tool, ToolBox, ToolResult

ME = Caller(agent_id="agent-1", identity="codex")


async def shout(caller: Caller, arguments: Mapping[str, Any]) -> ToolResult:
    return ToolResult(f"{caller.identity}: {arguments['text'].upper()}")


SHOUT = Tool("shout", "Say it loud", {"type": "object", "required": ["text"]}, shout)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("shout", {"text": "hi"}, ToolResult("codex: HI")),
        ("whisper", {}, ToolResult("There is no tool whisper.", is_error=True)),
        ("shout", {}, ToolResult("shout needs text.", is_error=True)),
        ("shout", ["hi"], ToolResult("shout takes an object of arguments.", is_error=True)),
    ],
)
async def test_a_call_gives_a_result_or_tells_the_model_what_is_wrong(
    name: str, arguments: Any, expected: ToolResult
) -> None:
    """The model can mend its call; nobody else can."""
    assert await ToolBox([SHOUT]).call(ME, name, arguments) == expected


def test_two_tools_of_one_name_are_a_mistake_of_whoever_joined_them() -> None:
    """Found at start-up, not by a model."""
    with pytest.raises(ValueError, match="shout"):
        ToolBox([SHOUT, SHOUT])
