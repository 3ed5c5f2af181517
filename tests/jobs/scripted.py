"""A scripted model that goes through several scripts: from one that failed to the next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from laneway.rehearsal.answer import Piece, Refuse, answer, prompt_and_calls
from laneway.rehearsal.server import Answerer


def one_after_the_other(*scripts: str) -> Answerer:
    """Whatever is asked: the first script, until it has failed; then the next one. The last one stays."""
    left = list(scripts)

    def answerer(request: dict[str, Any]) -> Iterator[Piece]:
        _, done = prompt_and_calls(request["input"])
        prompt = {"role": "user", "content": [{"text": left[0]}]}
        answered = [{"type": "function_call_output"}] * done
        pieces = list(answer({**request, "input": [prompt, *answered]}))
        if len(left) > 1 and any(isinstance(piece, Refuse) for piece in pieces):
            left.pop(0)
        return iter(pieces)

    return answerer
