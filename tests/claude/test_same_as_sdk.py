"""The same script through Anthropic's own SDK and through us: the same words, tools and questions."""

from __future__ import annotations

import pytest

from tests.claude.played import Played, through_the_sdk, through_us
from tests.claude.support import tool

SCRIPT = (
    "%think about it\n%say hello there",
    "%stream 300 words",
    "%run touch made.txt\n%say made",
    "%run touch refused.txt\n%say went on",
    "%run echo out; exit 3\n%say failed",
    "%patch notes.txt one\n%say written",
    f"{tool('Read', file_path='notes.txt')}\n%say read",
    f"{tool('Edit', file_path='notes.txt', old_string='one', new_string='two')}\n%say changed",
    f"{tool('mcp__laneway__greet', whom='you')}\n%say greeted",
    "%ask Which colour? red | blue\n%say chosen",
    "%plan look; build\n%say planned",
    "%fail 500 oh",
    "%say and on",
)


@pytest.mark.filterwarnings("ignore:can_use_tool will not be invoked")  # what it may do unasked is meant
@pytest.mark.timeout(300)
async def test_the_same_script_through_the_sdk_and_through_us_is_the_same() -> None:
    """Text, thoughts, commands, a no, edits, a tool of ours, a choice, a plan and a failure."""
    theirs = await through_the_sdk(SCRIPT)
    ours = await through_us(SCRIPT)
    for prompt, their_turn, our_turn in zip(SCRIPT, theirs.turns, ours.turns, strict=True):
        assert our_turn == their_turn, prompt
    assert ours.files == theirs.files == {"made.txt": "", "notes.txt": "two"}
    assert_something_happened(theirs)


def assert_something_happened(played: Played) -> None:
    """Two clients that both show nothing would be the same, too."""
    assert [len(turn.questions) for turn in played.turns] == [0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 0]
    (problem,) = [turn.result for turn in played.turns if turn.is_failed]
    assert problem.startswith("API Error: 500 oh")
    assert len(played.turns[1].streamed.split()) == 300
    names = [name for turn in played.turns for name, _, _ in turn.tools]
    assert names[:7] == ["Bash", "Bash", "Bash", "Write", "Read", "Edit", "mcp__laneway__greet"]
    failed = [arguments for turn in played.turns for _, arguments, is_failed in turn.tools if is_failed]
    assert [each["command"] for each in failed] == ["touch refused.txt", "echo out; exit 3"]
