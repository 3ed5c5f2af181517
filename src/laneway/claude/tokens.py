"""What a conversation has used: counts of single answers, and Claude Code's own sums, as `Usage` values.

Pure but for its own sums. Input counts what came from the cache, too, as for every engine.
"""

from __future__ import annotations

from typing import Any

from laneway.claude.activities import maybe
from laneway.core.model import Tokens, Usage


class ThreadTokens:
    def __init__(self) -> None:
        self._total = Tokens()
        self._last = Tokens()
        self._window: int | None = None

    @property
    def total(self) -> Tokens:
        return self._total

    def add_answer(self, turn_id: str, usage: dict[str, Any], model: str = "") -> Usage:
        """One answer of a model."""
        self._last = tokens_of(usage)
        self._total = plus(self._total, self._last)
        return self._usage(turn_id, model)

    def take_sums(self, turn_id: str, by_model: Any) -> Usage | None:
        """Claude Code's sums of the session, with subagents and earlier processes; none if it tells none."""
        listed = by_model.values() if isinstance(by_model, dict) else ()
        models = [each for each in listed if isinstance(each, dict)]
        total = Tokens()
        for each in models:
            total = plus(total, _sums_of(each))
        self._window = max((maybe(each.get("contextWindow"), int) or 0 for each in models), default=0) or None
        if total.total < self._total.total:
            return None  # a process that was killed has not saved its sums
        self._total = total
        return self._usage(turn_id) if models else None

    def _usage(self, turn_id: str, model: str = "") -> Usage:
        return Usage(turn_id=turn_id, last=self._last, total=self._total, window=self._window, model=model)


def tokens_of(usage: dict[str, Any]) -> Tokens:
    """The counts of one answer, as the API writes them."""
    cached = _count(usage, "cache_read_input_tokens")
    fresh = _count(usage, "input_tokens") + _count(usage, "cache_creation_input_tokens")
    return _tokens(fresh, cached, _count(usage, "output_tokens"))


def _sums_of(model: dict[str, Any]) -> Tokens:
    cached = _count(model, "cacheReadInputTokens")
    fresh = _count(model, "inputTokens") + _count(model, "cacheCreationInputTokens")
    return _tokens(fresh, cached, _count(model, "outputTokens"), _count(model, "thinkingTokens"))


def _tokens(fresh: int, cached: int, output: int, reasoning: int = 0) -> Tokens:
    return Tokens(
        input=fresh + cached,
        cached_input=cached,
        output=output,
        reasoning=reasoning,
        total=fresh + cached + output,
    )


def plus(one: Tokens, other: Tokens) -> Tokens:
    return Tokens(
        input=one.input + other.input,
        cached_input=one.cached_input + other.cached_input,
        output=one.output + other.output,
        reasoning=one.reasoning + other.reasoning,
        total=one.total + other.total,
    )


def _count(counts: dict[str, Any], name: str) -> int:
    return maybe(counts.get(name), int) or 0
