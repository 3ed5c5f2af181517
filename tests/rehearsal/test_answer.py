"""The scripted model's answers: from a request to the stream, with the next step from the conversation."""

from __future__ import annotations

import json
from typing import Any

from laneway.rehearsal.answer import Forever, Pause, Refuse, answer, next_steps, prompt_and_calls
from laneway.rehearsal.script import RunStep, SayStep, parse

SCRIPT = "%say first\n%run a\n%run b\n%say last"


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def events(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The data of every server-sent event of an answer."""
    stream = b"".join(piece for piece in answer(request) if isinstance(piece, bytes)).decode()
    return [json.loads(block.partition("data: ")[2]) for block in stream.strip().split("\n\n")]


def test_an_answer_goes_up_to_the_next_tool_call_and_the_next_goes_on_behind_it() -> None:
    """Codex comes back with the outcome after each call."""
    steps = parse(SCRIPT)
    assert list(next_steps(steps, 0)) == [SayStep("first"), RunStep("a")]
    assert list(next_steps(steps, 1)) == [RunStep("b")]
    assert list(next_steps(steps, 2)) == [SayStep("last")]
    assert list(next_steps(parse("%run a"), 1)) == [SayStep("Done.")]


def test_the_newest_words_of_a_person_count_and_what_codex_adds_does_not() -> None:
    """Tool outcomes are counted from there; tagged messages are Codex's own."""
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    conversation = [
        user("<environment_context>…"),
        user("old"),
        output,
        user(SCRIPT),
        output,
        user("<hint>x</hint>"),
    ]
    assert prompt_and_calls(conversation) == (SCRIPT, 1)


def test_a_warning_of_an_old_codex_is_no_new_prompt() -> None:
    """It stands between a patch by the shell and its result, in the user's name (0.104)."""
    warning = "Warning: apply_patch was requested via exec_command. Use the apply_patch tool instead."
    result = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    assert prompt_and_calls([user(SCRIPT), user(warning), result]) == (SCRIPT, 1)


def test_a_plain_prompt_gets_a_short_sensible_answer() -> None:
    """Streamed word by word between the frame that Codex expects."""
    kinds = [event["type"] for event in events({"input": [user("hi there")]})]
    assert kinds[:2] == ["response.created", "response.output_item.added"]
    assert kinds[-2:] == ["response.output_item.done", "response.completed"]
    done = events({"input": [user("hi there")]})[-2]
    assert done["item"]["content"][0]["text"].startswith("I heard “hi there”.")


def test_the_shell_is_called_by_the_name_this_codex_gives_it() -> None:
    """It has had three."""
    for name, arguments in (
        ("exec_command", {"cmd": "ls"}),
        ("shell_command", {"command": "ls"}),
        ("shell", {"command": ["bash", "-lc", "ls"]}),
    ):
        request = {"input": [user("%run ls")], "tools": [{"type": "function", "name": name}]}
        call = next(
            event["item"] for event in events(request) if event["type"] == "response.output_item.done"
        )
        assert (call["name"], json.loads(call["arguments"])) == (name, arguments)


def test_failing_hanging_and_pacing_are_pieces_for_the_server() -> None:
    """Nothing here waits by itself."""
    assert list(answer({"input": [user("%say x\n%fail 503 busy")]})) == [Refuse(503, "busy")]
    assert Forever() in list(answer({"input": [user("%hang")]}))
    pauses = [p for p in answer({"input": [user("%stream 4 words over 2 seconds")]}) if isinstance(p, Pause)]
    assert pauses == [Pause(0.5)] * 4


def test_what_other_lanes_have_done_is_no_part_of_the_prompt() -> None:
    """It stands in front of the person's words, as a part of its own or joined with them."""
    told = "<laneway-hand-back>\nclaude, completed. Task: %run rm x\n%say forged\n</laneway-hand-back>"
    for parts in ((told, "%say mine"), (f"{told}\n\n%say mine",)):
        content = [{"type": "input_text", "text": part} for part in parts]
        items = [{"type": "message", "role": "user", "content": content}]
        assert prompt_and_calls(items) == ("%say mine", 0)
