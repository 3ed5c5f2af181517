r"""Models that do what the rehearsal's script has no step for: `!` lines of a prompt.

    !incomplete REASON     half an answer, then the model stops for this reason
    !failed CODE           the model reports a failure of this code
    !cut N                 the stream breaks at the first N tries; then the rest of the prompt is played
    !search QUERY          a search of the web, which the model's provider makes
    !forget                compactions that come later get no answer
    !patch TEXT            a patch, told while the model writes it (\n makes a new line)
    !draft TEXT            the same, but the model never comes to its end

All else is the rehearsal's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from laneway.rehearsal.answer import Cut, Forever, Pause, Piece, _event, _say, answer, prompt_and_calls

PATCH = {"type": "custom_tool_call", "name": "apply_patch", "id": "ctc_1", "call_id": "call_1"}
CHARS_PER_DELTA = 100
DRAFT_PAUSE_S = 0.3
"""Between two deltas of a draft: Codex tells the patch so far twice a second."""
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
        prompt, done = prompt_and_calls(request.get("input", []))
        if "CONTEXT CHECKPOINT" in prompt and "!forget" in str(request["input"]):
            return iter([Forever()])
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


def _search(query: str) -> Iterator[Piece]:
    yield _event("response.created", response={"id": "resp_0"})
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    action = {"type": "search", "query": query}
    yield _event("response.output_item.added", item={**item, "status": "in_progress"})
    yield _event("response.output_item.done", item={**item, "action": action})
    yield from _say(["Found."], 0.0)
    yield _event("response.completed", response={"id": "resp_0", "usage": USAGE})


def _patch(rest: str) -> Iterator[Piece]:
    patch = rest.replace("\\n", "\n")
    item = {**PATCH, "status": "completed", "input": patch}
    yield from _written(patch)
    yield _event("response.output_item.done", item=item)
    yield _event("response.completed", response={"id": "resp_0", "usage": USAGE})


def _draft(rest: str) -> Iterator[Piece]:
    for piece in _written(rest.replace("\\n", "\n")):
        yield piece
        yield Pause(DRAFT_PAUSE_S)
    yield Forever()


def _written(patch: str) -> Iterator[Piece]:
    yield _event("response.created", response={"id": "resp_0"})
    yield _event("response.output_item.added", item={**PATCH, "status": "in_progress", "input": ""})
    for at in range(0, len(patch), CHARS_PER_DELTA):
        delta = patch[at : at + CHARS_PER_DELTA]
        yield _event("response.custom_tool_call_input.delta", item_id="ctc_1", call_id="call_1", delta=delta)


_STEPS: dict[str, Callable[[str], Iterator[Piece]]] = {
    "!incomplete": _incomplete,
    "!failed": _failed,
    "!search": _search,
    "!patch": _patch,
    "!draft": _draft,
}
