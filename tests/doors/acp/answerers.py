"""Models that do what the rehearsal's script has no step for: `!` lines of a prompt.

    !incomplete REASON     half an answer, then the model stops for this reason
    !failed CODE           the model reports a failure of this code
    !cut N                 the stream breaks at the first N tries; then the rest of the prompt is played
    !image                 an image that the model made
    !patch                 a patch that is told while the model writes it

All else is the rehearsal's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from laneway.rehearsal.answer import Cut, Piece, _event, _say, answer, where_are_we

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A PNG of one point."""
PATCH = "*** Begin Patch\n*** Add File: story.txt\n" + "+once upon a time\n" * 40 + "*** End Patch"
CHARS_PER_DELTA = 100
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": None,
    "output_tokens": 1,
    "output_tokens_details": None,
    "total_tokens": 101,
}


def odd_model() -> Callable[[dict[str, Any]], Iterator[Piece]]:
    """A model that knows the steps above. It counts the tries of `!cut`."""
    tries: dict[str, int] = {}

    def play(request: dict[str, Any]) -> Iterator[Piece]:
        prompt, done = where_are_we(request.get("input", []))
        step = next((line for line in prompt.splitlines() if line.startswith("!")), "")
        verb, _, rest = step.partition(" ")
        if verb == "!cut":
            tries[prompt] = tries.get(prompt, 0) + 1
            if tries[prompt] <= int(rest):
                return iter([_event("response.created", response={"id": "resp_0"}), Cut()])
        elif verb in _STEPS and not done:
            return _STEPS[verb](rest)
        return answer(request)

    return play


def _incomplete(reason: str) -> Iterator[Piece]:
    yield _event("response.created", response={"id": "resp_0"})
    yield from _say(["Half", " an answer"], 0.0)
    response = {"id": "resp_0", "status": "incomplete", "incomplete_details": {"reason": reason}}
    yield _event("response.incomplete", response={**response, "usage": USAGE})


def _failed(code: str) -> Iterator[Piece]:
    yield _event("response.created", response={"id": "resp_0"})
    error = {"code": code, "message": "The model says no."}
    yield _event("response.failed", response={"id": "resp_0", "error": error})


def _image(rest: str) -> Iterator[Piece]:
    yield _event("response.created", response={"id": "resp_0"})
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed"}
    yield _event(
        "response.output_item.done", item={**item, "revised_prompt": "A point.", "result": PIXEL}
    )
    yield from _say(["Made."], 0.0)
    yield _event("response.completed", response={"id": "resp_0", "usage": USAGE})


def _patch(rest: str) -> Iterator[Piece]:
    yield _event("response.created", response={"id": "resp_0"})
    item = {"type": "custom_tool_call", "name": "apply_patch", "id": "ctc_1", "call_id": "call_1"}
    yield _event("response.output_item.added", item={**item, "status": "in_progress", "input": ""})
    for at in range(0, len(PATCH), CHARS_PER_DELTA):
        delta = PATCH[at : at + CHARS_PER_DELTA]
        yield _event(
            "response.custom_tool_call_input.delta", item_id="ctc_1", call_id="call_1", delta=delta
        )
    yield _event("response.output_item.done", item={**item, "status": "completed", "input": PATCH})
    yield _event("response.completed", response={"id": "resp_0", "usage": USAGE})


_STEPS: dict[str, Callable[[str], Iterator[Piece]]] = {
    "!incomplete": _incomplete,
    "!failed": _failed,
    "!image": _image,
    "!patch": _patch,
}
